"""The first pass of whole-table training, ``p = T^T a``, and labels that single sums of it prove.

``a_i`` is ``2^g/n`` times the slope of row i, rounded up or down at random. Slopes are
``mechanism.residue(score, label)``, positive for label 1 and negative for label 0 whatever the
score, divided by their root mean square: Bob sends directions at a fixed, public length.

With ``v = (T^T T)^+ T^T 1_G`` the sum ``p . v = sum_i w_i a_i``, ``w = T v``, is as near to the sum
of a group G as Alice's columns allow. What the other rows can add is bounded: where Bob has no
column every ``a_i`` is one of two known numbers, and otherwise the length of a is public. If the
sum is larger than it can be with any row of G at label 0, all rows of G have label 1; and the other
way round. That is a proof for any v; it succeeds where G is a category of its own.

**An intercept.** T is of centred columns then, and says nothing of the sum of all rows; but the
slopes of a fitted intercept cancel out, so that Alice knows that sum: zero, up to roundings. It
joins the others, and the sum of a group is as it would be without centring. Where Bob has columns
without an intercept, the proof takes for granted that his first slopes nearly cancel out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np
from scipy.optimize import brentq

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.observations import MomentsSeen
from taciturn_audit.views.alice_view import AliceView

# Directions of the table below this share of the largest are floating-point noise.
_NEGLIGIBLE = 1e-12
# A score beyond which no intercept lies.
_FAR = 40.0


@dataclass(frozen=True, slots=True)
class Slopes:
    """Public facts about slopes, in units of their root mean square.

    ``intercept``: it is agreed that one of Bob's columns is one.
    """

    mechanism: EncryptedMechanism
    bob_columns: int
    intercept: bool = False

    @classmethod
    def from_view(cls, view: AliceView) -> Slopes:
        """The slopes of a view."""
        method, columns = cast(EncryptedMechanism, view.mechanism), view.peer.columns
        return cls(method, columns, view.agreement.intercept)

    @property
    def exact(self) -> bool:
        """Whether a slope is 1 or -1: no score but zero, and no class that counts more."""
        zero, one = self._at(0.0)
        return self.bob_columns == 0 and bool(np.isclose(zero, -one, rtol=1e-12))

    @property
    def two_valued(self) -> bool:
        """Whether a slope depends on its label alone: Bob has no column, or only an intercept."""
        return self.bob_columns == int(self.intercept)

    @property
    def sizes(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """The least and the largest size of a slope of label 0, and of label 1.

        None where Bob's columns make it anything. Where classes count differently, the root mean
        square lies between their slopes, wherever the labels are.
        """
        if self.bob_columns:
            return None
        zero, one = (abs(slope) for slope in self._at(0.0))
        least, largest = min(zero, one), max(zero, one)
        return (zero / largest, zero / least), (one / largest, one / least)

    def laws(self, rows: int) -> Iterator[tuple[float, float]]:
        """The pairs of slopes, of label 0 and 1, that there can be: none where Bob has columns."""
        if self.exact:
            yield -1.0, 1.0
        elif self.two_valued:
            yield from (law for ones in range(1, rows) if (law := self.law(ones, rows)) is not None)

    def law(self, ones: int, rows: int) -> tuple[float, float] | None:
        """The slopes of label 0 and 1 with ``ones`` rows of label 1; None where there are none.

        An intercept that is fitted alone makes all slopes together zero.
        """
        if self.exact:
            return -1.0, 1.0

        def total(score: float) -> float:
            zero, one = self._at(score)
            return ones * one + (rows - ones) * zero

        fitted = 0.0
        if self.intercept:
            # The likelihood of flipped labels may be best at an end, where all slopes vanish.
            if not total(-_FAR) > 0 > total(_FAR):
                return None
            fitted = float(brentq(total, -_FAR, _FAR, xtol=1e-13))
        zero, one = self._at(fitted)
        size = np.sqrt((ones * one**2 + (rows - ones) * zero**2) / rows)
        return zero / size, one / size

    def _at(self, score: float) -> tuple[float, float]:
        scores, ones = np.array([score]), np.ones(1, dtype=np.int8)
        zero, one = (self.mechanism.residue(scores, labels) for labels in (1 - ones, ones))
        return float(zero[0]), float(one[0])


@dataclass(frozen=True)
class FirstPass:
    """The table T and its first product ``T^T a``, in the integers' scale.

    ``rows`` counts all rows of the training, of which some may be out of the table. ``unit`` is
    ``2^g/n``, the steps of a's grid in a slope of 1. With an intercept the last column is constant,
    for the sum of all rows.
    """

    table: FloatArray = field(repr=False)
    product: FloatArray = field(repr=False)
    rows: int
    unit: float
    slopes: Slopes

    @classmethod
    def from_moments(cls, seen: MomentsSeen, slopes: Slopes) -> FirstPass:
        """The first pass that Alice saw."""
        rows = len(seen.table)
        table, product = seen.table.astype(np.float64), seen.product.astype(np.float64)
        first = cls(table, product, rows, 2.0**seen.vector_bits / rows, slopes)
        return first.with_total() if slopes.intercept else first

    def with_total(self) -> FirstPass:
        """This pass with a constant column more, whose product, the sum of all rows, is zero."""
        scale = float(np.sqrt(np.mean(self.table**2))) or 1.0
        table = np.hstack([self.table, np.full((len(self.table), 1), scale)])
        return replace(self, table=table, product=np.append(self.product, 0.0))

    def slack(self, mean: float) -> float:
        """Tolerance of the sum of all rows, for slopes of at most this mean."""
        return float(self.table[0, -1]) * self.rows * (1.0 + self.unit * mean)

    @cached_property
    def factor(self) -> FloatArray:
        """F with ``F F^T = (T^T T)^+``: columns by independent sums."""
        if self.table.shape[0] < self.table.shape[1]:
            _, singular, rows = np.linalg.svd(self.table, full_matrices=False)
            values, vectors = singular**2, rows.T
        else:
            values, vectors = np.linalg.eigh(self.table.T @ self.table)
        kept: BoolArray = values > _NEGLIGIBLE * values.max(initial=0.0)
        scaled: FloatArray = vectors[:, kept] / np.sqrt(values[kept])
        return scaled

    @cached_property
    def span(self) -> FloatArray:
        """U, the table's columns made orthonormal: ``U U^T`` projects on what the sums see."""
        return self.table @ self.factor

    @property
    def rank(self) -> int:
        """Number of independent sums."""
        return len(self.factor.T)

    @cached_property
    def leverage(self) -> FloatArray:
        """Leverage of each row in the sums, from 0 (not seen) to 1 (seen as a whole)."""
        seen: FloatArray = np.clip(np.einsum("ij,ij->i", self.span, self.span), 0.0, 1.0)
        return seen

    def projected(self, numbers: FloatArray) -> FloatArray:
        """Projection of numbers, one for each row, onto the span of the table's columns."""
        seen: FloatArray = self.span @ (numbers @ self.span)
        return seen

    @cached_property
    def least_norm(self) -> FloatArray:
        """The least-norm slopes with these sums: each row's, as far as they see it."""
        slopes: FloatArray = self.span @ (self.product @ self.factor) / self.unit
        return slopes


