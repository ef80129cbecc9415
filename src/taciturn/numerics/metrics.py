"""Metrics of scores that are common in credit risk and advertising.

Scores are logits: above 0 means 1. ``sorted_scores`` has AUC, PR-AUC and KS; besides::

    Brier  = mean (p - y)^2
    ECE    = sum over bins (count/n) |mean p - share of ones|                 [Guo17]
    O/E    = ones / sum p: above 1 the model says too few, below 1 too many

Figures that compare the two classes are NaN where one is absent: there is nothing to compare, and
no number would be true. Intervals are of 95 % (``taciturn.numerics.intervals``).

**Class weights** w0, w1 move the log-odds of a fitted model by ``log(w1/w0)``: the odds of a one
are w1/w0 times what they are among the rows [KingZeng01]. A score keeps what training made of it,
so that its sign is the class that the weights ask for; a probability is ``sigma(z - log(w1/w0))``.

What one model adds to another on the same rows is the difference of their AUCs with the interval of
DeLong, DeLong and Clarke-Pearson [DeLong88]: each row's *placement*, the share of the other class
that it is right of, has its difference between the two models, and ::

    SE^2 = var(differences of ones)/P + var(differences of zeros)/N
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray, LabelArray
from taciturn.families.binomial import sigmoid
from taciturn.memmap import over_blocks
from taciturn.numerics.intervals import (
    UNKNOWN,
    auc_interval,
    distance_interval,
    mean_interval,
    precision_interval,
    ratio_interval,
    wilson,
)
from taciturn.numerics.logistic import row_losses
from taciturn.numerics.sorted_scores import SortedScores, Truth, truth_of

_BINS = 10


def auc(scores: FloatArray, labels: LabelArray) -> float:
    """Area under the ROC curve, ties counting half; NaN if a class is absent."""
    return SortedScores.from_scores(scores, labels).auc()


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The rows whose probability falls in one interval."""

    predicted: float
    observed: float
    count: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """Every metric of one set of scores; those that need both classes are NaN without them.

    ``…_low`` and ``…_high`` are the ends of an interval of 95 %, NaN in records of versions that
    had none. ``loss`` is in nats. ``calibration_error`` is the expected calibration error in ten
    bins, and ``calibration_ratio`` observed over expected ones.
    """

    rows: int
    accuracy: float
    balanced_accuracy: float
    auc: float
    pr_auc: float
    ks: float
    brier: float
    loss: float
    calibration_error: float
    calibration: tuple[CalibrationBin, ...]
    base_rate: float = math.nan
    calibration_ratio: float = math.nan
    accuracy_low: float = math.nan
    accuracy_high: float = math.nan
    auc_low: float = math.nan
    auc_high: float = math.nan
    pr_auc_low: float = math.nan
    pr_auc_high: float = math.nan
    ks_low: float = math.nan
    ks_high: float = math.nan
    loss_low: float = math.nan
    loss_high: float = math.nan
    calibration_ratio_low: float = math.nan
    calibration_ratio_high: float = math.nan


def evaluate(scores: FloatArray, labels: LabelArray, shift: float = 0.0) -> Metrics:
    """All metrics at once; ``shift`` is the ``log_odds_shift`` of class weights."""
    truth = truth_of(scores, labels)
    ended = _Fit.from_scores(scores, truth, shift)
    loss, expected = ended.loss, ended.expected
    guesses = scores > 0
    right, right_ones = (
        int(np.count_nonzero(some)) for some in (guesses == truth, guesses & truth)
    )
    ranked = SortedScores.from_truth(scores, truth)
    area, average, distance = ranked.auc(), ranked.pr_auc(), ranked.ks()
    ones, zeros = ranked.total_ones, ranked.total_zeros
    ends = (
        wilson(right, len(truth)),
        auc_interval(area, ones, zeros),
        precision_interval(average, ones),
        distance_interval(distance, ones, zeros),
        mean_interval(loss, ended.deviation, len(truth))
        if math.isfinite(ended.deviation)
        else UNKNOWN,
        ratio_interval(ones, expected, len(truth)),
    )
    return Metrics(
        len(truth),
        right / len(truth),
        (right_ones / ones + (right - right_ones) / zeros) / 2 if ones and zeros else math.nan,
        area,
        average,
        distance,
        ended.brier,
        loss,
        *ended.calibration,
        ones / len(truth),
        ones / expected if expected > 0 else math.nan,
        *(end for interval in ends for end in interval),
    )


def log_odds_shift(class_weight: tuple[float, float] | None) -> float:
    """Shift of a fitted model's logits by class weights: ``log(w1/w0)``.

    0 where one class has no weight: the model has seen the other only, and there is no way back.
    """
    if class_weight is None or not all(class_weight):
        return 0.0
    return math.log(class_weight[1] / class_weight[0])


