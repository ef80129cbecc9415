"""Bob's side of the training in which he sends every residue with noise, unencrypted.

The chart of messages is in Alice's file. Bob's own weights are updated with what he released:
what Alice sees of other rows then depends on a label only through that row's own releases. Updating
them with the true residues is possible, and makes every total in the ledger infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.arrays import EVERY_ROW, ByteLabels, FloatArray
from taciturn.errors import BudgetExceeded, PrivacyError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.logistic import gradient, residue
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.events import PrivacyEvent
from taciturn.privacy.ledger import TRUE_UPDATES, Ledger
from taciturn.privacy.noise import Stock
from taciturn.protocol.batches import Batch
from taciturn.protocol.bob.held_out import watch
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import BatchScored
from taciturn.protocol.bob.opening import greet, with_seed
from taciturn.protocol.bob.partners import receive_all_scores
from taciturn.protocol.events import Boundary, Progress
from taciturn.protocol.messages import BudgetSpent, NoisyResidues, RealResidues
from taciturn.protocol.outcome import BobTrained, StopReason
from taciturn.protocol.scores import require_finite
from taciturn.protocol.steps import Program, emit, send_all
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint


def train(inputs: BobInputs[ResidueMechanism[Any]]) -> Program[BobTrained]:
    """Trains Bob's weights, one per column, and answers Alice; ends where the ledger is spent."""
    features, terms = inputs.features, inputs.terms
    mechanism, ledger = inputs.mechanism, inputs.ledger
    with_true = terms.agreement.bob_update == "true"
    if with_true and features.columns:
        _taint_totals(mechanism, ledger)
    state = inputs.resume or (yield from greet(inputs))
    state = yield from with_seed(inputs, state)
    plan = terms.plan(state.seed, features.rows)

    rate, penalty, names = terms.rate, terms.penalty, inputs.partners
    release = _Release(terms, mechanism, inputs.entropy.fork("noise"))
    weights, losses = state.weights, state.losses
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights, losses)))
        rows = features.values.take(batch.rows, axis=0)
        alice_scores = yield from receive_all_scores(
            names, batch.iteration, len(batch.rows), terms.score_grid
        )
        # Asked before anything is drawn: Alice learns when the budget ended, and nothing else.
        if not ledger.affords(mechanism.event, batch.rows):
            yield from send_all(names, BudgetSpent(batch.iteration))
            return BobTrained.from_state(state, weights, batch.iteration, StopReason.BUDGET)
        scores, truth = (
            require_finite(alice_scores + rows @ weights),
            inputs.labels.values[batch.rows],
        )
        ledger.charge(mechanism.event, batch.rows)
        message, released = release(batch, scores, truth)
        _require_charged(message.residues.event, mechanism)
        # The same to all: several Alices who pool what they have see one release.
        yield from send_all(names, message)
        used = residue(scores, truth) if with_true else released
        pace = rate.at(batch.iteration)
        step, shrink = pace * released / len(batch.rows), 1.0 - pace * penalty.l2
        yield from emit(BatchScored(batch.iteration, batch.rows, alice_scores, step, shrink))
        bob_gradient = gradient(rows, used) + penalty.gradient(weights, features.free)
        weights = weights - pace * bob_gradient
        yield from emit(Progress(batch.iteration + 1, plan.iterations, batch.rows, scores))
        if plan.ends_epoch(batch):
            losses, stop = yield from watch(inputs, weights, losses, batch.iteration)
            if stop:
                ended = batch.iteration + 1
                return BobTrained.from_state(state, weights, ended, StopReason.LOSS)
    return BobTrained.from_state(state, weights, plan.iterations)


def _require_charged(event: PrivacyEvent, mechanism: ResidueMechanism[Any]) -> None:
    if event != mechanism.event:
        raise PrivacyError(
            f"{mechanism.name} releases {event.name}, and {mechanism.event.name} was charged"
        )


def _taint_totals(mechanism: ResidueMechanism[Any], ledger: Ledger) -> None:
    # His next scores carry true residues of this batch into releases of other rows.
    ledger.taint(TRUE_UPDATES)
    if not ledger.affords(mechanism.event, EVERY_ROW):
        raise BudgetExceeded(
            "no budget is possible where Bob updates his own weights with true residues",
            setting="budget",
            hint=Hint("use {bob_update}, or leave the budget out", bob_update="released"),
        )


class _Release:
    """Turns scores and labels into the message, and the residues that it reveals."""

    def __init__(self, terms: Terms, mechanism: ResidueMechanism[Any], entropy: Entropy) -> None:
        self._terms = terms
        self._mechanism = mechanism
        self._entropy = entropy
        self._stock = Stock(mechanism.draw, entropy, terms.longest_batch)

    def __call__(
        self, batch: Batch, scores: FloatArray, labels: ByteLabels
    ) -> tuple[NoisyResidues | RealResidues, FloatArray]:
        if self._terms.agreement.noise == "continuous":
            entropy = self._entropy.fork(f"continuous {batch.iteration}")
            real = self._mechanism.release_real(residue(scores, labels), entropy)
            return RealResidues(batch.iteration, real), real.value
        grid = self._terms.residue_grid
        # The label moves the integer by exactly 2^bits; rounding y - f whole might move it by more.
        secret = (labels.astype(np.int64) << grid.bits) - grid.rounded(sigmoid(scores))
        noisy = self._mechanism.release(secret, self._stock.take(batch.iteration, len(secret)))
        return NoisyResidues(batch.iteration, noisy), grid.decode(noisy.value)
