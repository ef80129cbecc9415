"""Bob's side of the training in which Alice learns the gradient of every batch.

The chart of messages stands in Alice's file. Bob sees ``X_A w_A`` of every batch in clear, and the
masked gradient; what he returns passes through his mechanism and is charged before it is sent.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import FloatArray
from tacit.config import Agreement
from tacit.crypto.base import EncryptedAnswer, Scheme
from tacit.data.tables import FeatureTable, LabelTable
from tacit.errors import RemoteProtocolError
from tacit.numerics.fixedpoint import FixedPoint
from tacit.numerics.logistic import Penalty, gradient, residue
from tacit.numerics.schedule import LearningRate
from tacit.privacy.base import Mechanism
from tacit.privacy.ledger import Ledger
from tacit.protocol.batches import Batch, BatchPlan
from tacit.protocol.capacity import gradient_capacity
from tacit.protocol.events import Progress
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import (
    EncryptedResidues,
    MaskedGradient,
    PartialScores,
    PublicBytes,
    RevealedGradient,
    Setup,
)
from tacit.protocol.steps import Program, emit, receive, require_turn, send
from tacit.rng import KEY_BYTES, Entropy


def train(
    features: FeatureTable,
    labels: LabelTable,
    agreement: Agreement,
    scheme: Scheme,
    mechanism: Mechanism,
    ledger: Ledger,
    entropy: Entropy,
    *,
    free: int = 0,
) -> Program[FloatArray]:
    """Trains Bob's weights and answers Alice.

    Args:
        features: His columns (there may be none), rows in the agreed order.
        labels: The labels of the same rows.
        agreement: The settings both sides share.
        scheme: The encryption named in the agreement.
        mechanism: What is done to a gradient before it is returned.
        ledger: Charged before every release.
        entropy: His coins: the key, the batch seed, encryption, noise.
        free: How many of his last columns are not penalised (the intercept).

    Returns:
        His weights, one per column.
    """
    labels.ids.require_same(features.ids, names=("the labels", "bob's columns"))
    hello = yield from shake_hands(greeting("bob", agreement.canonical(), features))
    key = scheme.generate(
        agreement.key_bits,
        gradient_capacity(agreement, hello.magnitude_bits, features.rows),
        entropy.fork("key"),
    )
    plan = BatchPlan(
        batch_seed(entropy),
        features.rows,
        agreement.batch_size,
        agreement.epochs,
    )
    yield from send(Setup(PublicBytes(key.public.to_bytes()), PublicBytes(plan.seed)))

    fixed = FixedPoint(agreement.residue_bits)
    rate = LearningRate(agreement.learning_rate, agreement.schedule, agreement.decay)
    penalty = Penalty(agreement.l1, agreement.l2)
    coins, noise = entropy.fork("encryption"), entropy.fork("noise")

    weights = np.zeros(len(features.columns))
    for batch in plan:
        rows = features.values.take(batch.rows, axis=0)
        scores = (yield from _partial_scores(batch)) + rows @ weights
        residues = residue(scores, labels.values[batch.rows])
        encrypted = key.encrypt(fixed.encode(residues, 0), coins)
        yield from send(EncryptedResidues(batch.iteration, encrypted))
        masked = key.decrypt((yield from _masked_gradient(batch, hello.columns)))
        ledger.charge(mechanism.event, batch.rows)
        released = mechanism.release(masked, noise)
        yield from send(RevealedGradient(batch.iteration, released))
        step = gradient(rows, residues) + penalty.gradient(weights, free)
        weights = weights - rate.at(batch.iteration) * step
        yield from emit(Progress(batch.iteration + 1, plan.iterations))
    return weights


def batch_seed(entropy: Entropy) -> bytes:
    """The public seed of the batches, from a stream of its own."""
    return entropy.fork("batches").token(KEY_BYTES)


def _partial_scores(batch: Batch) -> Program[FloatArray]:
    message = yield from receive(PartialScores)
    require_turn("PartialScores", message.iteration, batch.iteration)
    if len(message.scores) != len(batch.rows):
        raise RemoteProtocolError(
            f"the peer scored {len(message.scores)} rows of a batch of {len(batch.rows)}"
        )
    return message.scores


def _masked_gradient(batch: Batch, columns: int) -> Program[EncryptedAnswer]:
    message = yield from receive(MaskedGradient)
    require_turn("MaskedGradient", message.iteration, batch.iteration)
    if message.answer.length != columns:
        raise RemoteProtocolError(
            f"the peer answers with {message.answer.length} entries for {columns} columns"
        )
    return message.answer
