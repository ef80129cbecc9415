"""Alice's side of the training in which she learns the gradient of every batch.

::

    Alice                                            Bob
                                                <-   KeyOffer, BatchSeed
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

from tacit.arrays import FloatArray
from tacit.data.tables import FeatureTable
from tacit.numerics.fixedpoint import magnitude_bits
from tacit.protocol.alice.batch_seed import receive_plan
from tacit.protocol.alice.product import receive_key, unmasked_product
from tacit.protocol.events import GradientSeen
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import PartialScores
from tacit.protocol.scores import require_finite
from tacit.protocol.steps import Program, emit, send
from tacit.protocol.terms import Terms
from tacit.rng import Entropy


def train(features: FeatureTable, terms: Terms, entropy: Entropy) -> Program[FloatArray]:
    """Trains Alice's weights.

    Args:
        features: Her columns, rows in the agreed order.
        terms: The agreement in use.
        entropy: Her coins: masks and obfuscators.

    Returns:
        Her weights, one per column.
    """
    size = magnitude_bits(features.largest)
    yield from shake_hands(greeting("alice", terms.agreement.canonical(), features, size))
    key = yield from receive_key(terms, features, size)
    plan = yield from receive_plan(terms, features.rows)

    rate, penalty, grid = terms.rate, terms.penalty, terms.feature_grid
    weights = np.zeros(len(features.columns))
    for batch in plan:
        rows = features.values.take(batch.rows, axis=0)
        yield from send(PartialScores(batch.iteration, require_finite(rows @ weights)))
        # The range is known since the handshake, and the key's capacity checks it once more.
        matrix = key.prepare(grid.nearest(rows).T)
        total = yield from unmasked_product(key, matrix, batch.iteration, entropy)
        yield from emit(GradientSeen(batch.iteration, batch.epoch, batch.rows, weights, total))
        gradient = terms.product_grid.decode(total) / -len(batch.rows)
        step = gradient + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
    return weights
