"""Bob's search in newton: one direction a pass, and the best point of all that they span.

Where the model is to be told (``reveal_epsilon``) he descends on a public schedule instead
(``numerics.descent``): the same messages, with less in them that a label can move. Otherwise he
knows what each direction does to the scores. So he minimises the penalised loss over the span of
all directions so far and over his own columns, exactly and alone (``numerics.subspace``), and asks
for the next direction: the steepest descent from there. The last product, of the combination that
he ended with, is Alice's part of the model.

**What he does never depends on what he receives**: a fixed number of passes, and in each the same
work, whatever the values are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.numerics.descent import DescentSolver
from taciturn.numerics.metrics import Metrics, evaluate
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import DirectionScored
from taciturn.protocol.events import Boundary, HeldOutSeen, Progress
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import SearchState, TrainingState
from taciturn.protocol.steps import Program, emit

_NO_SCORES = np.empty(0)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a direction does to Alice's part of the scores.

    Args:
        train: Of the training rows.
        held_out: Of the held-out rows, where they are looked at after each pass.
        suspected_wraps: How many of the former lay near the end of their range.
    """

    train: FloatArray = field(repr=False)
    held_out: FloatArray = field(default_factory=lambda: _NO_SCORES, repr=False)
    suspected_wraps: int = 0


Measure: TypeAlias = Callable[[int, IntArray], Program[Measured]]
"""Asks Alice what a direction, on its grid, does; the first argument is the pass."""


class Solver(Protocol):
    """What chooses the next direction: ``SubspaceSolver``, or one on a public schedule."""

    @property
    def weights(self) -> FloatArray:
        """Bob's own, now."""

    @property
    def coefficients(self) -> FloatArray:
        """The state, beside directions and scores."""

    @property
    def mixture(self) -> FloatArray:
        """How much of each direction the weights of now have."""

    def resume(self, directions: FloatArray, scores: FloatArray, coefficients: FloatArray) -> None:
        """Takes over the state of another solver of the same rows."""

    def direction(self) -> FloatArray:
        """The next direction: one number for each row."""

    def add(self, direction: FloatArray, scores: FloatArray, *, last: bool = False) -> None:
        """Takes a direction, as it was sent, with Alice's scores for it."""

    def scores(self) -> FloatArray:
        """The rows' scores with the weights of both, now."""

    def conclude(self) -> tuple[FloatArray, FloatArray]:
        """The numbers of the rows whose product is Alice's part, and Bob's own weights."""


@dataclass(frozen=True, slots=True)
class Searched:
    """Where the search ended.

    Args:
        weights: Bob's own.
        combination: The numbers of the rows whose product is Alice's part, on their grid.
        suspected_wraps: How many scores may have wrapped.
    """

    weights: FloatArray = field(repr=False)
    combination: IntArray = field(repr=False)
    suspected_wraps: int


def search(
    inputs: BobInputs[EncryptedMechanism], state: TrainingState, scales: Scales, measure: Measure
) -> Program[Searched]:
    """All passes but the last product."""
    solver, passes = _solver(inputs, state, scales), inputs.terms.agreement.epochs
    done, losses = state.search or SearchState(), state.losses
    suspected_wraps = state.suspected_wraps
    for number in range(state.iteration, passes + 1):
        done = replace(done, coefficients=solver.coefficients)
        at = state.at(number, solver.weights, losses, suspected_wraps=suspected_wraps)
        yield from emit(Boundary(replace(at, search=done)))
        coins = inputs.entropy.fork(f"rounding {number}")
        if number == passes:
            break
        direction = scales.directions(solver.direction(), coins)
        measured = yield from measure(number, direction)
        suspected_wraps += measured.suspected_wraps
        done = _with(done, direction, measured)
        last = number == passes - 1
        numbers = scales.numbers(direction)
        yield from emit(DirectionScored(number, numbers, measured.train))
        solver.add(numbers, measured.train, last=last)
        scores = solver.scores()
        yield from emit(Progress(number + 1, passes, np.arange(len(scores)), scores))
        if inputs.scored_each_epoch is not None:
            shift = inputs.terms.log_odds_shift
            metrics = _look(inputs.scored_each_epoch, done, solver, shift)
            losses = np.append(losses, metrics.loss)
            yield from emit(HeldOutSeen(number, metrics))
    combination, weights = solver.conclude()
    return Searched(weights, scales.directions(combination, coins), suspected_wraps)


def _solver(inputs: BobInputs[EncryptedMechanism], state: TrainingState, scales: Scales) -> Solver:
    """His solver, as the state left it."""
    labels, method, features = inputs.labels.values, inputs.mechanism, inputs.features
    descends = inputs.terms.agreement.reveal_epsilon is not None
    solver: Solver = (DescentSolver if descends else SubspaceSolver)(
        lambda scores: method.likelihood(scores, labels),
        features.values,
        inputs.terms.agreement.l2,
        features.free,
    )
    if state.search is not None:
        solver.resume(
            scales.numbers(np.array(state.search.directions).reshape(-1, features.rows)),
            np.array(state.search.scores).reshape(-1, features.rows),
            state.search.coefficients,
        )
    return solver


def _with(done: SearchState, direction: IntArray, measured: Measured) -> SearchState:
    return SearchState(
        (*done.directions, direction),
        (*done.scores, measured.train),
        (*done.held_out, measured.held_out),
    )


def _look(held_out: HeldOut, done: SearchState, solver: Solver, shift: float) -> Metrics:
    """How good the model of now is on the held-out rows: for Bob's eyes."""
    theirs = solver.mixture @ np.stack(done.held_out)
    scores = theirs + held_out.features.values @ solver.weights
    return evaluate(np.nan_to_num(scores), held_out.labels.values, shift)
