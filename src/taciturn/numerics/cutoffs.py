"""What happens at a threshold: who is called a one, rightly and wrongly, and what that costs.

A row is called a one where its score lies above the threshold. With ``FP`` zeros called ones, each
at the cost ``a`` of a false alarm, and ``FN`` ones not called so, each at the cost ``b`` of a
miss::

    cost of a row = (a FP + b FN) / n
    least expected cost, if probabilities are true: above p = a / (a + b)             [Elkan01]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.errors import ConfigError
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.ranked import Ranked


@dataclass(frozen=True, slots=True)
class Costs:
    """Cost of a false alarm and of a miss, both positive, in any one unit."""

    false_alarm: float
    miss: float

    def __post_init__(self) -> None:
        for cost in (self.false_alarm, self.miss):
            if not (math.isfinite(cost) and cost > 0):
                raise ConfigError(
                    f"a cost is a positive number, and {cost:g} is not", hint="use 1 and 10, say"
                )


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The four counts at a threshold, and what people make of them.

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


def cutoff(ranked: Ranked, score: float, shift: float = 0.0, costs: Costs | None = None) -> Cutoff:
    """What happens at one threshold.

    ``shift`` is by how much class weights have moved the logits.

    >>> ranked = Ranked.of(np.array([2.0, 1.0, -1.0, -2.0]), np.array([1, 0, 1, 0]))
    >>> at = cutoff(ranked, 0.0, costs=Costs(1.0, 3.0))
    >>> at.sensitivity, at.specificity, at.precision, at.cost
    (0.5, 0.5, 0.5, 1.0)
    """
    called, true = ranked.above(score)
    rows, ones = ranked.total, ranked.total_ones
    false, missed = called - true, ones - true
    zeros = rows - ones
    return Cutoff(
        score=score,
        probability=float(sigmoid(np.array([score - shift]))[0]),
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
    ranked: Ranked, fractions: tuple[float, ...], shift: float = 0.0, costs: Costs | None = None
) -> tuple[Cutoff, ...]:
    """The thresholds at which about these fractions of the rows are called ones.

    Rows of equal score are called alike, so that two fractions may come to one threshold, which is
    given once.
    """
    # The score of the first row that is not called.
    wanted = np.minimum(np.array(fractions) * ranked.total, ranked.total - 1)
    places = np.searchsorted(ranked.rows, wanted, side="right")
    levels = dict.fromkeys(ranked.levels[places].tolist())
    return tuple(cutoff(ranked, level, shift, costs) for level in levels)


def cheapest(ranked: Ranked, costs: Costs, shift: float = 0.0) -> Cutoff:
    """The threshold that costs least on these rows; the highest of several.

    >>> ranked = Ranked.of(np.array([2.0, 1.0, -1.0, -2.0]), np.array([1, 0, 1, 0]))
    >>> cheapest(ranked, Costs(1.0, 9.0)).score
    -1.5
    """
    true = np.append(0, ranked.ones)
    false = np.append(0, ranked.rows) - true
    best = int(np.argmin(costs.false_alarm * false + costs.miss * (ranked.total_ones - true)))
    return cutoff(ranked, _between(ranked, best), shift, costs)


def _between(ranked: Ranked, above: int) -> float:
    """A score that has this many of the distinct levels above it."""
    levels = ranked.levels
    if above == 0:
        return float(levels[0])
    if above == len(levels):
        return float(np.nextafter(levels[-1], -np.inf))
    middle = (levels[above - 1] + levels[above]) / 2
    # Two neighbouring numbers have none between them.
    return float(middle if middle < levels[above - 1] else levels[above])
