"""Several columns in one score: what Bob knows of a column, and weights that keep columns apart.

**Whole numbers** (``Known``, ``Posed``), of weights that are shared. A column is a low digit of
``0 .. low``, above its lowest value, and perhaps a level: ``span`` or nothing. A yes-or-no column
that was rounded at random has a low digit of one bit and a level far above it, and between the two
there is room for other columns' digits.

**Reals** (``Seen``, ``Stack``), where gradients are returned. Scores are rounded, columns are not:
a yes-or-no column takes one bit, and one column of any values fits below them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Known:
    """What Bob takes a column's whole numbers to be.

    Args:
        column: Which it is.
        start: The least of them.
        low: They lie in ``start .. start + low``,
        span: or, where this is not 0, as far above ``start + span``.
    """

    column: int
    start: int
    low: int
    span: int = 0

    @classmethod
    def of(cls, column: int, seen: IntArray, unit: int, rows: int) -> Known:
        """From some of its values.

        Args:
            column: Which it is.
            seen: Values, each rounded up or down at random.
            unit: What 1 is on their grid.
            rows: How many rows the table has.
        """
        values = np.unique(seen)
        least, most = int(values[0]), int(values[-1])
        if most - least <= 1:
            return cls._of_one_level(column, seen, unit, rows)
        if len(values) == 2:
            # Of a level that was seen once, the other rounding may lie below or above.
            spare = 0 if least % unit == most % unit == 0 else 1
            return cls(column, least - spare, 2 * spare, most - least)
        if most - least > 3 and ((values <= least + 1) | (values >= most - 1)).all():
            return cls(column, least - 1, 2, most - least - 1)
        margin = (most - least) // 4
        return cls(column, least - margin, most - least + 2 * margin)

    @classmethod
    def _of_one_level(cls, column: int, seen: IntArray, unit: int, rows: int) -> Known:
        """A level that is rare or not there: of 0 and 1, or standardised, it follows."""
        mean = float(seen.mean()) / unit
        if mean == 0.0:
            return cls(column, 0, 0, unit)
        ones = max(1, round(rows * mean**2 / (1 + mean**2)))
        other = math.floor(math.sqrt((rows - ones) / ones) * unit)
        start = math.floor(-math.sqrt(ones / (rows - ones)) * unit)
        return cls(column, start, 1, other - start)


@dataclass(frozen=True)
class Posed:
    """Columns that one score holds, with their weights, lowest digits first.

    Args:
        columns: What is known of them.
        weights: One for each.
        order: Digits from the lowest to the highest: the place of a column, and whether it is its
            level.
    """

    columns: tuple[Known, ...] = ()
    weights: tuple[int, ...] = ()
    order: tuple[tuple[int, bool], ...] = ()
    total: int = 0

    def with_block(self, block: Sequence[Known], limit: int) -> Posed | None:
        """These columns above the others: all low digits, then all levels; None if too long."""
        lows = self.total
        while True:
            noise, levels, weights = self.total, 0, list[int]()
            for known in block:
                least = -(-(lows + levels + 1) // known.span) if known.span else 1
                weight = max(noise + 1, least)
                noise += weight * known.low
                levels += weight * known.span
                weights.append(weight)
            if noise + levels >= limit:
                return None
            if noise <= lows:
                break
            lows = noise
        places = range(len(self.columns), len(self.columns) + len(block))
        order = [(place, False) for place in places]
        order += [(place, True) for place, known in zip(places, block, strict=True) if known.span]
        return Posed(
            (*self.columns, *block),
            (*self.weights, *weights),
            (*self.order, *order),
            noise + levels,
        )

    def without(self, columns: Sequence[Known]) -> list[Known]:
        """Those of the columns that it does not hold."""
        held = {known.column for known in self.columns}
        return [known for known in columns if known.column not in held]

    def vector(self, columns: int) -> IntArray:
        """The weights of all columns."""
        chosen = np.zeros(columns, dtype=np.int64)
        for known, weight in zip(self.columns, self.weights, strict=True):
            chosen[known.column] = weight
        return chosen

    def read(self, scores: IntArray, modulus: int) -> FloatArray:
        """The columns' whole numbers, one column of the result each."""
        starts = sum(k.start * w for k, w in zip(self.columns, self.weights, strict=True))
        # Powers of two divide what int64 wraps at.
        left = (scores - (starts % modulus)) & (modulus - 1)
        values = np.tile([float(known.start) for known in self.columns], (len(scores), 1))
        for place, level in reversed(self.order):
            known, weight = self.columns[place], self.weights[place]
            size = known.span if level else 1
            most = 1 if level else known.low
            digit = np.minimum(left // (weight * size), most) * size
            values[:, place] += digit
            left = left - digit * weight
        return values


def posed(columns: Sequence[Known], bits: int) -> list[Posed]:
    """All columns, in as few scores of this many bits as a greedy choice needs."""
    left, scores = sorted(columns, key=lambda known: (known.span == 0, -known.span)), list[Posed]()
    while left:
        score = Posed()
        while (block := _best_block(score, left, 1 << bits)) is not None:
            score = block
            left = score.without(left)
        scores.append(score)
    return scores


def _best_block(score: Posed, left: Sequence[Known], limit: int) -> Posed | None:
    """The neighbours in size that take the fewest bits each."""
    best, least = None, math.inf
    for first in range(len(left)):
        for length in range(1, len(left) - first + 1):
            block = left[first : first + length]
            tried = score.with_block(block[::-1], limit)
            if tried is None:
                break
            cost = (math.log2(tried.total + 1) - math.log2(score.total + 1)) / length
            if cost < least:
                best, least = tried, cost
            if not block[-1].span:
                break
    return best


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