# The largest group that is looked for.
_MOST_TOGETHER = 4
# A row of a group sees the others of it at least this share as well as itself.
_TOGETHER = 0.5
# How often settled rows are taken out of the sums.
_MOST_ROUNDS = 8
# The most that the mean of all slopes may be, in units of their root mean square: of a fitted
# intercept, whose search may not have ended, and of columns without one.
_FITTED_MEAN, _MOST_MEAN = 0.01, 0.5
# How far the indicator of a group may be from the span of the columns, squared.
_APART = 0.5
# Multiplications in all: a few seconds.
_MOST_WORK = 2e10
_PER_WORK_UNIT = 1e6
# What float64 may have moved, as a share of the terms.
_ROUNDING = 1e-11
_CHUNK = 128


@dataclass(frozen=True, slots=True)
class Settled:
    """Labels that single sums prove: 1 or -1 for label 1 or 0, otherwise 0.

    ``limited``: there were more rows to look at than the work allows. ``work`` is in the units of
    ``LabelGuess``.
    """

    sign: IntArray = field(repr=False)
    limited: bool
    work: float


def settle(first: FirstPass) -> Settled:
    """Prove labels of the rows that the sums see best, alone and in groups.

    Where Alice knows the two values of a number, rows that are settled are taken out of the sums,
    in which others may then stand alone.
    """
    if first.slopes.intercept:
        return _settled(first, first.table[:0], first.slack(_FITTED_MEAN))
    if first.slopes.sizes is None:
        strict, extended = _settled(first, first.table[:0], 0.0), first.with_total()
        usual = _settled(extended, extended.table[:0], extended.slack(_MOST_MEAN))
        both = np.where(strict.sign != 0, strict.sign, usual.sign)
        return Settled(both, strict.limited, strict.work + usual.work)
    sign = np.zeros(len(first.table), dtype=np.int64)
    work, limited = 0.0, False
    for _ in range(_MOST_ROUNDS if first.slopes.exact else 1):
        open_rows, known = np.flatnonzero(sign == 0), np.flatnonzero(sign)
        part = replace(
            first,
            table=first.table[open_rows],
            product=first.product - first.unit * sign[known] @ first.table[known],
        )
        settled = _settled(part, first.table[known], 0.0)
        sign[open_rows] = settled.sign
        work, limited = work + settled.work, limited or settled.limited
        if not settled.sign.any():
            break
    return Settled(sign, limited, work)


