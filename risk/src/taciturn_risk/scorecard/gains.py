"""Gains, lift, ROC, and the costs of thresholds, counted along rows sorted by score.

Rows of equal score have no order among them. The first ``r`` of a run of ``k`` equal rows hold
``r/k`` of its ones, which is what a random order gives on average: no order of the file decides
anything. With ``P`` ones and ``N`` zeros in ``n`` rows::

    gains      gain_k = P_k / P, where the first k parts of equal size hold P_k ones in n_k rows
               lift of a part = its rate of ones / (P/n);  up to part k: (P_k / n_k) / (P/n)
    ROC        TP/P against FP/N at each distinct score used as a threshold
    KS         max |TP/P - FP/N|                                                        [Smirnov48]
    cost       of a row = (a FP + b FN) / n: a of a false alarm, b of a miss
               if probabilities are true, least above p = a / (a + b)                     [Elkan01]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError
from taciturn.numerics.sorted_scores import SortedScores
from taciturn.numerics.threshold import between, probability_at


def ones_among(ranked: SortedScores, first: FloatArray) -> FloatArray:
    """Number of ones among the first rows; rows of equal score share their ones.

    >>> rows = SortedScores.from_scores(np.zeros(4), np.array([0, 1, 0, 1]))
    >>> ones_among(rows, np.array([1.0])).tolist()
    [0.5]
    """
    held: FloatArray = np.interp(first, np.append(0, ranked.rows), np.append(0, ranked.ones))
    return held


@dataclass(frozen=True, slots=True)
class GainsRow:
    """One part of the rows, and all rows up to it.

    ``part`` 1 scores highest. ``ones`` is a fraction where rows of equal score are shared. Lifts
    and ``ones_so_far`` are NaN where there is no one.
    """

    part: int
    rows: int
    lowest: float
    ones: float
    rate: float
    lift: float
    rows_so_far: float
    ones_so_far: float
    lift_so_far: float


def gains(ranked: SortedScores, parts: int = 10) -> tuple[GainsRow, ...]:
    """Gains table of at most ``parts`` parts, the riskiest first."""
    if parts < 1:
        raise ConfigError(
            f"a gains table cannot have {parts} groups", where="parts", hint="use 10, for example"
        )
    rows, total_ones = ranked.total, ranked.total_ones
    ends = np.linspace(0, rows, min(parts, rows) + 1).round().astype(np.int64)
    held = ones_among(ranked, ends.astype(np.float64))
    lowest = ranked.levels[np.searchsorted(ranked.rows, ends[1:], side="left")]
    base = total_ones / rows
    table = []
    for number in range(1, len(ends)):
        count, ones = int(ends[number] - ends[number - 1]), float(held[number] - held[number - 1])
        so_far = float(held[number])
        table.append(
            GainsRow(
                part=number,
                rows=count,
                lowest=float(lowest[number - 1]),
                ones=ones,
                rate=ones / count,
                lift=ones / count / base if base else float("nan"),
                rows_so_far=int(ends[number]) / rows,
                ones_so_far=so_far / total_ones if total_ones else float("nan"),
                lift_so_far=so_far / int(ends[number]) / base if base else float("nan"),
            )
        )
    return tuple(table)


@dataclass(frozen=True, slots=True)
class RocPoint:
    """A threshold, and the fractions of zeros and of ones at or above it."""

    score: float
    zeros: float
    ones: float


@dataclass(frozen=True, slots=True)
class KsPoint:
    """The threshold at which the distributions of the two classes differ most.

    ``score`` is the lowest score that counts as above; ``ones`` and ``zeros`` are fractions at or
    above it.
    """

    distance: float
    score: float
    ones: float
    zeros: float


def roc_points(ranked: SortedScores, most: int = 200) -> tuple[RocPoint, ...]:
    """ROC curve from (0, 0) to (1, 1) in about ``most`` points; empty where a class is absent."""
    if not ranked.both_classes:
        return ()
    ones = np.append(0, ranked.ones) / ranked.total_ones
    zeros = np.append(0, ranked.rows - ranked.ones) / (ranked.total - ranked.total_ones)
    levels = np.append(np.inf, ranked.levels)
    places = np.arange(len(ones))
    if len(places) > most:
        # Along the curve, which rises and goes right by two in all; the point of KS stays.
        along = np.searchsorted(ones + zeros, np.linspace(0.0, 2.0, most))
        ends = (0, len(ones) - 1, int(np.argmax(np.abs(ones - zeros))))
        places = np.unique(np.append(np.minimum(along, len(ones) - 1), ends))
    parts = (values[places].tolist() for values in (levels, zeros, ones))
    return tuple(RocPoint(*point) for point in zip(*parts, strict=True))


def ks_point(ranked: SortedScores) -> KsPoint | None:
    """Threshold at which KS is reached, the highest of several; None where a class is absent."""
    if not ranked.both_classes:
        return None
    zeros_in_all = ranked.total - ranked.total_ones
    # In integers: equal distances must be seen to be equal.
    gaps = ranked.ones * zeros_in_all - (ranked.rows - ranked.ones) * ranked.total_ones
    place = int(np.argmax(np.abs(gaps)))
    ones = int(ranked.ones[place])
    return KsPoint(
        distance=int(abs(gaps[place])) / (ranked.total_ones * zeros_in_all),
        score=float(ranked.levels[place]),
        ones=ones / ranked.total_ones,
        zeros=(int(ranked.rows[place]) - ones) / zeros_in_all,
    )


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of a false alarm and of a miss, both positive, in any one unit."""

    false_alarm: float
    miss: float

    def __post_init__(self) -> None:
        for cost in (self.false_alarm, self.miss):
            if not (math.isfinite(cost) and cost > 0):
                raise ConfigError(
                    f"a cost must be positive, not {cost:g}", hint="use 1 and 10, say"
                )


