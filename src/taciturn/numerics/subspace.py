"""The search of whole-table training: the best weights in the span of all directions so far.

Alice holds whitened columns ``X~`` (``taciturn.numerics.whitening``); every candidate for her
weights is ``w~ = X~^T a`` with a vector ``a`` of one number per row that Bob knows. In each pass he
sends a direction ``a_k`` and is given its scores ``z_k = X~ X~^T a_k``. With these as rows of ``A``
and ``Z``, coefficients ``c`` and his own columns ``X_B``, he minimises over c and his weights::

    mean loss(c Z + X_B w_B) + 1/2 c Q c^T + l2/2 |w_B|^2        Q = A Z^T - Z Z^T / 4n

which is the exact objective: ``c Q c^T`` is ``l2 |w_A|^2``. The next direction is its steepest
descent in w~, ``slope/n + z_A/4n - a`` with ``a = c A`` and ``z_A = c Z``, less what earlier
directions have of it, at a fixed length: so the range of what is sent and answered is public.

**What is done never depends on values.** Labels and scores decide no count of iterations, trial
steps or evaluations of the likelihood, nothing ends early, and nothing raises whatever the scores.
Only the eigenvalues of a matrix of a few dozen rows take LAPACK a time of their own, microseconds.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.numerics.likelihood import Likelihood, RowLikelihood, bounded
from taciturn.numerics.logistic import Penalty

OUTER_ITERATIONS = 8
"""Newton's iterations before the first direction, on Bob's own columns, and after the last."""

ITERATIONS = 1
"""Newton's iterations after each direction between. Directions taken from the exact minimum of a
small span serve worse: there the model is sure of too much, and its slopes say less."""

NEWTON_STEPS = (1.0, 0.25)
"""The lengths that are tried of each Newton step; where nothing that is tried is better, nothing
is taken."""

SAFE_STEPS = (1.0, 8.0)
"""Those of a step by the largest curvature that a loss can have. The first always makes it smaller,
also where flipped labels leave a curvature that is negative or next to none."""

PRICE = 10.0
"""What the penalty of known weights costs in a new direction, beside the length of their scores."""

# A score of a direction of length 1/sqrt(n) is below 4 sqrt(n): beyond this it has wrapped.
_MOST_SCORE = 2.0**24
# Below this part of its length, what a direction's scores have that is new is noise.
_LEAST_NEW = 1e-6
# Combinations with larger coefficients leave too few digits of the penalty.
_MOST_COEFFICIENT = 1e7
# Curvatures below this part of the largest count as that much.
_LEAST_CURVATURE = 1e-10
_TINY = 1e-100
# Rows that are weighted in one go: they stay in the processor's cache.
_BLOCK = 1 << 14


class SubspaceSolver:
    """Bob's side of the search.

    Args:
        likelihood: That of the rows, given their scores.
        own: His columns, rows by columns; there may be none.
        l2: Factor of half the sum of squared weights, both parties'.
        free: How many of his last columns (the intercept) carry no penalty.

    >>> from functools import partial
    >>> from taciturn.numerics.likelihood import weighted_likelihood
    >>> likelihood = partial(weighted_likelihood, labels=np.array([1, 1, 0]), class_weight=None)
    >>> solver = SubspaceSolver(likelihood, np.ones((3, 1)), l2=0.1, free=1)
    >>> solver.direction().round(3).tolist()
    [0.236, 0.236, -0.471]
    >>> np.exp(solver.weights).round(6).tolist()
    [2.0]
    """

    def __init__(self, likelihood: Likelihood, own: FloatArray, l2: float, free: int) -> None:
        self._likelihood, self._own, self._free = likelihood, own, free
        self._penalty = Penalty(l2=l2)
        self._rows, columns = own.shape
        self._ridge = np.full(columns, l2)
        self._ridge[columns - free :] = 0.0
        self._passes = 0
        self._directions = np.empty((0, self._rows))
        # Products of directions in pairs, and of directions (rows) with the scores below.
        self._products = np.empty((0, 0))
        self._crossed = np.empty((0, 0))
        # Row k combines the first k directions so that its scores are orthogonal to those of the
        # rows before, and of length sqrt(4n). What follows is of these combinations.
        self._basis = np.empty((0, 0))
        self._scores = np.empty((0, self._rows))
        self._excess = np.empty((0, 0))
        # The largest curvature: of the scores' part it is the identity.
        self._own_bound = own.T @ own / (4.0 * self._rows)
        self._cross_bound = np.empty((0, columns))
        self._quadratic = np.empty((0, 0))
        self._combined = np.empty(0)
        self._solved = False
        self.weights: FloatArray = np.zeros(columns)

    @property
    def passes(self) -> int:
        """How many directions there are."""
        return self._passes

    @property
    def coefficients(self) -> FloatArray:
        """One for each direction, then his weights: the state, beside directions and scores."""
        return np.concatenate([self._combined, self.weights])

    def resume(self, directions: FloatArray, scores: FloatArray, coefficients: FloatArray) -> None:
        """Takes over the state of another solver of the same rows, and continues as it would have.

        Args:
            directions: One row for each ``add``, as it was given.
            scores: Likewise.
            coefficients: What that solver's ``coefficients`` were.
        """
        for direction, answer in zip(directions, scores, strict=True):
            self._append(direction, answer)
        self._combined = coefficients[: self._passes].copy()
        self.weights = coefficients[self._passes :].copy()
        # Before the first direction nothing was solved yet, not even for his own columns.
        self._solved = self._passes > 0

    def direction(self) -> FloatArray:
        """The next direction: one number for each row, of length ``1 / sqrt(rows)`` together.

        Solves for his own columns first where nothing is solved yet.
        """
        if not self._solved:
            self._solve(OUTER_ITERATIONS)
        theirs = self._combined @ self._scores[: self._passes]
        slope = self._likelihood(bounded(theirs + self._own @ self.weights)).slope
        descent = (slope + theirs / 4.0) / self._rows - self.combination()
        descent -= self._known(descent)
        length = math.sqrt(float(descent @ descent))
        direction: FloatArray = descent / (math.sqrt(self._rows) * max(length, _TINY))
        return direction

    def add(self, direction: FloatArray, scores: FloatArray, *, last: bool = False) -> None:
        """Takes a direction and continues the search.

        Args:
            direction: As it was sent: rounded.
            scores: Alice's, for it.
            last: Whether none follows; then the search is brought to its end.
        """
        self._append(direction, scores)
        self._combined = np.append(self._combined, 0.0)
        self._solve(OUTER_ITERATIONS if last else ITERATIONS)

    @property
    def mixture(self) -> FloatArray:
        """How much of each direction, as it was added, the weights of now have."""
        mixture: FloatArray = self._combined @ self._basis
        return mixture

    def combination(self) -> FloatArray:
        """``a``: one number for each row, whose product with Alice's columns is her weights."""
        combination: FloatArray = self.mixture @ self._directions[: self._passes]
        return combination

    def conclude(self) -> tuple[FloatArray, FloatArray]:
        """Where the search ends: ``a`` and his own weights."""
        return self.combination(), self.weights

    def scores(self) -> FloatArray:
        """The rows' scores with the weights of both, now."""
        return bounded(self._scores_of(self.coefficients))

    def loss(self) -> float:
        """The penalised mean loss, now."""
        return self._loss(self._likelihood(self.scores()), self.coefficients)

    def _append(self, direction: FloatArray, scores: FloatArray) -> None:
        count = self._passes
        if count == len(self._directions):
            self._directions = _doubled(self._directions)
            self._scores = _doubled(self._scores)
        self._directions[count] = direction
        answer = np.nan_to_num(scores, nan=0.0, posinf=_MOST_SCORE, neginf=-_MOST_SCORE)
        self._scores[count] = np.clip(answer, -_MOST_SCORE, _MOST_SCORE)
        self._passes = count + 1
        directions = self._directions[: count + 1]
        self._products = _bordered(self._products, directions @ direction)
        self._orthonormalise(count)
        newest = self._scores[count]
        crossed = np.empty((count + 1, count + 1))
        crossed[:count, :count] = self._crossed
        crossed[:, count] = directions @ newest
        crossed[count] = self._scores[: count + 1] @ direction
        self._crossed = crossed
        # The products in pairs of the combinations' weights, less those of their scores over 4n.
        weights = self._basis @ crossed[:, count]
        # A combination of nothing is given a penalty, so that its coefficient stays zero.
        weights[count] += 1.0 if weights[count] == 0.0 else -1.0
        self._excess = _bordered(self._excess, weights)
        self._quadratic = _definite(self._excess)
        bound = newest @ self._own / (4.0 * self._rows)
        self._cross_bound = np.vstack([self._cross_bound, bound])

    def _orthonormalise(self, newest: int) -> None:
        """Takes from the newest scores what earlier ones have of them.

        By Gram and Schmidt, because the products in pairs of nearly dependent scores would leave
        half of the digits.
        """
        basis = np.zeros((newest + 1, newest + 1))
        basis[:newest, :newest] = self._basis
        basis[newest, newest] = 1.0
        before, scores = self._scores[:newest], self._scores[newest]
        least = max(_LEAST_NEW * self._length(scores), _TINY)
        for _ in range(2):
            overlap = before @ scores / (4.0 * self._rows)
            basis[newest] -= overlap @ basis[:newest]
            scores -= overlap @ before
        length = self._length(scores)
        scale = 1.0 / max(length, least)
        # Where next to nothing is new, a combination of nothing keeps the place.
        largest = float(np.abs(basis[newest]).max()) * scale
        scale *= float(length > least and largest < _MOST_COEFFICIENT)
        basis[newest] *= scale
        scores *= scale
        self._basis = basis

    def _length(self, scores: FloatArray) -> float:
        return math.sqrt(float(scores @ scores) / (4.0 * self._rows))

    def _known(self, descent: FloatArray) -> FloatArray:
        """What earlier passes have of a direction: it is worth nothing, and costs digits.

        A combination of directions changes nothing in the span of the weights. So would one of
        scores, whose weights are ``X~^T z / 4n = w~``, but for the penalty: the price of their
        penalty is part of this least-squares fit.
        """
        directions, scores = self._directions[: self._passes], self._scores[: self._passes]
        first, second = math.sqrt(self._rows), 1.0 / math.sqrt(4.0 * self._rows)
        size = self._passes
        matrix = np.empty((2 * size, 2 * size))
        matrix[:size, :size] = self._products * self._rows
        matrix[:size, size:] = 0.5 * self._crossed
        matrix[size:, :size] = matrix[:size, size:].T
        matrix[size:, size:] = np.eye(size) + PRICE * self._quadratic
        right = np.concatenate([first * (directions @ descent), second * (scores @ descent)])
        fit = least_change(matrix, right)
        known: FloatArray = (first * fit[:size]) @ directions + (second * fit[size:]) @ scores
        return known

    def _solve(self, iterations: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(iterations):
                self._iterate()
        self._solved = True

    def _iterate(self) -> None:
        """Takes the best of the steps tried, or none where that is better."""
        state = self.coefficients
        scores = self._scores_of(state)
        rows = self._likelihood(bounded(scores))
        slope = self._slope(rows, state)
        trials, losses = [state], [self._loss(rows, state)]
        for curvature, lengths in (
            (self._curvature(rows.curvature), NEWTON_STEPS),
            (self._most_curvature(), SAFE_STEPS),
        ):
            step = np.nan_to_num(-least_change(self._penalised(curvature), slope))
            change = self._scores_of(step)
            for length in lengths:
                trials.append(state + length * step)
                trial = self._likelihood(bounded(scores + length * change))
                losses.append(self._loss(trial, trials[-1]))
        # A step that overflows has a loss that is no number, and is not taken.
        chosen = trials[int(np.nanargmin(losses))]
        self._combined, self.weights = chosen[: self._passes], chosen[self._passes :]

    def _scores_of(self, state: FloatArray) -> FloatArray:
        """The scores of coefficients and own weights, or of a step in them."""
        count = self._passes
        scores: FloatArray = state[:count] @ self._scores[:count] + self._own @ state[count:]
        return scores

    def _slope(self, rows: RowLikelihood, state: FloatArray) -> FloatArray:
        count = self._passes
        slope = np.concatenate([self._scores[:count] @ rows.slope, rows.slope @ self._own])
        slope /= -self._rows
        slope[:count] += self._quadratic @ state[:count]
        slope[count:] += self._ridge * state[count:]
        return slope

    def _penalised(self, curvature: FloatArray) -> FloatArray:
        """The curvature of a loss with that of the penalty."""
        count, size = self._passes, len(curvature)
        curvature[:count, :count] += self._quadratic
        curvature[range(count, size), range(count, size)] += self._ridge
        return curvature

    def _most_curvature(self) -> FloatArray:
        count = self._passes
        return np.block(
            [[np.eye(count), self._cross_bound], [self._cross_bound.T, self._own_bound]]
        )

    def _curvature(self, curvature: FloatArray) -> FloatArray:
        """That of the mean loss in all coefficients, by blocks of rows."""
        count = self._passes
        size = count + self._own.shape[1]
        total = np.zeros((size, size))
        block = np.empty((size, min(_BLOCK, self._rows)))
        for start in range(0, self._rows, _BLOCK):
            part = slice(start, min(start + _BLOCK, self._rows))
            columns = block[:, : part.stop - part.start]
            columns[:count] = self._scores[:count, part]
            columns[count:] = self._own[part].T
            total += (columns * curvature[part]) @ columns.T
        total /= self._rows
        return total

    def _loss(self, rows: RowLikelihood, state: FloatArray) -> float:
        combined, weights = state[: self._passes], state[self._passes :]
        price = 0.5 * float(combined @ self._quadratic @ combined)
        price += self._penalty.value(weights, self._free)
        return price - float(np.mean(rows.value))


def _doubled(array: FloatArray) -> FloatArray:
    """The same rows, with room for as many again."""
    larger = np.empty((max(4, 2 * len(array)), array.shape[1]))
    larger[: len(array)] = array
    return larger


def _bordered(square: FloatArray, border: FloatArray) -> FloatArray:
    """A symmetric matrix with one more row and column."""
    size = len(border)
    larger = np.empty((size, size))
    larger[:-1, :-1] = square
    larger[-1] = larger[:, -1] = border
    return larger


def _definite(quadratic: FloatArray) -> FloatArray:
    """The matrix without its negative part.

    In exact arithmetic a penalty has none. That of rounded columns can, and where it falls without
    end a search would run away.
    """
    values, vectors = np.linalg.eigh(quadratic)
    definite: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return definite


def least_change(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """A solution of ``matrix x = right`` that stays small where the matrix says little.

    Args:
        matrix: Symmetric and finite, of any scales; negative curvatures count by their size.
        right: One number for each row.

    >>> least_change(np.diag([4.0, -1e12, 0.0]), np.array([2.0, 1e12, 0.0])).tolist()
    [0.5, 1.0, 0.0]
    """
    sizes = np.abs(np.diagonal(matrix))
    # What has no curvature has no slope either, and stays where it is.
    scales = np.where(sizes > _TINY, 1.0, 0.0) / np.sqrt(np.maximum(sizes, _TINY))
    values, vectors = np.linalg.eigh(matrix * scales * scales[:, None])
    sizes = np.abs(values)
    sizes = np.maximum(sizes, _LEAST_CURVATURE * max(float(sizes.max(initial=0.0)), _TINY))
    solution: FloatArray = scales * (vectors @ ((scales * right) @ vectors / sizes))
    return solution
