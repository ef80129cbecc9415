"""Bob's side of the training in which Alice learns the gradient of every batch.

The chart of messages is in Alice's file. Bob sees ``X_A w_A`` of every batch in clear, and the
masked gradient; what he returns passes through his mechanism and is charged before it is sent.
"""

from __future__ import annotations

from taciturn.numerics.logistic import gradient
from taciturn.privacy.base import GradientMechanism
from taciturn.protocol.bob.held_out import watch
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import BatchScored
from taciturn.protocol.bob.opening import greet, with_key, with_seed
from taciturn.protocol.bob.partners import Partners, receive_all_scores
from taciturn.protocol.bob.products import released_product
from taciturn.protocol.events import Boundary, Progress
from taciturn.protocol.outcome import BobTrained, StopReason
from taciturn.protocol.scores import require_finite
from taciturn.protocol.steps import Program, emit


def train(inputs: BobInputs[GradientMechanism]) -> Program[BobTrained]:
    """Trains Bob's weights, one per column, and answers Alice."""
    features, terms, mechanism = inputs.features, inputs.terms, inputs.mechanism
    state = inputs.resume or (yield from greet(inputs))
    state, key = yield from with_key(inputs, state)
    state = yield from with_seed(inputs, state)
    plan = terms.plan(state.seed, features.rows)
    names, partners = inputs.partners, Partners.for_training(inputs.partners, state)

    rate, penalty, grid = terms.rate, terms.penalty, terms.residue_grid
    weights, losses = state.weights, state.losses
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights, losses)))
        rows = features.values.take(batch.rows, axis=0)
        alice_scores = yield from receive_all_scores(
            names, batch.iteration, len(batch.rows), terms.score_grid
        )
        scores = require_finite(alice_scores + rows @ weights)
        residues = mechanism.residue(scores, inputs.labels.values[batch.rows])
        encoded = grid.encode(residues, 0)
        yield from released_product(inputs, partners, key, encoded, batch.rows, batch.iteration)
        pace = rate.at(batch.iteration)
        step = pace * residues / len(batch.rows)
        shrink = 1.0 - pace * penalty.l2
        yield from emit(BatchScored(batch.iteration, batch.rows, alice_scores, step, shrink))
        bob_gradient = gradient(rows, residues) + penalty.gradient(weights, features.free)
        weights = weights - pace * bob_gradient
        yield from emit(Progress(batch.iteration + 1, plan.iterations, batch.rows, scores))
        if plan.ends_epoch(batch):
            losses, stop = yield from watch(inputs, weights, losses, batch.iteration)
            if stop:
                ended = batch.iteration + 1
                return BobTrained.from_state(state, weights, ended, StopReason.LOSS)
    return BobTrained.from_state(state, weights, plan.iterations)
