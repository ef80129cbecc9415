"""Bob's side of the training in which Alice learns the gradient of every batch.

The chart of messages stands in Alice's file. Bob sees ``X_A w_A`` of every batch in clear, and the
masked gradient; what he returns passes through his mechanism and is charged before it is sent.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import FloatArray
from tacit.crypto.base import EncryptedAnswer
from tacit.data.tables import FeatureTable, LabelTable
from tacit.errors import RemoteProtocolError
from tacit.numerics.logistic import gradient, residue
from tacit.privacy.base import GradientRelease
from tacit.privacy.ledger import Ledger
from tacit.protocol.batches import Batch
from tacit.protocol.bob.batch_seed import batch_seed
from tacit.protocol.events import Progress
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import (
    EncryptedResidues,
    MaskedGradient,
    PublicBytes,
    RevealedGradient,
    Setup,
)
from tacit.protocol.scores import receive_scores, require_finite
from tacit.protocol.steps import Program, emit, receive, require_turn, send
from tacit.protocol.terms import Terms
from tacit.rng import Entropy


def train(
    features: FeatureTable,
    labels: LabelTable,
    terms: Terms,
    mechanism: GradientRelease,
    ledger: Ledger,
    entropy: Entropy,
) -> Program[FloatArray]:
    """Trains Bob's weights and answers Alice.

    Args:
        features: His columns (there may be none), rows in the agreed order.
        labels: The labels of the same rows.
        terms: The agreement in use.
        mechanism: What is done to a gradient before it is returned.
        ledger: Charged before every release.
        entropy: His coins: the key, the batch seed, encryption, noise.

    Returns:
        His weights, one per column; an intercept is his last column and is not penalised.
    """
    labels.ids.require_same(features.ids, names=("the labels", "bob's columns"))
    hello = yield from shake_hands(greeting("bob", terms.agreement.canonical(), features))
    key = terms.scheme.generate(
        terms.agreement.key_bits,
        terms.capacity(hello.magnitude_bits, features.rows),
        entropy.fork("key"),
    )
    plan = terms.plan(batch_seed(entropy), features.rows)
    yield from send(Setup(PublicBytes(key.public.to_bytes()), PublicBytes(plan.seed)))

    rate, penalty, grid = terms.rate, terms.penalty, terms.residue_grid
    weights = np.zeros(len(features.columns))
    for batch in plan:
        rows = features.values.take(batch.rows, axis=0)
        theirs = yield from receive_scores(batch.iteration, len(batch.rows))
        residues = residue(require_finite(theirs + rows @ weights), labels.values[batch.rows])
        encoded = grid.encode(residues, 0)
        coins = entropy.fork(f"encryption {batch.iteration}")
        encrypted = key.encrypt(encoded, hello.columns, coins)
        yield from send(EncryptedResidues(batch.iteration, encrypted))
        # Before waiting, not after: Alice is at work on her product meanwhile.
        key.stock(hello.columns, len(encoded), coins)
        answer = yield from _answer(batch, hello.columns)
        masked = key.decrypt(answer, len(encoded))
        ledger.charge(mechanism.event, batch.rows)
        released = mechanism.release(masked, entropy.fork(f"noise {batch.iteration}"))
        yield from send(RevealedGradient(batch.iteration, released))
        step = gradient(rows, residues) + penalty.gradient(weights, features.free)
        weights = weights - rate.at(batch.iteration) * step
        yield from emit(Progress(batch.iteration + 1, plan.iterations))
    return weights


def _answer(batch: Batch, columns: int) -> Program[EncryptedAnswer]:
    message = yield from receive(MaskedGradient)
    require_turn("MaskedGradient", message.iteration, batch.iteration)
    if message.answer.length != columns:
        raise RemoteProtocolError(
            f"the peer answers with {message.answer.length} entries for {columns} columns"
        )
    return message.answer
