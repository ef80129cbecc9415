"""Bob's side of ``hybrid``. The chart of messages is in Alice's file.

Only he knows which of the rows that Alice scores are the batch. A marked row that the response
turned to 0 is not scored and takes no part in the iteration; where all were, nothing is learnt from
it but the penalty, and nothing is visible of that.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.numerics.logistic import gradient
from taciturn.privacy.base import Released
from taciturn.privacy.batch_response import HiddenBatch, Hybrid, draw_batch
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.bob.held_out import watch
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import BatchScored
from taciturn.protocol.bob.opening import greet, with_key
from taciturn.protocol.bob.partners import Partners
from taciturn.protocol.bob.products import released_product
from taciturn.protocol.events import Boundary, Progress
from taciturn.protocol.messages import HiddenBatchOffer, RowNumbers
from taciturn.protocol.outcome import BobTrained, StopReason
from taciturn.protocol.scores import receive_scores, require_finite
from taciturn.protocol.steps import Program, emit, send
from taciturn.protocol.terms import Terms


def train(inputs: BobInputs[Hybrid]) -> Program[BobTrained]:
    """Trains Bob's weights, one per column, and answers Alice; counts the repeated draws."""
    features, terms, mechanism = inputs.features, inputs.terms, inputs.mechanism
    state = inputs.resume or (yield from greet(inputs))
    fewest = terms.too_few(state.columns)
    # Before the key leaves: a design that asks for too few rows ends the training here.
    mechanism.design.require(fewest, features.rows)
    state, key = yield from with_key(inputs, state)
    partners = Partners.for_training(inputs.partners, state)

    rate, penalty = terms.rate, terms.penalty
    per_epoch = terms.per_epoch(features.rows)
    iterations = terms.iterations(features.rows)
    weights, losses, redraws = state.weights, state.losses, 0
    for iteration in range(state.iteration, iterations):
        yield from emit(Boundary(state.at(iteration, weights, losses)))
        entropy = inputs.entropy.fork(f"batch {iteration}")
        batch = draw_batch(mechanism.design, fewest, features.rows, entropy)
        redraws += batch.redraws
        yield from _offer(iteration, batch, mechanism, inputs.ledger)
        alice_scores = yield from receive_scores(iteration, len(batch.asked))
        true, rows = batch.asked[batch.true], features.values.take(batch.asked, axis=0)
        scores = require_finite(alice_scores + rows @ weights)[batch.true]
        residues = mechanism.residue(scores, inputs.labels.values[true]) if len(true) else scores
        encoded = _encoded(residues, batch, terms)
        yield from released_product(inputs, partners, key, encoded, true, iteration)
        pace = rate.at(iteration)
        step, shrink = np.zeros(len(batch.asked)), 1.0 - pace * penalty.l2
        bob_gradient = penalty.gradient(weights, features.free)
        # The response may have turned every marked row to 0.
        if len(true):
            step[batch.true] = pace * residues / len(true)
            bob_gradient = bob_gradient + gradient(rows[batch.true], residues)
        yield from emit(BatchScored(iteration, batch.asked, alice_scores, step, shrink))
        weights = weights - pace * bob_gradient
        yield from emit(Progress(iteration + 1, iterations, true, scores))
        if (iteration + 1) % per_epoch == 0:
            losses, stop = yield from watch(inputs, weights, losses, iteration)
            if stop:
                return BobTrained(weights, iteration + 1, StopReason.LOSS, redraws=redraws)
    return BobTrained(weights, iterations, redraws=redraws)


def _offer(iteration: int, batch: HiddenBatch, mechanism: Hybrid, ledger: Ledger) -> Program[None]:
    event = mechanism.response_event
    ledger.charge(event, batch.subset)
    bits = Released(batch.response.astype(np.int64), event)
    yield from send(HiddenBatchOffer(iteration, RowNumbers(batch.subset), bits))


def _encoded(residues: FloatArray, batch: HiddenBatch, terms: Terms) -> IntArray:
    """``(batch_size / k) r`` on the true batch, zero on the other rows that Alice scored."""
    spread = np.zeros(len(batch.asked))
    if len(residues):
        spread[batch.true] = residues * (terms.agreement.sgd.batch_size / len(residues))
    return terms.residue_grid.encode(spread, terms.headroom_bits)
