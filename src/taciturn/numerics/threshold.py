"""The threshold of class 1: at even odds, given, or chosen by rows sorted by score.

::

    Youden     max TP/P - FP/N, where KS is reached                                      [Youden50]
    cost c     min c (P - TP) + FP, a missed one costs c false alarms

A row is called a one where its score lies above the threshold, which stands midway between two
scores. Of several that do as well the highest is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.families.binomial import sigmoid
from taciturn.numerics.sorted_scores import SortedScores

HALF, GIVEN, YOUDEN, COST = "half", "given", "youden", "cost"


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold of class 1, and how it was chosen.

    ``score`` is the same threshold as log-odds. ``rule`` is half, given, youden or cost. Shares are
    None without rows to choose by; ``false_negative_cost`` is in false alarms.
    """

    probability: float
    score: float
    rule: str
    rows: int = 0
    sensitivity: float | None = None
    specificity: float | None = None
    false_negative_cost: float | None = None


def even_odds(shift: float = 0.0) -> Threshold:
    """Threshold at even odds, as class weights count them."""
    return Threshold(probability_at(-shift), 0.0, HALF)


def threshold_at(probability: float, shift: float = 0.0) -> Threshold:
    """Threshold at a probability that a person chose."""
    return Threshold(probability, math.log(probability / (1 - probability)) + shift, GIVEN)


def chosen(
    scores: FloatArray,
    labels: LabelArray,
    false_negative_cost: float | None = None,
    shift: float = 0.0,
) -> Threshold:
    """Threshold by Youden's index or ``false_negative_cost``; one half where a class is absent."""
    if not (len(scores) or len(labels)):
        return even_odds(shift)
    # A training that diverged still ends with a model, and says that it did.
    known = np.nan_to_num(scores) if np.isnan(scores).any() else scores
    ranked = SortedScores.from_scores(known, labels)
    if not ranked.both_classes:
        return even_odds(shift)
    ones, zeros = ranked.total_ones, ranked.total - ranked.total_ones
    # The first candidate calls no row a one.
    true = np.append(0, ranked.ones)
    false = np.append(0, ranked.rows) - true
    # In integers, where they are: equal gains must be seen to be equal. Costs as a model
    # report has them: rounded in the same way, so that both choose the same of several.
    loss = false * ones - true * zeros
    best = int(
        np.argmin(
            loss if false_negative_cost is None else false + false_negative_cost * (ones - true)
        )
    )
    score = between(ranked.levels, best)
    return Threshold(
        probability=probability_at(score - shift),
        score=score,
        rule=YOUDEN if false_negative_cost is None else COST,
        rows=len(labels),
        sensitivity=int(true[best]) / ones,
        specificity=1 - int(false[best]) / zeros,
        false_negative_cost=false_negative_cost,
    )


def probability_at(score: float) -> float:
    """Probability that belongs to one score."""
    return float(sigmoid(np.array([score]))[0])


def between(levels: FloatArray, above: int) -> float:
    """A score that has this many of the distinct levels, which fall, above it."""
    if above == 0:
        return float(levels[0])
    if above == len(levels):
        return float(np.nextafter(levels[-1], -np.inf))
    middle = (levels[above - 1] + levels[above]) / 2
    # Two neighbouring numbers have none between them.
    return float(middle if middle < levels[above - 1] else levels[above])
