"""Alice's side of the training in which she learns the gradient of every batch.

::

    Alice                                            Bob
      PartialScores        X_A w_A              ->
                                                <-   EncryptedResidues   <r>
      MaskedGradient       <X_A^T r + xi>       ->
                                                <-   RevealedGradient    X_A^T r + xi
      takes xi off, updates w_A

[Tan22, Sec. III-C]; without mechanism it is the paper's baseline.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import FloatArray, IntArray
from tacit.crypto.base import PreparedMatrix, PublicKey
from tacit.data.tables import FeatureTable
from tacit.errors import RemoteProtocolError
from tacit.numerics.fixedpoint import magnitude_bits
from tacit.protocol.batches import Batch
from tacit.protocol.events import GradientSeen
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import (
    EncryptedResidues,
    MaskedGradient,
    PartialScores,
    RevealedGradient,
    Setup,
)
from tacit.protocol.scores import require_finite
from tacit.protocol.steps import Program, emit, receive, require_turn, send
from tacit.protocol.terms import Terms
from tacit.rng import KEY_BYTES, Entropy


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
    setup = yield from receive(Setup)
    key = terms.scheme.read_public(
        setup.public_key, terms.agreement.key_bits, terms.capacity(size, features.rows)
    )
    if len(setup.batch_seed) != KEY_BYTES:
        raise RemoteProtocolError(f"the peer's batch seed has {len(setup.batch_seed)} bytes")

    rate, penalty, grid = terms.rate, terms.penalty, terms.feature_grid
    weights = np.zeros(len(features.columns))
    for batch in terms.plan(setup.batch_seed, features.rows):
        rows = features.values.take(batch.rows, axis=0)
        yield from send(PartialScores(batch.iteration, require_finite(rows @ weights)))
        # The range is known since the handshake, and the key's capacity checks it once more.
        matrix = key.prepare(grid.nearest(rows).T)
        total = yield from _gradient(key, matrix, batch, entropy)
        yield from emit(GradientSeen(batch.iteration, batch.epoch, batch.rows, weights, total))
        gradient = terms.product_grid.decode(total) / -len(batch.rows)
        step = gradient + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
    return weights


def _gradient(
    key: PublicKey, matrix: PreparedMatrix, batch: Batch, entropy: Entropy
) -> Program[IntArray]:
    """``X^T r`` of one batch in exact integers: the encrypted round trip.

    Masks and obfuscators have a stream for each iteration: a resumed run cannot use one twice, and
    a replay that skips the encryption draws the same masks.
    """
    # Before waiting, not after: Bob is at work on his residues meanwhile.
    mask = key.draw_mask(matrix.rows, entropy.fork(f"masks {batch.iteration}"))
    coins = entropy.fork(f"obfuscators {batch.iteration}")
    key.stock(matrix, mask, coins)
    sent = yield from receive(EncryptedResidues)
    require_turn("EncryptedResidues", sent.iteration, batch.iteration)
    answer = key.masked_product(matrix, sent.residues, mask, coins)
    yield from send(MaskedGradient(batch.iteration, answer))
    revealed = yield from receive(RevealedGradient)
    require_turn("RevealedGradient", revealed.iteration, batch.iteration)
    return key.unmask(revealed.gradient.value, mask)
