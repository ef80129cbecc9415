"""Plain descent on a public schedule, over tables of which every bound is public.

What one label can change in the result is then known before anything is computed: the ground on
which a model may be released (``taciturn.privacy.model_release``, ``docs/sealed.md``).

Each party's columns are whitened (``taciturn.numerics.whitening``), so that ``X~^T X~ <= 4n I``.
Rows longer than a public bound are scaled down to it, which keeps that. With P parties that have
columns, the step ``s = 1/P`` and ``w_A = X~^T a``, a step is ::

    a   <- (1 - s) a + (s/n) (slope + z_A / 4)              slope = y - sigma(z)
    w_B <- (1 - s) w_B + (s/n) X~_B^T (slope + z_B / 4)

**Guarantee.** It is gradient descent on a convex function whose curvature is at most P, whatever
the labels and the tables are: a step does not take two points apart.

**Assumes.** ``X~^T X~ <= 4n I`` of both tables as they are used.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError
from taciturn.memmap import MEMORY, Scratch, drop_pages, over_blocks, row_blocks
from taciturn.numerics.likelihood import Likelihood, clip_scores
from taciturn.numerics.whitening import Whitening
from taciturn.setting_syntax import Hint

# Far above the error of an eigenvalue in floating point, far below anything that is measured.
_MARGIN = 1e-9


def row_bound(columns: int, free: int = 0) -> float:
    """Length to which whitened rows are clipped: half of the rows or more are within it.

    The mean of their squared lengths is at most four times the number of columns; an intercept
    alone is 2 in every row.
    """
    return 2.0 * math.sqrt(columns if columns == free else 2 * columns)


@dataclass(frozen=True, slots=True, repr=False)
class BoundedTable:
    """A whitened table with ``X~^T X~ <= 4n I``, none of whose rows is longer than ``row_bound``.

    ``whitening`` has the coordinates for other rows and for weights: of rows that were not clipped,
    ``values`` is what it makes of them. ``cut_rows`` counts the rows that were too long.
    """

    values: FloatArray = field(repr=False)
    whitening: Whitening = field(repr=False)
    cut_rows: int

    @classmethod
    def from_table(
        cls, table: FloatArray, l2: float, free: int = 0, scratch: Scratch = MEMORY
    ) -> BoundedTable:
        """Whiten a table and clip its rows; the last ``free`` columns carry no penalty."""
        rows, columns = table.shape
        whitening = Whitening.fit(table, l2, free)
        whitened: FloatArray = scratch.unnamed(table.shape, np.float64)

        def square(place: slice) -> FloatArray:
            block = whitening.apply(table[place])
            whitened[place] = block
            return block.T @ block

        # At most 1 in exact arithmetic; columns that are nearly alike can bring it above.
        total = reduce(operator.add, over_blocks(square, rows, table, whitened))
        largest = float(np.linalg.eigvalsh(total)[-1]) / (4.0 * rows)
        factor = (1.0 - _MARGIN) / math.sqrt(max(1.0, largest))
        bound = row_bound(columns, free) * (1.0 - _MARGIN)

        def cut(place: slice) -> int:
            block = whitened[place]
            block *= factor
            lengths = np.sqrt(np.square(block).sum(axis=1))
            too_long = lengths > bound
            block[too_long] *= (bound / lengths[too_long])[:, None]
            return int(np.count_nonzero(too_long))

        cut_rows = sum(over_blocks(cut, rows, whitened))
        return cls(whitened, Whitening(whitening.factor / factor), cut_rows)

    def shrunk(self, error: float) -> BoundedTable:
        """The table scaled down to stay in its bounds when each value moves by ``error``."""
        factor = self.shrinking(error)
        whitening = Whitening(self.whitening.factor / factor)
        return BoundedTable(self.values * factor, whitening, self.cut_rows)

    def shrinking(self, error: float) -> float:
        """Factor by which ``shrunk`` scales.

        Values that move by an error at most change ``|X~|`` by ``sqrt(n d)`` times it and a row's
        length by ``sqrt(d)`` times it; the bounds are ``2 sqrt(n)`` and 2 or more.
        """
        columns = self.values.shape[1]
        factor = 1.0 - math.sqrt(columns) * error / 2.0
        if factor < 0.5:
            raise ConfigError(
                f"values that are rounded by {error:g} leave nothing of {columns:,} columns",
                setting="feature_bits",
                hint=Hint("raise {feature_bits}", feature_bits=16),
            )
        return factor


class DescentSolver:
    """Bob's side of the descent, with the methods of ``SubspaceSolver``.

    A "direction" is here all of ``a``, so that the newest one alone counts.

    **What is done never depends on values**, and nothing raises whatever the scores are.

    The curvature of ``likelihood`` is between 0 and 1/4. The last ``free`` of his columns (the
    intercept) carry no penalty.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        bob_columns: FloatArray,
        l2: float,
        free: int,
        passes: int,
        scratch: Scratch = MEMORY,
    ) -> None:
        self._likelihood, self._scratch = likelihood, scratch
        self._rows, columns = bob_columns.shape
        # Without columns of his there is nothing to whiten, and one party has columns.
        self._table = BoundedTable.from_table(bob_columns, l2, free, scratch) if columns else None
        self._bob_columns = bob_columns if self._table is None else self._table.values
        self._step = 1.0 / parties_with_columns(columns)
        self._numbers, self._alice_scores = self._vector(), self._vector()
        self._take(np.zeros(self._rows), np.zeros(self._rows))
        self._whitened = np.zeros(columns)
        self._passes = 0

    @property
    def weights(self) -> FloatArray:
        """Current weights of Bob's columns."""
        return self._in_his_columns(self._whitened)

    @property
    def arrays(self) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """The newest direction and its scores, where there is one: part of the state."""
        return ((self._numbers,), (self._alice_scores,)) if self._passes else ((), ())

    @property
    def position(self) -> FloatArray:
        """Number of passes and Bob's whitened weights: the rest of the state."""
        return np.concatenate([[float(self._passes)], self._whitened])

    @property
    def objective(self) -> None:
        """Steps on a public schedule are not judged by it."""
        return None

    @property
    def mixture(self) -> FloatArray:
        """Coefficient of each direction in the current weights: 1 of the newest."""
        mixture = np.zeros(self._passes)
        mixture[-1:] = 1.0
        return mixture

    def resume(
        self, directions: Sequence[FloatArray], scores: Sequence[FloatArray], position: FloatArray
    ) -> None:
        """Restore the state of another solver of the same rows: its ``arrays`` and ``position``."""
        self._passes, self._whitened = int(position[0]), position[1:].copy()
        for numbers, alice_scores in zip(directions, scores, strict=True):
            self._take(numbers, alice_scores)

    def direction(self) -> FloatArray:
        """``a`` after the next step: one number for each row."""
        return self._next()[0]

    def add(self, direction: FloatArray, scores: FloatArray, *, last: bool = False) -> None:
        """Take the step for a direction, rounded as it was sent, and Alice's scores for it."""
        self._whitened = self._next()[1]
        # A state that was emitted before keeps its arrays.
        self._numbers, self._alice_scores = self._vector(), self._vector()
        self._take(direction, scores)
        self._passes += 1

    def scores(self) -> FloatArray:
        """Current scores with the weights of both; of clipped rows, those of the clipped rows."""
        scores = self._vector()
        for place, alice_scores in row_blocks(self._alice_scores):
            scores[place] = clip_scores(alice_scores + self._bob_columns[place] @ self._whitened)
            drop_pages(self._bob_columns)
        return scores

    def conclude(self, _penalty: int = 0, /) -> tuple[FloatArray, FloatArray]:
        """Final step, without an exchange: ``a`` and Bob's weights, for its one penalty."""
        numbers, whitened = self._next()
        return numbers, self._in_his_columns(whitened)

    def _next(self) -> tuple[FloatArray, FloatArray]:
        step, numbers = self._step, self._vector()

        def descend(place: slice) -> FloatArray:
            columns, alice_scores = self._bob_columns[place], self._alice_scores[place]
            bob_scores = columns @ self._whitened
            slope = self._likelihood(clip_scores(alice_scores + bob_scores), place).slope
            numbers[place] = (1.0 - step) * self._numbers[place]
            numbers[place] += step / self._rows * (slope + alice_scores / 4.0)
            descent: FloatArray = (slope + bob_scores / 4.0) @ columns
            return descent

        walked = self._bob_columns, self._alice_scores, self._numbers, numbers
        descent = reduce(operator.add, over_blocks(descend, self._rows, *walked))
        return numbers, (1.0 - step) * self._whitened + step / self._rows * descent

    def _vector(self) -> FloatArray:
        values: FloatArray = self._scratch.unnamed((self._rows,), np.float64)
        return values

    def _take(self, numbers: FloatArray, alice_scores: FloatArray) -> None:
        for place, block in row_blocks(numbers):
            self._numbers[place] = block
            self._alice_scores[place] = np.nan_to_num(alice_scores[place])

    def _in_his_columns(self, whitened: FloatArray) -> FloatArray:
        return whitened if self._table is None else self._table.whitening.weights(whitened)


def parties_with_columns(bob_columns: int) -> int:
    """P: Alice, and Bob where he has columns, an intercept included."""
    return 1 + int(bob_columns > 0)
