"""Bob's side of the training in which Alice learns the gradient of every batch.

The chart of messages stands in Alice's file. Bob sees ``X_A w_A`` of every batch in clear, and the
masked gradient; what he returns passes through his mechanism and is charged before it is sent.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.base import SecretKey
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.numerics.logistic import gradient
from taciturn.privacy.base import GradientRelease
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.bob.held_out import STOPPED, watch
from taciturn.protocol.bob.product import kept_key, offer_key, released_product
from taciturn.protocol.events import Boundary, Progress, Stopped
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.scores import receive_scores, require_finite
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def train(
    features: FeatureTable,
    labels: LabelTable,
    terms: Terms,
    mechanism: GradientRelease,
    ledger: Ledger,
    entropy: Entropy,
    *,
    resume: TrainingState | None = None,
    held_out: HeldOut | None = None,
) -> Program[FloatArray]:
    """Trains Bob's weights and answers Alice.

    Args:
        features: His columns (there may be none), rows in the agreed order.
        labels: The labels of the same rows.
        terms: The agreement in use.
        mechanism: What is done to a gradient before it is returned.
        ledger: Charged before every release.
        entropy: His coins: the key, his share of the batch seed, encryption, noise.
        resume: Where to go on; None to begin.
        held_out: His part of the held-out rows, where they are looked at after each epoch.

    Returns:
        His weights, one per column; an intercept is his last column and is not penalised.
    """
    labels.ids.require_same(features.ids, names=("the labels", "bob's columns"))
    if resume is None:
        state, key = yield from _open(features, terms, entropy)
    else:
        state, key = resume, kept_key(terms, resume, features.rows)
    plan = terms.plan(state.seed, features.rows)

    rate, penalty, grid = terms.rate, terms.penalty, terms.residue_grid
    weights, losses = state.weights, state.losses
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights, losses)))
        rows = features.values.take(batch.rows, axis=0)
        theirs = yield from receive_scores(batch.iteration, len(batch.rows))
        scores = require_finite(theirs + rows @ weights)
        residues = mechanism.residue(scores, labels.values[batch.rows])
        yield from released_product(
            key,
            grid.encode(residues, 0),
            batch.rows,
            state.columns,
            batch.iteration,
            mechanism,
            ledger,
            entropy,
        )
        step = gradient(rows, residues) + penalty.gradient(weights, features.free)
        weights = weights - rate.at(batch.iteration) * step
        yield from emit(Progress(batch.iteration + 1, plan.iterations, batch.rows, scores))
        if held_out is not None and plan.ends_epoch(batch):
            losses, stop = yield from watch(
                held_out, weights, losses, batch.iteration, terms, ledger
            )
            if stop:
                yield from emit(Stopped(batch.iteration + 1, STOPPED))
                break
    return weights


def _open(
    features: FeatureTable, terms: Terms, entropy: Entropy
) -> Program[tuple[TrainingState, SecretKey]]:
    """Everything before the first iteration."""
    hello = yield from shake_hands(greeting("bob", terms.agreement.canonical(), features))
    key = yield from offer_key(terms, hello, entropy)
    seed = yield from agree_seed(entropy)
    weights = np.zeros(len(features.columns))
    state = TrainingState(0, weights, seed, key.to_bytes(), hello.columns, hello.magnitude_bits)
    return state, key
