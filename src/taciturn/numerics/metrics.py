"""Metrics of scores that are common in credit risk and advertising.

Scores are logits: above 0 means 1. With ``TP`` and ``FP`` counted at each distinct score used as a
threshold, ``P`` ones and ``N`` zeros::

    AUC    = share of (one, zero) pairs in the right order, ties count half
    PR-AUC = sum (recall_i - recall_(i-1)) precision_i, the average precision of scikit-learn
    KS     = max |TP/P - FP/N|
    Brier  = mean (p - y)^2
    ECE    = sum over bins (count/n) |mean p - share of ones|                 [Guo17]
    O/E    = ones / sum p: above 1 the model says too few, below 1 too many

AUC and KS are computed in integers and divided once, hence exact to the last rounding. Figures that
compare the two classes are NaN where one is absent: there is nothing to compare, and no number
would be true. Intervals are of 95 % (``taciturn.numerics.intervals``).

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

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.errors import ConfigError, DataError, LabelValueError, MissingValueError, ShapeError
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
from taciturn.numerics.logistic import row_losses, sigmoid

_Truth = NDArray[np.bool]


def accuracy(scores: FloatArray, labels: LabelArray) -> float:
    """Accuracy at a threshold of 0; a score of exactly 0 means 0."""
    return float(np.mean((scores > 0) == truth_of(scores, labels)))


def balanced_accuracy(scores: FloatArray, labels: LabelArray) -> float:
    """Mean of the accuracy on ones and the accuracy on zeros; NaN if a class is absent."""
    return _balanced(scores > 0, truth_of(scores, labels))


def auc(scores: FloatArray, labels: LabelArray) -> float:
    """Area under the ROC curve, ties counting half; NaN if a class is absent."""
    return _curve(scores, truth_of(scores, labels)).auc()


def pr_auc(scores: FloatArray, labels: LabelArray) -> float:
    """Average precision; NaN if there is no one."""
    return _curve(scores, truth_of(scores, labels)).pr_auc()


def ks(scores: FloatArray, labels: LabelArray) -> float:
    """Kolmogorov-Smirnov distance between ones and zeros; NaN if a class is absent."""
    return _curve(scores, truth_of(scores, labels)).ks()


def brier(probabilities: FloatArray, labels: LabelArray) -> float:
    """Brier score: mean squared distance between probability and label."""
    truth = truth_of(probabilities, labels)
    _check_probabilities(probabilities)
    return float(np.mean(np.square(probabilities - truth)))


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The rows whose probability falls in one interval."""

    predicted: float
    observed: float
    count: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration table; ``error`` is the expected calibration error."""

    error: float
    bins: tuple[CalibrationBin, ...]


def calibration(probabilities: FloatArray, labels: LabelArray, bins: int = 10) -> Calibration:
    """Predicted probabilities and observed shares, in bins of equal width.

    A bin includes its upper end and not its lower, save that the first includes 0; bins without a
    row are left out.
    """
    if bins < 1:
        raise ConfigError(
            f"a calibration curve cannot have {bins} bins", where="bins", hint="use 1 or more"
        )
    truth = truth_of(probabilities, labels)
    _check_probabilities(probabilities)
    return _calibrated(*_bins(probabilities, truth, bins))


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
    right = int(np.count_nonzero(guesses == truth))
    curve = _curve(scores, truth)
    area, average, distance = curve.auc(), curve.pr_auc(), curve.ks()
    ends = (
        wilson(right, len(truth)),
        auc_interval(area, curve.ones, curve.zeros),
        precision_interval(average, curve.ones),
        distance_interval(distance, curve.ones, curve.zeros),
        mean_interval(loss, ended.deviation, len(truth))
        if math.isfinite(ended.deviation)
        else UNKNOWN,
        ratio_interval(curve.ones, expected, len(truth)),
    )
    return Metrics(
        len(truth),
        right / len(truth),
        _balanced(guesses, truth),
        area,
        average,
        distance,
        ended.brier,
        loss,
        ended.calibration.error,
        ended.calibration.bins,
        curve.ones / len(truth),
        curve.ones / expected if expected > 0 else math.nan,
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
    areas = _curve(scores, truth).auc(), _curve(others, same).auc()
    difference = areas[0] - areas[1]
    ones, zeros = int(np.count_nonzero(truth)), int(np.count_nonzero(~truth))
    if not (ones and zeros):
        return AddedAuc(math.nan, math.nan, math.nan)
    if min(ones, zeros) < 2 or not all(0 < area < 1 for area in areas):
        first, second = (
            # A constant ranks nothing: its area is known.
            (area, area) if np.ptp(ranked) == 0 else auc_interval(area, ones, zeros)
            for area, ranked in zip(areas, (scores, others), strict=True)
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
    calibration: Calibration

    @classmethod
    def from_scores(cls, scores: FloatArray, truth: _Truth, shift: float) -> _Fit:
        rows, losses = len(scores), np.empty(len(scores))

        def sums(place: slice) -> tuple[Any, ...]:
            moved, ones = scores[place] - shift, truth[place]
            probabilities = sigmoid(moved)
            losses[place] = row_losses(moved, ones)
            squares = np.square(probabilities - ones)
            bins = _bins(probabilities, ones, 10)
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


@dataclass(frozen=True, slots=True)
class _Curve:
    """True and false positives at each distinct threshold, from the highest down to all rows."""

    true: IntArray
    false: IntArray

    @property
    def ones(self) -> int:
        return int(self.true[-1])

    @property
    def zeros(self) -> int:
        return int(self.false[-1])

    def auc(self) -> float:
        if not (self.ones and self.zeros):
            return math.nan

        def twice(place: slice) -> int:
            # A zero is in the right order with the ones above it and half so with the ones it ties
            # with; counting both thresholds around it gives twice that, in integers.
            true, above = self._from_before(self.true, place)
            false, before = self._from_before(self.false, place)
            return int(np.sum((false - before) * (true + above)))

        return sum(over_blocks(twice, len(self.true))) / (2 * self.ones * self.zeros)

    def pr_auc(self) -> float:
        if not self.ones:
            return math.nan

        def precise(place: slice) -> float:
            true, before = self._from_before(self.true, place)
            return float(np.sum((true - before) * (true / (true + self.false[place]))))

        return sum(over_blocks(precise, len(self.true))) / self.ones

    def ks(self) -> float:
        if not (self.ones and self.zeros):
            return math.nan

        def most(place: slice) -> int:
            gaps = self.true[place] * self.zeros - self.false[place] * self.ones
            return int(np.abs(gaps).max())

        return max(over_blocks(most, len(self.true))) / (self.ones * self.zeros)

    @staticmethod
    def _from_before(counts: IntArray, place: slice) -> tuple[IntArray, IntArray]:
        """Counts at some thresholds, and those at the threshold before each."""
        first = counts[place.start - 1] if place.start else 0
        return counts[place], np.concatenate(([first], counts[place.start : place.stop - 1]))


def _curve(scores: FloatArray, truth: _Truth) -> _Curve:
    order = np.argsort(scores)[::-1]
    ordered = scores[order]
    # Rows of equal score pass a threshold together, so only the last of each run counts.
    ends = ordered[1:] != ordered[:-1]
    del ordered
    counts = np.cumsum(truth[order], dtype=np.int64)
    del order
    last = np.append(np.flatnonzero(ends), len(counts) - 1)
    true = counts[last]
    return _Curve(true=true, false=last + 1 - true)


def _placements(scores: FloatArray, truth: _Truth) -> FloatArray:
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


def _balanced(guesses: NDArray[np.bool], truth: _Truth) -> float:
    ones = int(np.count_nonzero(truth))
    zeros = len(truth) - ones
    if not (ones and zeros):
        return math.nan
    right_ones = int(np.count_nonzero(guesses & truth))
    right_zeros = int(np.count_nonzero(~(guesses | truth)))
    return (right_ones / ones + right_zeros / zeros) / 2


def _bins(
    probabilities: FloatArray, truth: _Truth, bins: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Per bin: number of rows, sum of their probabilities, sum of their labels."""
    edges = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    place = np.searchsorted(edges, probabilities)
    counts = np.bincount(place, minlength=bins)
    predicted = np.bincount(place, weights=probabilities, minlength=bins)
    return counts, predicted, np.bincount(place, weights=truth, minlength=bins)


