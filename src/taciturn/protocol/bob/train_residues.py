"""Bob's side of the training in which he tells every residue, with noise and unencrypted.

The chart of messages stands in Alice's file. Bob's own weights are updated with what he released:
what Alice sees of other rows then depends on a label only through that row's own releases. Updating
them with the true residues is possible, and makes every total in the ledger infinite.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import ByteLabels, FloatArray
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.errors import BudgetExceeded
from taciturn.faces import Hint
from taciturn.numerics.logistic import gradient, residue, sigmoid
from taciturn.privacy.base import ResidueRelease
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.noise import LaplaceStock
from taciturn.protocol.batches import Batch
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.bob.held_out import STOPPED, watch
from taciturn.protocol.events import Boundary, Progress, Stopped
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.messages import BudgetSpent, NoisyResidues, RealResidues
from taciturn.protocol.scores import receive_scores, require_finite
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

TRUE_UPDATES = (
    "no protection: Bob updates his own weights with true residues, "
    "so that every later release of every row depends on each label"
)


def train(
    features: FeatureTable,
    labels: LabelTable,
    terms: Terms,
    mechanism: ResidueRelease,
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
        mechanism: What is done to the residues before they are sent.
        ledger: Charged before every release; where it is spent, the training ends.
        entropy: His coins: his share of the batch seed, and the noise.
        resume: Where to go on; None to begin.
        held_out: His part of the held-out rows, where they are looked at after each epoch.

    Returns:
        His weights, one per column; an intercept is his last column and is not penalised.

    Raises:
        BudgetExceeded: There is a budget, and true updates would exceed any.
    """
    labels.ids.require_same(features.ids, names=("the labels", "bob's columns"))
    with_true = terms.agreement.bob_update == "true"
    if with_true and features.columns:
        _give_up_totals(features, mechanism, ledger)
    state = resume or (yield from _open(features, terms, entropy))
    plan = terms.plan(state.seed, features.rows)

    rate, penalty = terms.rate, terms.penalty
    release = _Release(terms, mechanism, entropy.fork("noise"))
    weights, losses = state.weights, state.losses
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights, losses)))
        rows = features.values.take(batch.rows, axis=0)
        theirs = yield from receive_scores(batch.iteration, len(batch.rows))
        if not ledger.affords(mechanism.event, batch.rows):
            yield from send(BudgetSpent(batch.iteration))
            yield from emit(Stopped(batch.iteration, "the privacy budget is spent"))
            return weights
        scores, truth = require_finite(theirs + rows @ weights), labels.values[batch.rows]
        ledger.charge(mechanism.event, batch.rows)
        message, released = release(batch, scores, truth)
        yield from send(message)
        used = residue(scores, truth) if with_true else released
        step = gradient(rows, used) + penalty.gradient(weights, features.free)
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


def _open(features: FeatureTable, terms: Terms, entropy: Entropy) -> Program[TrainingState]:
    """Everything before the first iteration."""
    hello = yield from shake_hands(greeting("bob", terms.agreement.canonical(), features))
    seed = yield from agree_seed(entropy)
    return TrainingState(0, np.zeros(len(features.columns)), seed, columns=hello.columns)


def _give_up_totals(features: FeatureTable, mechanism: ResidueRelease, ledger: Ledger) -> None:
    ledger.taint(TRUE_UPDATES)
    if not ledger.affords(mechanism.event, np.arange(features.rows)):
        raise BudgetExceeded(
            "no budget can be kept where Bob updates his own weights with true residues",
            setting="budget",
            hint=Hint("use {bob_update}, or leave the budget out", bob_update="released"),
        )


class _Release:
    """Turns scores and labels into the message that leaves, and the residues it tells."""

    def __init__(self, terms: Terms, mechanism: ResidueRelease, entropy: Entropy) -> None:
        self._terms = terms
        self._mechanism = mechanism
        self._entropy = entropy
        self._stock = LaplaceStock(entropy, terms.longest_batch)

    def __call__(
        self, batch: Batch, scores: FloatArray, labels: ByteLabels
    ) -> tuple[NoisyResidues | RealResidues, FloatArray]:
        if self._terms.agreement.noise == "continuous":
            coins = self._entropy.fork(f"continuous {batch.iteration}")
            real = self._mechanism.release_real(residue(scores, labels), coins)
            return RealResidues(batch.iteration, real), real.value
        grid = self._terms.residue_grid
        # The label moves the integer by exactly 2^bits; rounding y - f whole might move it by more.
        secret = (labels.astype(np.int64) << grid.bits) - grid.rounded(sigmoid(scores))
        noisy = self._mechanism.release(secret, self._stock.take(batch.iteration, len(secret)))
        return NoisyResidues(batch.iteration, noisy), grid.decode(noisy.value)
