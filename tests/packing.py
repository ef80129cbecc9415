"""Several columns in one score: what Bob knows of a column, and weights that keep columns apart.

Where gradients are returned, scores are rounded and columns are not: a yes-or-no column takes one
bit, and one column of any values fits below them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray


@dataclass(frozen=True)
class Seen:
    """What Bob takes a column's values to be: all from ``least`` to ``most``, or these two."""

    column: int
    least: float
    most: float
    two: bool

    @classmethod
    def of(cls, column: int, seen: FloatArray, rows: int) -> Seen:
        """From some of its values, out of a table of this many rows."""
        least, most = float(seen.min()), float(seen.max())
        if most - least < _ALIKE:
            # A level that is rare or not there: of 0 and 1, or standardised, it follows.
            mean = float(seen.mean())
            ones = max(1, round(rows * mean**2 / (1 + mean**2)))
            least = -math.sqrt(ones / (rows - ones)) if abs(mean) > _ALIKE else 0.0
            return cls(column, least, -1 / least if least else 1.0, two=True)
        two = bool(((seen < least + _ALIKE) | (seen > most - _ALIKE)).all())
        margin = 0.0 if two else (most - least) / 4
        return cls(column, least - margin, most + margin, two)

    @property
    def span(self) -> float:
        return self.most - self.least


_ALIKE = 2.0**-8


@dataclass(frozen=True)
class Stack:
    """Columns that one score holds: at most one of any values, and two-valued ones above it."""

    columns: tuple[Seen, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, columns: Sequence[Seen], unit: float, largest: float) -> Stack:
        """As many as fit, those of any values first.

        Args:
            columns: Those that are left.
            unit: What scores are rounded to.
            largest: The largest weight.
        """
        numbers, flags = ([c for c in columns if c.two == two] for two in (False, True))
        chosen, weights = numbers[:1], [_FINE * unit] * len(numbers[:1])
        total = sum(w * c.span for c, w in zip(chosen, weights, strict=True)) + 2 * unit
        for column in sorted(flags, key=lambda flag: -flag.span):
            weight = 1.25 * total / column.span
            if weight > largest:
                break
            chosen, weights = [*chosen, column], [*weights, weight]
            total += weight * column.span
        return cls(tuple(chosen), tuple(weights))

    def vector(self, columns: int) -> FloatArray:
        """The weights of all columns."""
        chosen = np.zeros(columns)
        chosen[[seen.column for seen in self.columns]] = self.weights
        return chosen

    def read(self, scores: FloatArray, weights: FloatArray) -> FloatArray:
        """The columns' values under the weights that Alice has, one column of the result each."""
        sizes = [float(weights[seen.column]) for seen in self.columns]
        left = scores - sum(w * seen.least for seen, w in zip(self.columns, sizes, strict=True))
        values = np.empty((len(scores), len(self.columns)))
        below = np.cumsum([0.0, *(w * s.span for s, w in zip(self.columns, sizes, strict=True))])
        for place in reversed(range(len(self.columns))):
            seen, weight = self.columns[place], sizes[place]
            level = weight * seen.span
            moved = np.where(left > (below[place] + level) / 2, level, 0.0) if seen.two else left
            values[:, place] = seen.least + moved / weight
            left = left - moved
        return values


_FINE = 32.0
"""The weight of a column of any values, in units of a score's rounding."""


def stacked(columns: Sequence[Seen], unit: float, largest: float) -> list[Stack]:
    """All columns, one score after the other."""
    left, stacks = list(columns), list[Stack]()
    while left:
        stacks.append(Stack.of(left, unit, largest))
        held = {seen.column for seen in stacks[-1].columns}
        left = [seen for seen in left if seen.column not in held]
    return stacks
