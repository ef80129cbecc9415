"""Above which score a row is called a one: chosen on rows that the model has not seen.

With ``TP`` and ``FP`` counted at each possible threshold, ``P`` ones and ``N`` zeros::

    Youden:  max  TP/P - FP/N                      the point where KS is reached        [Youden50]
    cost c:  min  c (P - TP) + FP                  a missed one costs c false alarms

A class is 1 where the score lies above the threshold, which stands midway between two scores. Of
several that do as well the highest is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.errors import ShapeError
from taciturn.numerics.logistic import sigmoid

HALF, GIVEN, YOUDEN, COST = "half", "given", "youden", "cost"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Where class 1 begins, and how that was chosen.

    ``score`` is the same threshold as log-odds. ``rule`` is half, given, youden or cost. Shares are
    None where there are no rows to look at; ``miss_cost`` is in false alarms.
    """

    probability: float
    score: float
    rule: str
    rows: int = 0
    sensitivity: float | None = None
    specificity: float | None = None
    miss_cost: float | None = None


def one_half(shift: float = 0.0) -> Threshold:
    """Even odds, as class weights count them: where nothing was chosen.

    >>> one_half().probability, round(one_half(-1.0).probability, 4)
    (0.5, 0.7311)
    """
    return Threshold(_probability(-shift), 0.0, HALF)


def at_probability(probability: float, shift: float = 0.0) -> Threshold:
    """A threshold that a person chose.

    >>> at_probability(0.5).score, round(at_probability(0.05).score, 4)
    (0.0, -2.9444)
    """
    return Threshold(probability, math.log(probability / (1 - probability)) + shift, GIVEN)


def chosen(
    scores: FloatArray, labels: LabelArray, miss_cost: float | None = None, shift: float = 0.0
) -> Threshold:
    """The best threshold on some rows.

    ``miss_cost`` is in false alarms, None for Youden's index. One half where a class is absent:
    there is nothing to choose by.

    >>> best = chosen(np.array([-3.0, -2.0, -1.0, 0.5]), np.array([0, 0, 1, 1]))
    >>> best.score, best.sensitivity, best.specificity
    (-1.5, 1.0, 1.0)
    >>> chosen(np.array([0.1, 0.2, 0.3]), np.array([1, 0, 0]), miss_cost=5.0).sensitivity
    1.0
    """
    if scores.shape != labels.shape or scores.ndim != 1:
        raise ShapeError(f"scores of shape {scores.shape}, labels of {labels.shape}")
    ones = int(np.count_nonzero(labels))
    zeros = len(labels) - ones
    if not (ones and zeros):
        return one_half(shift)
    order = np.argsort(scores)[::-1]
    ranked, truth = scores[order], np.equal(labels, 1)[order]
    # Of long tables each array takes room: what is over is let go.
    del order
    # The first candidate calls no row a one; rows of equal score pass together.
    last = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    levels = ranked[last]
    del ranked
    true = np.concatenate(([0], np.cumsum(truth)[last]))
    false = np.concatenate(([0], last + 1)) - true
    del last
    # In integers, where they are: equal gains must be seen to be equal.
    gain = true * zeros - false * ones if miss_cost is None else miss_cost * true - false
    best = int(np.argmax(gain))
    score = _between(levels, best)
    return Threshold(
        probability=_probability(score - shift),
        score=score,
        rule=YOUDEN if miss_cost is None else COST,
        rows=len(labels),
        sensitivity=int(true[best]) / ones,
        specificity=1 - int(false[best]) / zeros,
        miss_cost=miss_cost,
    )


def _probability(score: float) -> float:
    return float(sigmoid(np.array([score]))[0])


def _between(levels: FloatArray, above: int) -> float:
    """A score that has this many of the distinct levels, which fall, above it."""
    if above == 0:
        return float(levels[0])
    if above == len(levels):
        return float(np.nextafter(levels[-1], -np.inf))
    middle = (levels[above - 1] + levels[above]) / 2
    # Two neighbouring numbers have none between them.
    return float(middle if middle < levels[above - 1] else levels[above])