@dataclass(frozen=True, slots=True)
class Cutoff:
    """Confusion matrix at a threshold, with the rates made of it.

    Rows above ``score`` are called ones; ``probability`` is the same threshold, corrected for class
    weights. Fractions are NaN where they would divide by zero; ``cost`` is per row.
    """

    score: float
    probability: float
    called: float
    true_ones: int
    false_ones: int
    missed_ones: int
    true_zeros: int
    sensitivity: float
    specificity: float
    precision: float
    cost: float | None = None


def cutoff(
    ranked: SortedScores, score: float, shift: float = 0.0, costs: Costs | None = None
) -> Cutoff:
    """Confusion matrix at one threshold; ``shift`` is the ``log_odds_shift`` of class weights."""
    # The levels fall: those above the score are the first.
    place = int(np.searchsorted(-ranked.levels, -score, side="left"))
    called, true = (int(ranked.rows[place - 1]), int(ranked.ones[place - 1])) if place else (0, 0)
    rows, ones = ranked.total, ranked.total_ones
    false, missed = called - true, ones - true
    zeros = rows - ones
    return Cutoff(
        score=score,
        probability=probability_at(score - shift),
        called=called / rows,
        true_ones=true,
        false_ones=false,
        missed_ones=missed,
        true_zeros=zeros - false,
        sensitivity=true / ones if ones else math.nan,
        specificity=(zeros - false) / zeros if zeros else math.nan,
        precision=true / called if called else math.nan,
        cost=None if costs is None else (costs.false_alarm * false + costs.miss * missed) / rows,
    )


def cutoffs(
    ranked: SortedScores,
    fractions: tuple[float, ...],
    shift: float = 0.0,
    costs: Costs | None = None,
) -> tuple[Cutoff, ...]:
    """Distinct thresholds at which about these fractions of the rows are called ones."""
    # The score of the first row that is not called.
    wanted = np.minimum(np.array(fractions) * ranked.total, ranked.total - 1)
    places = np.searchsorted(ranked.rows, wanted, side="right")
    levels = dict.fromkeys(ranked.levels[places].tolist())
    return tuple(cutoff(ranked, level, shift, costs) for level in levels)


def cheapest(ranked: SortedScores, costs: Costs, shift: float = 0.0) -> Cutoff:
    """The threshold that costs least on these rows; the highest of several."""
    true = np.append(0, ranked.ones)
    false = np.append(0, ranked.rows) - true
    best = int(np.argmin(costs.false_alarm * false + costs.miss * (ranked.total_ones - true)))
    return cutoff(ranked, between(ranked.levels, best), shift, costs)
