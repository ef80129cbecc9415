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

from tacit.arrays import FloatArray, IndexArray
from tacit.config import Agreement
from tacit.crypto.base import PublicKey, Scheme
from tacit.data.tables import FeatureTable
from tacit.errors import DivergenceError, RemoteProtocolError
from tacit.numerics.fixedpoint import FixedPoint, magnitude_bits
from tacit.numerics.logistic import Penalty
from tacit.numerics.schedule import LearningRate
from tacit.protocol.batches import Batch, BatchPlan
from tacit.protocol.capacity import gradient_capacity
from tacit.protocol.events import GradientSeen
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import (
    EncryptedResidues,
    MaskedGradient,
    PartialScores,
    RevealedGradient,
    Setup,
)
from tacit.protocol.steps import Program, emit, receive, require_turn, send
from tacit.rng import KEY_BYTES, Entropy


def train(
    features: FeatureTable, agreement: Agreement, scheme: Scheme, entropy: Entropy
) -> Program[FloatArray]:
    """Trains Alice's weights.

    Args:
        features: Her columns, rows in the agreed order.
        agreement: The settings both sides share.
        scheme: The encryption named in the agreement.
        entropy: Her coins: masks and obfuscators.

    Returns:
        Her weights, one per column.
    """
    size = magnitude_bits(features.largest)
    yield from shake_hands(greeting("alice", agreement.canonical(), features, size))
    setup = yield from receive(Setup)
    key = scheme.read_public(
        setup.public_key, agreement.key_bits, gradient_capacity(agreement, size, features.rows)
    )
    if len(setup.batch_seed) != KEY_BYTES:
        raise RemoteProtocolError(f"the peer's batch seed has {len(setup.batch_seed)} bytes")
    plan = BatchPlan(setup.batch_seed, features.rows, agreement.batch_size, agreement.epochs)

    fixed = FixedPoint(agreement.feature_bits)
    unit = 2.0 ** -(agreement.feature_bits + agreement.residue_bits)
    rate = LearningRate(agreement.learning_rate, agreement.schedule, agreement.decay)
    penalty = Penalty(agreement.l1, agreement.l2)
    # Masks have a stream of their own: a replay that skips the encryption draws the same masks.
    masks, coins = entropy.fork("masks"), entropy.fork("obfuscators")

    weights = np.zeros(len(features.columns))
    for batch in plan:
        rows = features.values.take(batch.rows, axis=0)
        scores = rows @ weights
        if not np.isfinite(scores).all():
            raise DivergenceError(
                "a score is not finite: the training has diverged",
                hint="lower the learning rate, or scale or clip the features",
            )
        yield from send(PartialScores(batch.iteration, scores))
        # The range is known since the handshake, and the key's capacity checks it once more.
        total = yield from _gradient(key, fixed.rounded(rows).T, batch, masks, coins)
        yield from emit(GradientSeen(batch.iteration, batch.epoch, batch.rows, weights, total))
        gradient = total * (-unit / len(batch.rows))
        weights = weights - rate.at(batch.iteration) * (gradient + penalty.gradient(weights))
    return weights


def _gradient(
    key: PublicKey, encoded: IndexArray, batch: Batch, masks: Entropy, coins: Entropy
) -> Program[IndexArray]:
    """``X^T r`` of one batch in exact integers: the encrypted round trip."""
    sent = yield from receive(EncryptedResidues)
    require_turn("EncryptedResidues", sent.iteration, batch.iteration)
    mask = key.draw_mask(len(encoded), masks)
    answer = key.masked_product(encoded, sent.residues, mask, coins)
    yield from send(MaskedGradient(batch.iteration, answer))
    revealed = yield from receive(RevealedGradient)
    require_turn("RevealedGradient", revealed.iteration, batch.iteration)
    return key.unmask(revealed.gradient.value, mask)
