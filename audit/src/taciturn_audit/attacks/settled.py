"""Rows whose label a single sum proves: alone in it, or a few that agree.

With ``v = (T^T T)^+ T^T 1_G`` the sum ``p . v = sum_i w_i a_i``, ``w = T v``, is as near to the sum
of a group G as Alice's columns allow. What the other rows can add is bounded: where Bob has no
column every ``a_i`` is one of two known numbers, and otherwise the length of a is public. If the
sum is larger than it can be with any row of G at label 0, all rows of G have label 1; and the other
way round. That is a proof for any v; it succeeds where G is a category of its own.

Where Bob has columns the proof takes for granted that his first slopes nearly cancel out, as they
do exactly where one of the columns is an intercept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn_audit.attacks.slopes import FirstPass

# The largest group that is looked for.
_MOST_TOGETHER = 4
# A row of a group sees the others of it at least this share as well as itself.
_TOGETHER = 0.5
# How often settled rows are taken out of the sums.
_MOST_ROUNDS = 8
# The most that the mean of all slopes may be, in units of their root mean square, where Bob has
# columns: an intercept among them makes it zero.
_MOST_MEAN = 0.5
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
    if first.slopes.sizes is None:
        strict = _settled(first, first.table[:0], 0.0)
        extended = _with_total(first)
        slack = extended.table[0, -1] * first.rows * first.unit * _MOST_MEAN
        usual = _settled(extended, extended.table[:0], slack)
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


def _with_total(first: FirstPass) -> FirstPass:
    """With one sum more, that of all rows: zero, give or take ``_MOST_MEAN`` for each.

    Where Alice's columns are centred, a category of one row is the row less the mean of all.
    """
    scale = float(np.sqrt(np.mean(first.table**2))) or 1.0
    column = np.full((len(first.table), 1), scale)
    return replace(
        first, table=np.hstack([first.table, column]), product=np.append(first.product, 0.0)
    )


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
    """For each group 1 or -1 where all of its labels are proven to be 1 or 0, otherwise 0."""
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
    own = weights[group]
    if (own <= 0).any() or len(group) - float(own.sum()) > _APART:
        return 0
    with_zero, with_one = _bounds(first, weights, group)
    if total > with_zero + doubt:
        return 1
    return -1 if total < with_one - doubt else 0


def _bounds(first: FirstPass, weights: FloatArray, group: IndexArray) -> tuple[float, float]:
    """The largest sum where a row of the group has label 0, and the least where one has label 1."""
    own, sizes = weights[group], first.slopes.sizes
    if sizes is None:
        # All numbers together have a known length, up to a rounding of each; signs are labels.
        longest = first.unit * np.sqrt(first.rows) + np.sqrt(first.rows)
        others = float(weights @ weights) - float(own.min()) ** 2
        return longest * np.sqrt(max(0.0, others)), -longest * np.sqrt(max(0.0, others))
    (zero, low), (one, high) = sizes
    zero, one = -np.floor(first.unit * zero), np.floor(first.unit * one)
    low, high = -np.ceil(first.unit * low), np.ceil(first.unit * high)
    outside = weights.copy()
    outside[group] = 0.0
    above, below = outside[outside > 0].sum(), outside[outside < 0].sum()
    most, fewest = high * above + low * below, low * above + high * below
    # The row of the other label is the one of the group for which that matters least.
    with_zero = most + high * own.sum() - (high - zero) * own.min()
    with_one = fewest + low * own.sum() - (low - one) * own.min()
    return float(with_zero), float(with_one)