@dataclass(frozen=True, slots=True)
class AddedAuc:
    """Difference of two models' AUCs on the same rows, with its 95 % interval."""

    auc: float
    low: float
    high: float


def added_auc(scores: FloatArray, others: FloatArray, labels: LabelArray) -> AddedAuc:
    """Difference of two AUCs on the same rows, with DeLong's interval; NaN if a class is absent.

    Where an area is 0 or 1 its own error is unknown, not zero: there the interval is as wide as
    both models' intervals allow.
    """
    truth, same = truth_of(scores, labels), truth_of(others, labels)
    ranked = SortedScores.from_truth(scores, truth)
    areas = ranked.auc(), SortedScores.from_truth(others, same).auc()
    difference, ones, zeros = areas[0] - areas[1], ranked.total_ones, ranked.total_zeros
    if not ranked.both_classes:
        return AddedAuc(math.nan, math.nan, math.nan)
    if min(ones, zeros) < 2 or not all(0 < area < 1 for area in areas):
        first, second = (
            # A constant ranks nothing: its area is known.
            (area, area) if np.ptp(values) == 0 else auc_interval(area, ones, zeros)
            for area, values in zip(areas, (scores, others), strict=True)
        )
        return AddedAuc(difference, first[0] - second[1], first[1] - second[0])
    moved = _placements(scores, truth) - _placements(others, truth)
    error = np.var(moved[truth], ddof=1) / ones + np.var(moved[~truth], ddof=1) / zeros
    # The deviation of a mean of one is its own.
    low, high = mean_interval(difference, math.sqrt(error), 1)
    return AddedAuc(difference, max(-1.0, low), min(1.0, high))


@dataclass(frozen=True, slots=True)
class _Fit:
    """Sums over rows, computed by blocks.

    ``deviation`` is the standard deviation of the losses, infinite or NaN for a diverged model;
    ``expected`` is the sum of the probabilities.
    """

    loss: float
    deviation: float
    expected: float
    brier: float
    calibration: tuple[float, tuple[CalibrationBin, ...]]

    @classmethod
    def from_scores(cls, scores: FloatArray, truth: Truth, shift: float) -> _Fit:
        rows, losses = len(scores), np.empty(len(scores))

        def sums(place: slice) -> tuple[Any, ...]:
            moved, ones = scores[place] - shift, truth[place]
            probabilities = sigmoid(moved)
            losses[place] = row_losses(moved, ones)
            squares = np.square(probabilities - ones)
            bins = _bins(probabilities, ones)
            return (np.sum(losses[place]), np.sum(squares), np.sum(probabilities), *bins)

        parts = zip(*over_blocks(sums, rows, scores), strict=True)
        loss, brier, expected, *bins = (reduce(operator.add, part) for part in parts)
        mean = float(loss / rows)
        with np.errstate(over="ignore", invalid="ignore"):
            squared = sum(
                over_blocks(lambda place: float(np.sum(np.square(losses[place] - mean))), rows)
            )
        deviation = math.sqrt(squared / rows) if math.isfinite(squared) else math.inf
        return cls(mean, deviation, float(expected), float(brier / rows), _calibrated(*bins))


def _placements(scores: FloatArray, truth: Truth) -> FloatArray:
    """Share of the other class that each row is on the right side of; ties count half."""
    ones, zeros = np.sort(scores[truth]), np.sort(scores[~truth])
    placements = np.empty(len(scores))
    for mask, others, sides in ((truth, zeros, (1, 0)), (~truth, ones, (-1, 1))):
        asked = scores[mask]
        # In their order: a search that jumps about in a long array takes many times as long.
        order = np.argsort(asked)
        asked = asked[order]
        twice = np.searchsorted(others, asked, "left")
        twice += np.searchsorted(others, asked, "right")
        sign, offset = sides
        asked[order] = offset + sign * twice / (2 * len(others))
        placements[mask] = asked
    return placements


def _bins(probabilities: FloatArray, truth: Truth) -> tuple[NDArray[Any], ...]:
    """Per bin of equal width: number of rows, sum of their probabilities, sum of their labels.

    A bin includes its upper end and not its lower, save that the first includes 0.
    """
    place = np.searchsorted(np.linspace(0.0, 1.0, _BINS + 1)[1:-1], probabilities)
    counts = np.bincount(place, minlength=_BINS)
    predicted = np.bincount(place, weights=probabilities, minlength=_BINS)
    return counts, predicted, np.bincount(place, weights=truth, minlength=_BINS)


def _calibrated(
    counts: NDArray[Any], predicted: NDArray[Any], observed: NDArray[Any]
) -> tuple[float, tuple[CalibrationBin, ...]]:
    """Expected calibration error, and the bins that have rows."""
    table = tuple(
        CalibrationBin(
            float(predicted[i] / counts[i]), float(observed[i] / counts[i]), int(counts[i])
        )
        for i in np.flatnonzero(counts)
    )
    return float(np.abs(predicted - observed).sum() / counts.sum()), table
