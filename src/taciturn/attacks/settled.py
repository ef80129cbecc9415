"""Rows whose label a single sum proves: alone in it, or a few that agree.

With ``v = (T^T T)^+ T^T 1_G`` the sum ``p . v = sum_i w_i a_i``, ``w = T v``, is as near to the sum
of a group G as Alice's columns allow. Every ``a_i`` lies between two known bounds, so that the rows
outside G add at most ``most(w)``. If the sum is larger than it can be with any row of G at label 0,
all rows of G have label 1; and the other way round. That is a proof for any v; it succeeds where G
is a category of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.attacks.slopes import FirstPass

# The largest group that is looked for.
_MOST_TOGETHER = 4
# A row of a group sees the others of it at least this share as well as itself.
_TOGETHER = 0.5
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
    """What single sums prove.

    Args:
        sign: 1 or -1 for a row whose label is proven to be 1 or 0, otherwise 0.
        limited: There were more rows to look at than the work allows.
        work: In the units of ``LabelGuess``.
    """

    sign: IntArray = field(repr=False)
    limited: bool
    work: float


def settle(first: FirstPass) -> Settled:
    """Looks at the rows that the sums see best, alone and in groups."""
    rows, columns = first.table.shape
    seen_best = np.argsort(-first.leverage, kind="stable")
    candidates = seen_best[first.leverage[seen_best] > 1.0 / (_MOST_TOGETHER + 1)]
    most = max(1, int(_MOST_WORK / max(1, rows * columns)))
    looked_at = candidates[:most]
    groups = _groups(first, looked_at)
    sign = np.zeros(rows, dtype=np.int64)
    for begin in range(0, len(groups), _CHUNK):
        part = groups[begin : begin + _CHUNK]
        for group, agreed in zip(part, _agreed(first, part), strict=True):
            if agreed:
                sign[group] = agreed
    work = len(groups) * rows * columns / _PER_WORK_UNIT
    return Settled(sign, len(candidates) > most, work)


def _groups(first: FirstPass, candidates: IndexArray) -> list[IndexArray]:
    """Rows that are alone in a direction, and small sets that share one."""
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


def _agreed(first: FirstPass, groups: Sequence[IndexArray]) -> list[int]:
    """For each group 1 or -1 where all of its labels are proven to be 1 or 0, otherwise 0."""
    targets = np.stack([first.span[group].sum(axis=0) for group in groups])
    combined = targets @ first.factor.T
    # Made from the integers, not from the span: a proof holds for whatever v came out.
    weights = first.table @ combined.T
    sums = combined @ first.product
    doubt = _ROUNDING * (np.abs(combined) @ np.abs(first.product)) + 0.5
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
    least, largest = (first.unit * slope for slope in first.slopes.range)
    low, high = np.floor(least), np.ceil(largest)
    # The nearest to zero that a row of either label can be: its very value where scores are known.
    zero, one = (np.ceil(least), np.floor(largest)) if not first.slopes.bob_columns else (0.0, 0.0)
    outside = weights.copy()
    outside[group] = 0.0
    above, below = outside[outside > 0].sum(), outside[outside < 0].sum()
    most, fewest = high * above + low * below, low * above + high * below
    # One row of the group has the other label, the one for which that matters least.
    with_zero = most + high * own.sum() - (high - zero) * own.min()
    with_one = fewest + low * own.sum() - (low - one) * own.min()
    if total > with_zero + doubt:
        return 1
    return -1 if total < with_one - doubt else 0
