"""The search of whole-table training: the best weights in the span of all directions so far.

Alice holds whitened columns ``X~`` (``taciturn.numerics.whitening``); every candidate for her
weights is ``w~ = X~^T a`` with a vector ``a`` of one number per row that Bob knows. In each pass he
sends a direction ``a_k`` and is given its scores ``z_k = X~ X~^T a_k``. With these as rows of ``A``
and ``Z``, coefficients ``c`` and his own columns ``X_B``, he minimises over c and his weights::

    mean loss(c Z + X_B w_B) + 1/2 c Q c^T + l2/2 |w_B|^2        Q = A Z^T - Z Z^T / 4n

which is the exact objective: ``c Q c^T`` is ``l2 |w_A|^2``. The next direction is its steepest
descent in w~, ``slope/n + z_A/4n - a`` with ``a = c A`` and ``z_A = c Z``, less what earlier
directions have of it, at a fixed length: so the range of what is sent and answered is public.

**Several Alices** (``unwhitened``): Bob knows the sum of their scores, and must not learn how it is
made up. So nobody whitens: all tables are divided by the same public number, their weights are
``w = X^T a`` of the joined table, and with the penalty's factor mu in these coordinates ``Q = mu A
Z^T``; the steepest descent is ``slope/n - mu a``. What he sees depends on ``X X^T`` of the joined,
rounded table alone, however its columns are dealt out.

**Several penalties share the directions** (``penalties``): a direction and its scores say the same
whatever the penalty. In the coordinates of the penalty ``l2`` another penalty p costs ``p/l2 c Q
c^T``, and the steepest descent is ``slope/n - p/l2 (a - z_A/4n)``. The penalties take turns, the
largest first: each pass asks for the steepest descent of the penalty whose turn it is, from its
best point so far. After the last pass each is solved in the span of all directions.

**Rows come by blocks** (``taciturn.memmap.over_blocks``): what is needed of all rows is a sum over
blocks in their order, so that neither cores nor memory change a digit. Directions and scores of all
passes may lie in files; beside them a few numbers for each row exist at a time.

**What is done never depends on values.** Labels and scores decide no count of iterations, trial
steps, walks over the rows or evaluations of the likelihood, nothing ends early, and nothing raises
whatever the scores. Only LAPACK takes a time of its own. The eigenvalues of a penalty, with a row
for each pass, and of matrices of at most 64 rows differ by a hundred microseconds at 64 rows, and
by milliseconds at 200. Other large matrices are eliminated, in as many operations whatever their
entries but for exchanges of rows: a few microseconds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.families.base import Family
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.memmap import MEMORY, Scratch, drop_pages, over_blocks, row_blocks
from taciturn.numerics.damped import MOST_EIGENVECTORS, TINY, damped_solve
from taciturn.numerics.likelihood import Likelihood, clip_scores
from taciturn.numerics.logistic import Penalty
from taciturn.numerics.whitening import centred, centring_offset, training_means

OUTER_ITERATIONS = 8
"""Newton's iterations before the first direction, on Bob's own columns, and after the last."""

ITERATIONS = 1
"""Newton's iterations after each direction between. Directions taken from the exact minimum of a
small span serve worse: there the model is sure of too much, and its slopes say less."""

SAFE_STEPS = (1.0, 8.0)
"""Lengths that are tried of a step by the largest curvature of a logistic loss, beside those of
Newton's. The first always makes such a loss smaller, also where flipped labels leave a curvature
that is negative or next to none. Where nothing that is tried is better, nothing is taken."""

PASSES_PER_PENALTY = 2
"""Passes that each of several penalties adds to those of one."""

MOST_RATIO = 1e4
"""Penalties farther apart than this share no directions: no coordinates serve both."""

PRICE = 10.0
"""What the penalty of known weights costs in a new direction, beside the length of their scores."""

# A score of a direction of length 1/sqrt(n) is below 4 sqrt(n): beyond this it has wrapped.
_MOST_SCORE = 2.0**24
# Below this part of its length, what a direction's scores have that is new is noise.
_LEAST_NEW = 1e-6
# Combinations with larger coefficients leave too few digits of the penalty.
_MOST_COEFFICIENT = 1e7
# Rows that are weighted in one go: they stay in the processor's cache.
_CACHED_ROWS = 1 << 14

T = TypeVar("T")


class SubspaceSolver:
    """Bob's side of the search.

    The last ``free`` of his columns (the intercept) carry no penalty. ``unwhitened`` is the penalty
    on the square of a weight where Alice's columns are not whitened. ``penalties`` are several, in
    ascending order, which share the directions; the coordinates are those of ``l2``. ``family`` has
    the lengths of steps and the range of scores.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        bob_columns: FloatArray,
        l2: float,
        free: int,
        passes: int,
        scratch: Scratch = MEMORY,
        unwhitened: float | None = None,
        penalties: Sequence[float] = (),
        family: Family = FAMILIES[BINOMIAL],
    ) -> None:
        self._unwhitened, self._family = unwhitened, family
        self._likelihood, self._bob_columns, self._free = likelihood, bob_columns, free
        self._l2, self._penalties = l2, penalties or (l2,)
        self._rows, columns = bob_columns.shape
        self._passes, self._most_passes = 0, passes
        self._scratch = scratch
        self._directions: FloatArray = scratch.unnamed((passes, self._rows), np.float64)
        # Products of directions in pairs, and of directions (rows) with the scores below.
        self._products = np.empty((0, 0))
        self._crossed = np.empty((0, 0))
        # Row k combines the first k directions so that its scores are orthogonal to those of the
        # rows before, and of length sqrt(4n). What follows is of these combinations.
        self._basis = np.empty((0, 0))
        self._scores: FloatArray = scratch.unnamed((passes, self._rows), np.float64)
        self._excess = np.empty((0, 0))
        # As Alice's columns are: a mean beside a small deviation would hide it from the search.
        self._means = training_means(bob_columns, free) if free else None
        # The largest curvature: of the scores' part it is the identity.
        self._own_bound = self._sum(lambda place: self._own(place).T @ self._own(place)) / (
            4.0 * self._rows
        )
        self._cross_bound = np.empty((0, columns))
        self._quadratic = np.empty((0, 0))
        self._combined = np.empty(0)
        self._solved, self._least = False, math.nan
        # Of the centred columns.
        self._weights: FloatArray = np.zeros(columns)
        # By the number of the penalty: the best point so far of each that had its turn.
        self._points: dict[int, tuple[FloatArray, FloatArray]] = {}
        self.penalty = self._turn

    @property
    def weights(self) -> FloatArray:
        """Bob's own, of his columns as they are: the intercept takes up what centring moved."""
        weights = self._weights.copy()
        if self._means is not None:
            weights[-1] += centring_offset(self._weights, self._means)
        return weights

    @property
    def objective(self) -> float | None:
        """Penalised mean loss after the last step; None where several penalties take turns."""
        return self._least if len(self._penalties) == 1 and self._solved else None

    @property
    def coefficients(self) -> FloatArray:
        """Coefficients: one per combination of directions, then those of Bob's centred columns."""
        return np.concatenate([self._combined, self._weights])

    @property
    def _turn(self) -> int:
        """The number of the penalty whose turn it is; that of the first after the last pass."""
        if self._passes == self._most_passes:
            return 0
        return len(self._penalties) - 1 - self._passes % len(self._penalties)

    @property
    def _factor(self) -> float:
        return self._penalties[self.penalty] / self._l2

    @property
    def _ridge(self) -> FloatArray:
        ridge = np.full(len(self._weights), self._penalties[self.penalty])
        ridge[len(ridge) - self._free :] = 0.0
        return ridge

    def _select(self, penalty: int) -> None:
        """Continue with another penalty: from its own point, or else from the present one."""
        self._points[self.penalty] = self._combined, self._weights
        combined, self._weights = self._points.get(penalty, (self._combined, self._weights))
        self._combined, self.penalty = self._padded(combined), penalty
        self._quadratic = self._factor * _definite(self._excess)

    @property
    def arrays(self) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """Directions, and the scores of their combinations, one array a pass: part of the state."""
        return tuple(self._directions[: self._passes]), tuple(self._scores[: self._passes])

    @property
    def position(self) -> FloatArray:
        """The rest of the state: a few numbers for each pair of passes, whatever the rows."""
        matrices = self._products, self._crossed, self._basis, self._excess, self._cross_bound
        points = {**self._points, self.penalty: (self._combined, self._weights)}
        known = (points[penalty] for penalty in self._known_penalties)
        parts = (part for combined, weights in known for part in (self._padded(combined), weights))
        return np.concatenate([*(matrix.ravel() for matrix in matrices), *parts])

    def _padded(self, combined: FloatArray) -> FloatArray:
        """Coefficients of all directions, with zeros for later ones."""
        return np.pad(combined, (0, self._passes - len(combined)))

    @property
    def _known_penalties(self) -> range:
        """Penalties whose turn has come, by the number of passes; all after the last."""
        count = len(self._penalties)
        finished = self._passes == self._most_passes
        return range(0 if finished else max(0, count - 1 - self._passes), count)

    def resume(
        self, directions: Sequence[FloatArray], scores: Sequence[FloatArray], position: FloatArray
    ) -> None:
        """Restore the state of another solver of the same rows: its ``arrays`` and ``position``."""
        self._passes = count = len(directions)
        for number, arrays in enumerate(zip(directions, scores, strict=True)):
            for stored, values in zip((self._directions, self._scores), arrays, strict=True):
                for place, block in row_blocks(values):
                    stored[number, place] = block
                drop_pages(stored)
        columns = len(self._weights)
        square = count * count
        known = self._known_penalties
        sizes = [square, square, square, square, count * columns, *(count, columns) * len(known)]
        parts = np.split(position, np.cumsum(sizes)[:-1])
        self._products, self._crossed, self._basis, self._excess = (
            part.reshape(count, count) for part in parts[:4]
        )
        self._cross_bound = parts[4].reshape(count, columns)
        self._points = dict(zip(known, zip(parts[5::2], parts[6::2], strict=True), strict=True))
        self.penalty = self._turn
        self._combined, self._weights = (part.copy() for part in self._points[self.penalty])
        # Before the first direction nothing was solved yet, not even for his own columns.
        self._solved = count > 0
        if count:
            self._quadratic = self._factor * _definite(self._excess)

    def direction(self) -> FloatArray:
        """The next direction: one number for each row, of length ``1 / sqrt(rows)`` together.

        Solves for his own columns first where nothing is solved yet.
        """
        if not self._solved:
            self._solve(OUTER_ITERATIONS)
        descent: FloatArray = self._scratch.unnamed((self._rows,), np.float64)
        mixture = self.mixture
        # Of weights: what the penalty takes from them, and what their own scores give back.
        taken, given = (1.0, 0.25) if self._unwhitened is None else (self._unwhitened, 0.0)
        taken, given = self._factor * taken, self._factor * given

        def falls(place: slice) -> tuple[FloatArray, ...]:
            directions, scores = self._block(place)
            alice_scores = self._combined @ scores
            total = self._clip(alice_scores + self._own(place) @ self._weights)
            slope = self._likelihood(total, place).slope
            part = (slope + given * alice_scores) / self._rows - taken * (mixture @ directions)
            descent[place] = part
            return directions @ part, scores @ part

        known = self._known(*self._sums(falls, descent))

        def new(place: slice) -> float:
            directions, scores = self._block(place)
            part = descent[place]
            part -= known[0] @ directions + known[1] @ scores
            return float(part @ part)

        length = math.sqrt(self._sum(new, descent))
        divisor = math.sqrt(self._rows) * max(length, TINY)
        for _, part in row_blocks(descent):
            part /= divisor
        return descent

    def add(self, direction: FloatArray, scores: FloatArray, *, last: bool = False) -> None:
        """Add a direction, rounded as it was sent, with Alice's scores, and continue the search."""
        self._append(direction, scores)
        self._combined = np.append(self._combined, 0.0)
        for penalty in reversed(range(len(self._penalties))) if last else (self._turn,):
            self._select(penalty)
            self._solve(OUTER_ITERATIONS if last else ITERATIONS)

    @property
    def mixture(self) -> FloatArray:
        """Coefficient of each direction, as it was added, in the current weights."""
        mixture: FloatArray = self._combined @ self._basis
        return mixture

    def combination(self) -> FloatArray:
        """``a``: one number for each row, whose product with Alice's columns is her weights."""
        mixture = self.mixture
        return self._filled(lambda place: mixture @ self._directions[: self._passes, place])

    def conclude(self, penalty: int = 0, /) -> tuple[FloatArray, FloatArray]:
        """Final result of the search: ``a`` and Bob's weights, for one of the penalties."""
        self._select(penalty)
        return self.combination(), self.weights

    def scores(self) -> FloatArray:
        """Current scores of the rows with the weights of both."""
        state = self.coefficients
        return self._filled(lambda place: self._clip(self._scores_of(state, place)))

    def loss(self) -> float:
        """Current penalised mean loss."""
        state = self.coefficients

        def value(place: slice) -> float:
            scores = self._clip(self._scores_of(state, place))
            return float(np.sum(self._likelihood(scores, place).value))

        return self._loss(self._sum(value), state)

    def _clip(self, scores: FloatArray) -> FloatArray:
        return clip_scores(scores, self._family.most_score)

    def _own(self, place: slice) -> FloatArray:
        """Bob's columns in some rows, centred where there is an intercept."""
        return centred(self._bob_columns[place], self._means)

    def _block(self, place: slice) -> tuple[FloatArray, FloatArray]:
        """Directions and scores of some rows, passes by rows."""
        return self._directions[: self._passes, place], self._scores[: self._passes, place]

    def _sums(self, work: Callable[[slice], tuple[T, ...]], *walked: FloatArray) -> tuple[T, ...]:
        arrays = (self._directions, self._scores, self._bob_columns, *walked)
        parts = over_blocks(work, self._rows, *arrays)
        return reduce(lambda total, part: tuple(map(operator.add, total, part)), parts)

    def _sum(self, work: Callable[[slice], T], *walked: FloatArray) -> T:
        (total,) = self._sums(lambda place: (work(place),), *walked)
        return total

    def _filled(self, work: Callable[[slice], FloatArray]) -> FloatArray:
        values: FloatArray = self._scratch.unnamed((self._rows,), np.float64)

        def fill(place: slice) -> int:
            values[place] = work(place)
            return 0

        self._sum(fill, values)
        return values

    def _append(self, direction: FloatArray, scores: FloatArray) -> None:
        count = self._passes
        self._passes = count + 1

        def kept(place: slice) -> tuple[Any, ...]:
            directions, known = self._block(place)
            directions[count] = direction[place]
            answer = np.nan_to_num(scores[place], nan=0.0, posinf=_MOST_SCORE, neginf=-_MOST_SCORE)
            known[count] = np.clip(answer, -_MOST_SCORE, _MOST_SCORE)
            newest = known[count]
            return directions @ directions[count], newest @ newest, known[:count] @ newest

        products, square, overlap = self._sums(kept, direction, scores)
        self._products = _bordered(self._products, products)
        scale = self._orthonormalise(count, square, overlap)

        def crossed_by(place: slice) -> tuple[FloatArray, ...]:
            directions, known = self._block(place)
            newest = known[count]
            newest *= scale
            bob_products = newest @ self._own(place)
            return directions @ newest, known @ directions[count], bob_products

        by_directions, by_scores, bound = self._sums(crossed_by)
        crossed = np.empty((count + 1, count + 1))
        crossed[:count, :count] = self._crossed
        crossed[:, count] = by_directions
        crossed[count] = by_scores
        self._crossed = crossed
        # The products in pairs of the combinations' weights, less those of their scores over 4n.
        weights = self._basis @ crossed[:, count]
        empty = weights[count] == 0.0
        if self._unwhitened is None:
            weights[count] -= 1.0
        else:
            weights *= self._unwhitened
        # A combination of nothing is given a penalty, so that its coefficient stays zero. Chosen
        # without a branch: whether there is one depends on scores.
        weights[count] = np.where(empty, 1.0, weights[count])
        self._excess = _bordered(self._excess, weights)
        self._cross_bound = np.vstack([self._cross_bound, bound / (4.0 * self._rows)])

    def _orthonormalise(self, newest: int, square: float, overlap: FloatArray) -> float:
        """Take from the newest scores what earlier ones have of them, by Gram-Schmidt.

        The products in pairs of nearly dependent scores would leave half of the digits. Returns the
        factor by which the scores have yet to be multiplied.
        """
        basis = np.zeros((newest + 1, newest + 1))
        basis[:newest, :newest] = self._basis
        basis[newest, newest] = 1.0
        least = max(_LEAST_NEW * self._length(square), TINY)
        for _ in range(2):
            part = overlap / (4.0 * self._rows)
            basis[newest] -= part @ basis[:newest]
            square, overlap = self._less(newest, part)
        length = self._length(square)
        scale = 1.0 / max(length, least)
        # Where next to nothing is new, a combination of nothing keeps the place.
        largest = float(np.abs(basis[newest]).max()) * scale
        scale *= float(length > least and largest < _MOST_COEFFICIENT)
        basis[newest] *= scale
        self._basis = basis
        return scale

    def _less(self, newest: int, coefficients: FloatArray) -> tuple[float, FloatArray]:
        """Subtract a part of the scores before; the square of what is left, and its overlap."""

        def subtract(place: slice) -> tuple[Any, ...]:
            before, scores = self._scores[:newest, place], self._scores[newest, place]
            scores -= coefficients @ before
            return scores @ scores, before @ scores

        square, overlap = self._sums(subtract)
        return square, overlap

    def _length(self, square: float) -> float:
        return math.sqrt(float(square) / (4.0 * self._rows))

    def _known(
        self, by_directions: FloatArray, by_scores: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The part of a new direction that lies in the span of earlier passes.

        It is worth nothing, and costs digits. A combination of directions changes nothing in the
        span of the weights. So would one of scores, whose weights are ``X~^T z / 4n = w~``, but for
        the penalty: the price of their penalty is part of this least-squares fit.
        """
        first, second = math.sqrt(self._rows), 1.0 / math.sqrt(4.0 * self._rows)
        size = self._passes
        if self._unwhitened is not None:
            # Scores are no combination of weights then: they are worth a pass.
            fit = damped_solve(self._products * self._rows, first * by_directions)
            return first * fit, np.zeros(size)
        matrix = np.empty((2 * size, 2 * size))
        matrix[:size, :size] = self._products * self._rows
        matrix[:size, size:] = 0.5 * self._crossed
        matrix[size:, :size] = matrix[:size, size:].T
        matrix[size:, size:] = np.eye(size) + PRICE * self._quadratic
        fit = damped_solve(matrix, np.concatenate([first * by_directions, second * by_scores]))
        return first * fit[:size], second * fit[size:]

    def _solve(self, iterations: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(iterations):
                self._iterate()
        self._solved = True

    def _iterate(self) -> None:
        """Take the best of the steps tried, or none where that is better."""
        state = self.coefficients
        value, slope, curvature = self._model(state)
        trials, losses = [state], [self._loss(value, state)]
        steps = []
        for matrix, lengths in (
            (curvature, self._family.step_lengths),
            (self._most_curvature(), SAFE_STEPS),
        ):
            step = np.nan_to_num(-damped_solve(self._penalised(matrix), slope))
            steps.append((step, lengths))
            trials += [state + length * step for length in lengths]

        def values(place: slice) -> tuple[float, ...]:
            scores, sums = self._scores_of(state, place), []
            for step, lengths in steps:
                change = self._scores_of(step, place)
                for length in lengths:
                    trial = self._clip(scores + length * change)
                    sums.append(float(np.sum(self._likelihood(trial, place).value)))
            return tuple(sums)

        losses += map(self._loss, self._sums(values), trials[1:])
        # A step that overflows has a loss that is no number, and is not taken.
        best = int(np.nanargmin(losses))
        chosen, self._least = trials[best], losses[best]
        self._combined, self._weights = chosen[: self._passes], chosen[self._passes :]

    def _scores_of(self, state: FloatArray, place: slice) -> FloatArray:
        count = self._passes
        scores: FloatArray = state[:count] @ self._scores[:count, place]
        scores += self._own(place) @ state[count:]
        return scores

    def _model(self, state: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log likelihood, and slope (that of the penalty too) and curvature of the mean loss."""
        count = self._passes

        def model(place: slice) -> tuple[Any, ...]:
            rows = self._likelihood(self._clip(self._scores_of(state, place)), place)
            slope = np.concatenate(
                [self._scores[:count, place] @ rows.slope, rows.slope @ self._own(place)]
            )
            return np.sum(rows.value), slope, self._curvature(place, rows.curvature)

        value, slope, curvature = self._sums(model)
        slope /= -self._rows
        slope[:count] += self._quadratic @ state[:count]
        slope[count:] += self._ridge * state[count:]
        curvature /= self._rows
        return float(value), slope, curvature

    def _penalised(self, curvature: FloatArray) -> FloatArray:
        count, size = self._passes, len(curvature)
        curvature[:count, :count] += self._quadratic
        curvature[range(count, size), range(count, size)] += self._ridge
        return curvature

    def _most_curvature(self) -> FloatArray:
        count = self._passes
        return np.block(
            [[np.eye(count), self._cross_bound], [self._cross_bound.T, self._own_bound]]
        )

    def _curvature(self, place: slice, curvature: FloatArray) -> FloatArray:
        count = self._passes
        size = count + self._bob_columns.shape[1]
        if size > MOST_EIGENVECTORS:
            # Flipped labels have negative ones, which elimination would take for what they are.
            curvature = np.maximum(curvature, 0.0)
        total = np.zeros((size, size))
        block = np.empty((size, min(_CACHED_ROWS, len(curvature))))
        for start in range(0, len(curvature), _CACHED_ROWS):
            part = curvature[start : start + _CACHED_ROWS]
            columns = block[:, : len(part)]
            rows = slice(place.start + start, place.start + start + len(part))
            columns[:count] = self._scores[:count, rows]
            columns[count:] = self._own(rows).T
            total += (columns * part) @ columns.T
        return total

    def _loss(self, value: float, state: FloatArray) -> float:
        combined, weights = state[: self._passes], state[self._passes :]
        price = 0.5 * float(combined @ self._quadratic @ combined)
        price += Penalty(l2=self._penalties[self.penalty]).value(weights, self._free)
        return float(price - value / self._rows)


def _bordered(square: FloatArray, border: FloatArray) -> FloatArray:
    size = len(border)
    larger = np.empty((size, size))
    larger[:-1, :-1] = square
    larger[-1] = larger[:, -1] = border
    return larger


def _definite(quadratic: FloatArray) -> FloatArray:
    """Projection onto the positive semi-definite matrices.

    In exact arithmetic a penalty has no negative part. That of rounded columns can, and where it
    falls without end a search would diverge.
    """
    values, vectors = np.linalg.eigh(quadratic)
    definite: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return definite