def _calibrated(
    counts: NDArray[Any], predicted: NDArray[Any], observed: NDArray[Any]
) -> Calibration:
    table = tuple(
        CalibrationBin(
            float(predicted[i] / counts[i]), float(observed[i] / counts[i]), int(counts[i])
        )
        for i in np.flatnonzero(counts)
    )
    return Calibration(float(np.abs(predicted - observed).sum() / counts.sum()), table)


def truth_of(values: FloatArray, labels: LabelArray) -> NDArray[np.bool]:
    """The labels as booleans; raises ``DataError`` unless scores and labels are fit for use."""
    if values.ndim != 1 or values.shape != labels.shape:
        raise ShapeError(f"scores of shape {values.shape}, labels of {labels.shape}")
    if not len(values):
        raise ShapeError("no rows to score")
    if np.isnan(values).any():
        raise MissingValueError("a score is NaN", hint="did training diverge?")
    truth = np.equal(labels, 1)
    if not np.all(truth | np.equal(labels, 0)):
        raise LabelValueError("a label is neither 0 nor 1")
    return truth


def _check_probabilities(values: FloatArray) -> None:
    if values.min() < 0 or values.max() > 1:
        raise DataError(
            "a probability lies outside [0, 1]", hint="scores become probabilities by sigmoid"
        )