def _settled(first: FirstPass, known: FloatArray, slack: float) -> Settled:
    """One round; ``known`` rows were taken out, up to a rounding of each.

    ``slack`` is the most by which the last sum may be off.
    """
    rows, columns = first.table.shape
    seen_best = np.argsort(-first.leverage, kind="stable")
    candidates = seen_best[first.leverage[seen_best] > 1.0 / (_MOST_TOGETHER + 1)]
    most = max(1, int(_MOST_WORK / max(1, rows * columns)))
    groups = _groups(first, candidates[:most])
    sign = np.zeros(rows, dtype=np.int64)
    for begin in range(0, len(groups), _CHUNK):
        part = groups[begin : begin + _CHUNK]
        for group, agreed in zip(part, _agreed(first, part, known, slack), strict=True):
            if agreed:
                sign[group] = agreed
    work = len(groups) * rows * columns / _PER_WORK_UNIT
    return Settled(sign, len(candidates) > most, work)


def _groups(first: FirstPass, candidates: IndexArray) -> list[IndexArray]:
    part = first.span[candidates]
    groups: list[IndexArray] = []
    known: set[tuple[int, ...]] = set()
    for begin in range(0, len(candidates), _CHUNK):
        shared = part[begin : begin + _CHUNK] @ part.T
        for number, row in enumerate(shared):
            itself = begin + number
            together = np.flatnonzero(row > _TOGETHER * row[itself])
            for members in (np.array([itself]), together):
                group = np.sort(candidates[members])
                if len(group) <= _MOST_TOGETHER and tuple(group) not in known:
                    known.add(tuple(group))
                    groups.append(group)
    return groups


def _agreed(
    first: FirstPass, groups: Sequence[IndexArray], known: FloatArray, slack: float
) -> list[int]:
    """Per group 1 or -1 if all of its labels are proven to be 1 or 0, otherwise 0."""
    targets = np.stack([first.span[group].sum(axis=0) for group in groups])
    combined = targets @ first.factor.T
    # Made from the integers, not from the span: a proof holds for whatever v came out.
    weights = first.table @ combined.T
    sums = combined @ first.product
    doubt = _ROUNDING * (np.abs(combined) @ np.abs(first.product)) + 0.5
    doubt += np.abs(known @ combined.T).sum(axis=0) + np.abs(combined[:, -1]) * slack
    return [
        _verdict(first, group, weights[:, number], float(sums[number]), float(doubt[number]))
        for number, group in enumerate(groups)
    ]


def _verdict(
    first: FirstPass, group: IndexArray, weights: FloatArray, total: float, doubt: float
) -> int:
    group_weights = weights[group]
    if (group_weights <= 0).any() or len(group) - float(group_weights.sum()) > _APART:
        return 0
    with_zero, with_one = _bounds(first, weights, group)
    if total > with_zero + doubt:
        return 1
    return -1 if total < with_one - doubt else 0


def _bounds(first: FirstPass, weights: FloatArray, group: IndexArray) -> tuple[float, float]:
    """The largest sum where a row of the group has label 0, and the least where one has label 1."""
    group_weights, sizes = weights[group], first.slopes.sizes
    if sizes is None:
        # All numbers together have a known length, up to a rounding of each; signs are labels.
        longest = first.unit * np.sqrt(first.rows) + np.sqrt(first.rows)
        others = float(weights @ weights) - float(group_weights.min()) ** 2
        return longest * np.sqrt(max(0.0, others)), -longest * np.sqrt(max(0.0, others))
    (zero, low), (one, high) = sizes
    zero, one = -np.floor(first.unit * zero), np.floor(first.unit * one)
    low, high = -np.ceil(first.unit * low), np.ceil(first.unit * high)
    outside = weights.copy()
    outside[group] = 0.0
    above, below = outside[outside > 0].sum(), outside[outside < 0].sum()
    most, fewest = high * above + low * below, low * above + high * below
    # The row of the other label is the one of the group for which that matters least.
    with_zero = most + high * group_weights.sum() - (high - zero) * group_weights.min()
    with_one = fewest + low * group_weights.sum() - (low - one) * group_weights.min()
    return float(with_zero), float(with_one)
