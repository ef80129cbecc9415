"""Bob's side of the training in which Alice learns the gradient of every batch.

The chart of messages stands in Alice's file. Bob sees ``X_A w_A`` of every batch in clear, and the
masked gradient; what he returns passes through his mechanism and is charged before it is sent.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import FloatArray
from tacit.data.tables import FeatureTable, LabelTable
from tacit.numerics.logistic import gradient, residue
from tacit.privacy.base import GradientRelease
from tacit.privacy.ledger import Ledger
from tacit.protocol.bob.batch_seed import batch_seed
from tacit.protocol.bob.product import offer_key, released_product
from tacit.protocol.events import Progress
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import BatchSeed, PublicBytes
from tacit.protocol.scores import receive_scores, require_finite
from tacit.protocol.steps import Program, emit, send
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
    key = yield from offer_key(terms, hello, entropy)
    plan = terms.plan(batch_seed(entropy), features.rows)
    yield from send(BatchSeed(PublicBytes(plan.seed)))

    rate, penalty, grid = terms.rate, terms.penalty, terms.residue_grid
    weights = np.zeros(len(features.columns))
    for batch in plan:
        rows = features.values.take(batch.rows, axis=0)
        theirs = yield from receive_scores(batch.iteration, len(batch.rows))
        residues = residue(require_finite(theirs + rows @ weights), labels.values[batch.rows])
        yield from released_product(
            key,
            grid.encode(residues, 0),
            batch.rows,
            hello.columns,
            batch.iteration,
            mechanism,
            ledger,
            entropy,
        )
        step = gradient(rows, residues) + penalty.gradient(weights, features.free)
        weights = weights - rate.at(batch.iteration) * step
        yield from emit(Progress(batch.iteration + 1, plan.iterations, batch.rows))
    return weights
