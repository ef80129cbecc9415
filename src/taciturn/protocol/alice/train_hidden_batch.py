"""Alice's side of ``hybrid``: the batch hides in a subset, behind a randomised response.

::

    Alice                                            Bob
                                                <-   KeyOffer
      each iteration:
                                                <-   HiddenBatchOffer    S, RR(m)
      PartialScores        X_A w_A, RR(m) = 1   ->
                                                <-   EncryptedResidues   <r'>, zero off the batch
      MaskedGradient       <X_A^T r' + xi>      ->
                                                <-   RevealedGradient    X_A^T r' + xi
      takes xi off, updates w_A

[Tan22, Table I]. ``r' = (batch_size / k) r`` on the k rows of the true batch: Alice divides by the
agreed batch size, gets the mean over the true batch, and is not told k.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray
from taciturn.crypto.base import PublicKey
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.held_out import report
from taciturn.protocol.alice.product import kept_key, receive_key, unmasked_product
from taciturn.protocol.events import Boundary
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.messages import HiddenBatchOffer, PartialScores
from taciturn.protocol.observations import GradientSeen, HiddenBatchSeen
from taciturn.protocol.scores import require_finite
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
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
        state, key = yield from _open(features, terms)
    else:
        state, key = resume, kept_key(terms, features, resume)

    rate, penalty, grid = terms.rate, terms.penalty, terms.feature_grid
    batch_size, per_epoch = terms.agreement.batch_size, terms.per_epoch(features.rows)
    weights = state.weights
    for iteration in range(state.iteration, terms.agreement.epochs * per_epoch):
        yield from emit(Boundary(state.at(iteration, weights)))
        subset, response = yield from _offer(iteration, features.rows, terms)
        yield from emit(HiddenBatchSeen(iteration, subset, response))
        asked = subset[response]
        rows = features.values.take(asked, axis=0)
        yield from send(PartialScores(iteration, require_finite(rows @ weights)))
        total = yield from unmasked_product(
            key, key.prepare(grid.nearest(rows).T), iteration, entropy
        )
        epoch = iteration // per_epoch
        yield from emit(GradientSeen(iteration, epoch, asked, weights, total, float(batch_size)))
        step = terms.product_grid.decode(total) / -batch_size + penalty.gradient(weights)
        weights = weights - rate.at(iteration) * step
        if held_out is not None and (iteration + 1) % per_epoch == 0:
            if (yield from report(held_out, weights, iteration, terms)):
                break
    return weights


def _open(features: FeatureTable, terms: Terms) -> Program[tuple[TrainingState, PublicKey]]:
    """Everything before the first iteration."""
    size = magnitude_bits(features.largest)
    hello = yield from shake_hands(greeting("alice", terms.agreement.canonical(), features, size))
    key = yield from receive_key(terms, features, size)
    weights = np.zeros(len(features.columns))
    return TrainingState(0, weights, b"", key.to_bytes(), hello.columns, size), key


def _offer(iteration: int, rows: int, terms: Terms) -> Program[tuple[IndexArray, BoolArray]]:
    """The subset and the response.

    Raises:
        RemoteProtocolError: They do not fit each other, the table or the agreement.
    """
    offer = yield from receive(HiddenBatchOffer)
    require_turn("HiddenBatchOffer", offer.iteration, iteration)
    subset, bits = offer.subset, offer.response.value
    if len(subset) != terms.agreement.subset_size or len(bits) != len(subset):
        raise RemoteProtocolError(
            f"the peer's subset has {len(subset)} rows and its response {len(bits)}, "
            f"where {terms.agreement.subset_size} are agreed"
        )
    if subset.max(initial=0) >= rows:
        raise RemoteProtocolError(f"the peer's subset names a row beyond the {rows} there are")
    if not np.isin(bits, (0, 1)).all() or not bits.any():
        raise RemoteProtocolError("the peer's response is not of zeros and ones, or has no one")
    if bits.sum() < terms.agreement.minimum_batch:
        raise RemoteProtocolError(
            f"the peer asks for the scores of {bits.sum()} rows, below the agreed minimum of "
            f"{terms.agreement.minimum_batch}"
        )
    return subset, bits.astype(bool)
