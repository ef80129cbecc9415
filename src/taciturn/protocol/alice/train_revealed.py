"""Alice's side of the training in which she learns the gradient of every batch.

::

    Alice                                            Bob
                                                <-   KeyOffer
      the seed of the batches (taciturn.protocol.batch_seed)
      each iteration:
      PartialScores        X_A w_A              ->
                                                <-   EncryptedResidues   <r>
      MaskedGradient       <X_A^T r + xi>       ->
                                                <-   RevealedGradient    X_A^T r + xi
      takes xi off, updates w_A

[Tan22, Sec. III-C]; without mechanism it is the paper's baseline.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.base import PublicKey
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.batch_seed import agree_seed
from taciturn.protocol.alice.held_out import report
from taciturn.protocol.alice.product import kept_key, receive_key, unmasked_product
from taciturn.protocol.events import Boundary
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.messages import PartialScores
from taciturn.protocol.observations import GradientSeen
from taciturn.protocol.scores import require_finite
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def train(
    features: FeatureTable,
    terms: Terms,
    entropy: Entropy,
    *,
    resume: TrainingState | None = None,
    held_out: FeatureTable | None = None,
) -> Program[FloatArray]:
    """Trains Alice's weights.

    Args:
        features: Her columns, rows in the agreed order.
        terms: The agreement in use.
        entropy: Her coins: masks and obfuscators.
        resume: Where to go on; None to begin.
        held_out: Her columns of the held-out rows, where they are looked at after each epoch.

    Returns:
        Her weights, one per column.
    """
    if resume is None:
        state, key = yield from _open(features, terms, entropy)
    else:
        state, key = resume, kept_key(terms, features, resume)
    plan = terms.plan(state.seed, features.rows)

    rate, penalty, grid = terms.rate, terms.penalty, terms.feature_grid
    weights = state.weights
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights)))
        rows = features.values.take(batch.rows, axis=0)
        yield from send(PartialScores(batch.iteration, require_finite(rows @ weights)))
        # The range is known since the handshake, and the key's capacity checks it once more.
        matrix = key.prepare(grid.nearest(rows).T)
        total = yield from unmasked_product(key, matrix, batch.iteration, entropy)
        yield from emit(GradientSeen(batch.iteration, batch.epoch, batch.rows, weights, total))
        gradient = terms.product_grid.decode(total) / -len(batch.rows)
        step = gradient + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
        if held_out is not None and plan.ends_epoch(batch):
            if (yield from report(held_out, weights, batch.iteration, terms)):
                break
    return weights


def _open(
    features: FeatureTable, terms: Terms, entropy: Entropy
) -> Program[tuple[TrainingState, PublicKey]]:
    """Everything before the first iteration."""
    size = magnitude_bits(features.largest)
    hello = yield from shake_hands(greeting("alice", terms.agreement.canonical(), features, size))
    key = yield from receive_key(terms, features, size)
    seed = yield from agree_seed(entropy)
    weights = np.zeros(len(features.columns))
    return TrainingState(0, weights, seed, key.to_bytes(), hello.columns, size), key
