"""Bob's search in newton: one direction a pass, and the best point of all that they span.

Where the model is to be released (``reveal_epsilon``) he descends on a public schedule instead
(``numerics.descent``): the same messages, with less in them that a label can move. Otherwise he
knows what each direction does to the scores. So he minimises the penalised loss over the span of
all directions so far and over his own columns, exactly and alone (``numerics.subspace``), and asks
for the next direction: the steepest descent from there. The last product, of the combination that
he ended with, is Alice's part of the model.

**What he does never depends on what he receives**: a fixed number of passes, and in each the same
work, whatever the values are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.memmap import drop_pages, over_blocks
from taciturn.numerics.descent import DescentSolver
from taciturn.numerics.label_metrics import ModelMetrics, evaluate_labels, labels_loss
from taciturn.numerics.likelihood import response_likelihood
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.numerics.symmetry import OpenedPasses
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import DirectionScored
from taciturn.protocol.events import Boundary, HeldOutSeen, Progress
from taciturn.protocol.outcome import HeldOut
from taciturn.protocol.scales import Scales
from taciturn.protocol.search_state import SearchState
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit
from taciturn.protocol.table_scales import direction_numbers, directions

_NO_SCORES = np.empty(0)


@dataclass(frozen=True, slots=True)
class DirectionScores:
    """Change of Alice's partial scores along a direction.

    ``held_out`` is empty where held-out rows are not looked at after each pass. ``suspected_wraps``
    counts scores of ``train`` near the end of their range. ``exact`` has them as integers, where
    Alice's program rounds none of them.
    """

    train: FloatArray = field(repr=False)
    held_out: FloatArray = field(default_factory=lambda: _NO_SCORES, repr=False)
    suspected_wraps: int = 0
    exact: IntArray | None = field(default=None, repr=False)


Measure: TypeAlias = Callable[[int, IntArray], Program[DirectionScores]]
"""Asks Alice what a direction, on its grid, does; the first argument is the pass."""


class Solver(Protocol):
    """Solver that chooses the next direction: ``SubspaceSolver``, or one on a public schedule."""

    @property
    def weights(self) -> FloatArray:
        """Bob's own, now."""

    @property
    def objective(self) -> float | None:
        """The penalised mean loss after the last step; None where it is not comparable by pass."""

    @property
    def arrays(self) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """The long part of the state: directions and scores, one array a pass."""

    @property
    def position(self) -> FloatArray:
        """The short part of the state."""

    @property
    def mixture(self) -> FloatArray:
        """Coefficient of each direction in the current weights."""

    def resume(
        self, directions: Sequence[FloatArray], scores: Sequence[FloatArray], position: FloatArray
    ) -> None:
        """Takes over the state of another solver of the same rows."""

    def direction(self) -> FloatArray:
        """The next direction: one number for each row."""

    def add(self, direction: FloatArray, scores: FloatArray, *, last: bool = False) -> None:
        """Takes a direction, as it was sent, with Alice's scores for it."""

    def scores(self) -> FloatArray:
        """The rows' scores with the weights of both, now."""

    def conclude(self, penalty: int = 0, /) -> tuple[FloatArray, FloatArray]:
        """The numbers of the rows whose product is Alice's part, and Bob's own weights."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A model at the end of the search.

    ``combination`` has the numbers of the rows whose product is Alice's part, on their grid.
    ``losses`` are the training losses after the turns of its penalty, and at the end, where several
    penalties share the search.
    """

    weights: FloatArray = field(repr=False)
    combination: IntArray = field(repr=False)
    losses: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of the search.

    ``solutions`` has one for each penalty, made as it is asked for. ``opened`` is what he asked and
    was answered in all passes, where that can be tested.
    """

    solutions: Iterator[Solution] = field(repr=False)
    suspected_wraps: int
    opened: OpenedPasses | None = field(default=None, repr=False)


def search(
    inputs: BobInputs[EncryptedMechanism],
    state: TrainingState,
    scales: Scales,
    measure: Measure,
    unwhitened: float | None = None,
) -> Program[SearchResult]:
    """All passes but the last product.

    ``unwhitened`` is what the square of a weight costs where several Alices do not whiten.
    """
    solver, passes = _solver(inputs, state, unwhitened), inputs.terms.rounds
    looks, opened, turns = (
        _HeldOutTracker.from_state(inputs, state),
        _Opened.from_state(inputs, state),
        _Turns(inputs),
    )
    losses, suspected_wraps = state.losses, state.suspected_wraps
    scratch = inputs.scratch
    if state.iteration and inputs.terms.agreement.models == 1:
        # Again, to be compared with the next pass: whoever resumes has not seen these scores.
        scores = solver.scores()
        yield from emit(
            Progress(state.iteration, passes, scores=scores, objective=solver.objective)
        )
        del scores
    for number in range(state.iteration, passes + 1):
        at = state.at(number, solver.weights, losses, suspected_wraps=suspected_wraps)
        done = SearchState(
            *solver.arrays, looks.arrays(number), solver.position, opened.arrays(number)
        )
        yield from emit(Boundary(replace(at, search=done)))
        if number == passes:
            break
        entropy = inputs.entropy.fork(f"rounding {number}")
        direction = directions(scales, solver.direction(), entropy, scratch)
        measured = yield from measure(number, direction)
        suspected_wraps += measured.suspected_wraps
        numbers = direction_numbers(scales, direction, scratch)
        # Of a long table each array takes room: what is over is let go.
        del direction
        yield from emit(DirectionScored(number, numbers, measured.train))
        solver.add(numbers, measured.train, last=number == passes - 1)
        del numbers
        looks.note(number, measured.held_out)
        opened.note(number, measured.exact)
        del measured
        scores = solver.scores()
        yield from emit(Progress(number + 1, passes, scores=scores, objective=solver.objective))
        losses = turns.noted(losses, scores)
        del scores
        metrics = looks.metrics(number, solver)
        if metrics is not None:
            losses = np.append(losses, metrics.loss)
            yield from emit(HeldOutSeen(number, metrics))
    solutions = _solutions(inputs, solver, scales, turns, losses)
    return SearchResult(solutions, suspected_wraps, opened.passes(solver, scales))


def _solutions(
    inputs: BobInputs[EncryptedMechanism],
    solver: Solver,
    scales: Scales,
    turns: _Turns,
    losses: FloatArray,
) -> Iterator[Solution]:
    agreed = inputs.terms.agreement
    for penalty in range(agreed.models):
        combination, weights = solver.conclude(penalty)
        entropy = inputs.entropy.fork(f"rounding {agreed.rounds + penalty}")
        whole = directions(scales, combination, entropy, inputs.scratch)
        yield Solution(weights, whole, turns.of_penalty(penalty, losses, solver))


@dataclass(frozen=True, slots=True)
class _Turns:
    """Training losses of several penalties that share a search; one penalty has its events.

    Whose turn it is follows from the pass.
    """

    inputs: BobInputs[EncryptedMechanism]

    def noted(self, losses: FloatArray, scores: FloatArray) -> FloatArray:
        """The losses of all passes so far."""
        if self.inputs.terms.agreement.penalties is None:
            return losses
        return np.append(losses, self._loss(scores))

    def of_penalty(self, penalty: int, losses: FloatArray, solver: Solver) -> tuple[float, ...]:
        """Losses of one of several penalties, pass by pass; empty where there is one only."""
        models = self.inputs.terms.agreement.models
        if models == 1:
            return ()
        # After a pass it is the turn of the next one's penalty; the last pass solves all.
        first = (models - 2 - penalty) % models
        return (*losses[first : len(losses) - 1 : models].tolist(), self._loss(solver.scores()))

    def _loss(self, scores: FloatArray) -> float:
        return labels_loss(scores, self.inputs.labels, self.inputs.terms.agreement.class_weight)


def _solver(
    inputs: BobInputs[EncryptedMechanism], state: TrainingState, unwhitened: float | None
) -> Solver:
    features, agreed = inputs.features, inputs.terms.agreement
    make: Callable[..., Solver] = DescentSolver
    if agreed.reveal_epsilon is None:
        penalties = agreed.penalties or ()
        family = inputs.labels.kind
        make = partial(SubspaceSolver, unwhitened=unwhitened, penalties=penalties, family=family)
    solver = make(
        response_likelihood(inputs.labels, inputs.mechanism.likelihood),
        features.values,
        agreed.l2,
        features.free,
        agreed.rounds,
        inputs.scratch,
    )
    if state.search is not None:
        solver.resume(state.search.directions, state.search.scores, state.search.position)
    return solver


@dataclass(frozen=True, slots=True)
class _Opened:
    """The scores of all passes as integers, which Bob tests once the training is over.

    They are kept and not tested on the way: what he finds must change nothing that Alice sees.

    ``scores`` are passes by rows; None where there is nothing to test.
    """

    scores: IntArray | None

    @classmethod
    def from_state(cls, inputs: BobInputs[EncryptedMechanism], state: TrainingState) -> _Opened:
        agreed, search = inputs.terms.agreement, state.search
        known = () if search is None else search.opened
        # Scores that travel in clear are rounded for it, so that they are no exact product. A
        # descent to a told model keeps its newest direction alone. One pass has no other to be
        # compared with.
        exact = inputs.terms.shares_weights and agreed.reveal_epsilon is None
        if not exact or agreed.rounds == 1:
            return cls(None)
        size = agreed.rounds, inputs.features.rows
        opened = cls(inputs.scratch.unnamed(size, np.int64))
        for number, scores in enumerate(known):
            opened.note(number, scores)
        return opened

    def arrays(self, passes: int) -> tuple[IntArray, ...]:
        return () if self.scores is None else tuple(self.scores[:passes])

    def note(self, number: int, scores: IntArray | None) -> None:
        if self.scores is not None and scores is not None:
            self.scores[number] = scores
            drop_pages(self.scores)

    def passes(self, solver: Solver, scales: Scales) -> OpenedPasses | None:
        if self.scores is None:
            return None
        directions, _ = solver.arrays
        return OpenedPasses(
            directions, tuple(self.scores), scales.residue_bits, scales.modulus_bits
        )


@dataclass(frozen=True, slots=True)
class _HeldOutTracker:
    """Metrics of the current model on the held-out rows, pass by pass; only Bob sees them.

    ``scores`` are what each pass did to Alice's part of the scores, passes by rows. ``shift`` is by
    how much class weights move scores.
    """

    held_out: HeldOut | None
    scores: FloatArray
    shift: float

    @classmethod
    def from_state(
        cls, inputs: BobInputs[EncryptedMechanism], state: TrainingState
    ) -> _HeldOutTracker:
        held_out, terms = inputs.scored_each_epoch, inputs.terms
        size = terms.rounds, 0 if held_out is None else held_out.features.rows
        looks = cls(held_out, inputs.scratch.unnamed(size, np.float64), terms.log_odds_shift)
        for number, scores in enumerate(() if state.search is None else state.search.held_out):
            looks.note(number, scores)
        return looks

    def arrays(self, passes: int) -> tuple[FloatArray, ...]:
        return () if self.held_out is None else tuple(self.scores[:passes])

    def note(self, number: int, scores: FloatArray) -> None:
        self.scores[number] = scores
        drop_pages(self.scores)

    def metrics(self, number: int, solver: Solver) -> ModelMetrics | None:
        if self.held_out is None:
            return None
        rows, mixture = self.held_out.features, solver.mixture

        def scored(place: slice) -> FloatArray:
            alice_scores = mixture @ self.scores[: number + 1, place]
            return np.nan_to_num(alice_scores + rows.values[place] @ solver.weights)

        scores = np.concatenate(list(over_blocks(scored, rows.rows, self.scores, rows.values)))
        return evaluate_labels(scores, self.held_out.labels, self.shift)
