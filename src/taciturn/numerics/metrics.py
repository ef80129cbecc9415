"""How good a score is: the figures that credit and advertising people use.

Scores are logits: above 0 means 1. With ``TP`` and ``FP`` counted at each distinct score used as a
threshold, ``P`` ones and ``N`` zeros::

    AUC    = share of (one, zero) pairs in the right order, ties count half
    PR-AUC = sum (recall_i - recall_(i-1)) precision_i, the average precision of scikit-learn
    KS     = max |TP/P - FP/N|
    Brier  = mean (p - y)^2
    ECE    = sum over bins (count/n) |mean p - share of ones|                 [Guo17]

AUC and KS are computed in integers and divided once, hence exact to the last rounding. Figures that
compare the two classes are NaN where one is absent: there is nothing to compare, and no number
would be true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.errors import ConfigError, DataError, LabelValueError, MissingValueError, ShapeError
from taciturn.numerics.logistic import log_loss, sigmoid

_Truth = NDArray[np.bool]


def accuracy(scores: FloatArray, labels: LabelArray) -> float:
    """The share of rows on the right side of a score of 0; a score of exactly 0 means 0.

    Args:
        scores: One logit for each row.
        labels: 0 or 1 for each row.

    Raises:
        DataError: If scores and labels are not fit for use (its kind says why).

    >>> accuracy(np.array([2.0, -1.0, 0.0, 3.0]), np.array([1, 0, 0, 0]))
    0.75
    """
    truth = _checked(scores, labels)
    return float(np.mean((scores > 0) == truth))


def balanced_accuracy(scores: FloatArray, labels: LabelArray) -> float:
    """The mean of the accuracy on ones and the accuracy on zeros; NaN if a class is absent.

    Args:
        scores: One logit for each row.
        labels: 0 or 1 for each row.

    Raises:
        DataError: If scores and labels are not fit for use (its kind says why).

    >>> balanced_accuracy(np.array([2.0, -1.0, -2.0, 3.0]), np.array([1, 0, 0, 0]))
    0.8333333333333333
    """
    truth = _checked(scores, labels)
    return _balanced(scores > 0, truth)


def auc(scores: FloatArray, labels: LabelArray) -> float:
    """The chance that a random one scores above a random zero; NaN if a class is absent.

    Args:
        scores: Any number for each row; only their order counts, and ties count half.
        labels: 0 or 1 for each row.

    Raises:
        DataError: If scores and labels are not fit for use (its kind says why).

    >>> auc(np.array([0.1, 0.4, 0.4, 0.8]), np.array([0, 0, 1, 1]))
    0.875
    >>> auc(np.array([0.1, 0.4]), np.array([1, 1]))
    nan
    """
    return _curve(scores, _checked(scores, labels)).auc()


def pr_auc(scores: FloatArray, labels: LabelArray) -> float:
    """The average precision; NaN if there is no one.

    Args:
        scores: Any number for each row; only their order counts.
        labels: 0 or 1 for each row.

    Raises:
        DataError: If scores and labels are not fit for use (its kind says why).

    >>> round(pr_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])), 6)
    0.833333
    """
    return _curve(scores, _checked(scores, labels)).pr_auc()


def ks(scores: FloatArray, labels: LabelArray) -> float:
    """The largest gap between the score distributions of ones and zeros; NaN if one is absent.

    Args:
        scores: Any number for each row; only their order counts.
        labels: 0 or 1 for each row.

    Raises:
        DataError: If scores and labels are not fit for use (its kind says why).

    >>> ks(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]))
    0.5
    """
    return _curve(scores, _checked(scores, labels)).ks()


def brier(probabilities: FloatArray, labels: LabelArray) -> float:
    """The mean squared distance between probability and label.

    Args:
        probabilities: In [0, 1], one for each row.
        labels: 0 or 1 for each row.

    Raises:
        DataError: If probabilities and labels are not fit for use (its kind says why).

    >>> brier(np.array([0.5, 1.0]), np.array([1, 1]))
    0.125
    """
    truth = _checked(probabilities, labels)
    _check_probabilities(probabilities)
    return _brier(probabilities, truth)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """The rows whose probability falls in one interval.

    Args:
        predicted: Their mean probability.
        observed: Their share of ones.
        count: How many they are, at least one.
    """

    predicted: float
    observed: float
    count: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether a predicted 30 % happens 30 % of the time.

    Args:
        error: The expected calibration error, 0 at best.
        bins: The bins that hold a row, from low to high probability.
    """

    error: float
    bins: tuple[CalibrationBin, ...]


def calibration(probabilities: FloatArray, labels: LabelArray, bins: int = 10) -> Calibration:
    """Compares predicted probabilities with observed shares, in bins of equal width.

    A bin includes its upper end and not its lower, save that the first includes 0; bins without a
    row are left out.

    Args:
        probabilities: In [0, 1], one for each row.
        labels: 0 or 1 for each row.
        bins: How many intervals [0, 1] is cut into.

    Raises:
        ConfigError: If there is not at least one bin.
        DataError: If probabilities and labels are not fit for use (its kind says why).

    >>> table = calibration(np.array([0.25, 0.25, 0.75, 0.75]), np.array([0, 0, 0, 1]), bins=2)
    >>> table.error
    0.25
    >>> table.bins[1]
    CalibrationBin(predicted=0.75, observed=0.5, count=2)
    """
    if bins < 1:
        raise ConfigError(f"calibration in {bins} bins", where="bins", hint="use 1 or more")
    truth = _checked(probabilities, labels)
    _check_probabilities(probabilities)
    return _calibration(probabilities, truth, bins)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Every figure of one set of scores; those that need both classes are NaN without them.

    Args:
        rows: How many rows were scored.
        accuracy: Share on the right side of 0.
        balanced_accuracy: Mean of the two classes' accuracies.
        auc: Area under the receiver operating characteristic.
        pr_auc: Average precision.
        ks: Kolmogorov-Smirnov distance of the two classes' scores.
        brier: Mean squared error of the probabilities.
        loss: Mean log loss in nats.
        calibration_error: Expected calibration error, in ten bins.
        calibration: Those of the bins that hold a row.
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


def evaluate(scores: FloatArray, labels: LabelArray) -> Metrics:
    """All figures at once; the rows are sorted only once.

    Args:
        scores: One logit for each row.
        labels: 0 or 1 for each row.

    Raises:
        DataError: If scores and labels are not fit for use (its kind says why).

    >>> figures = evaluate(np.array([2.0, -1.0, 0.5, -3.0]), np.array([1, 0, 0, 0]))
    >>> figures.accuracy, figures.auc, round(figures.loss, 4)
    (0.75, 1.0, 0.3657)
    """
    truth = _checked(scores, labels)
    probabilities = sigmoid(scores)
    guesses = scores > 0
    curve = _curve(scores, truth)
    table = _calibration(probabilities, truth, bins=10)
    return Metrics(
        rows=len(truth),
        accuracy=float(np.mean(guesses == truth)),
        balanced_accuracy=_balanced(guesses, truth),
        auc=curve.auc(),
        pr_auc=curve.pr_auc(),
        ks=curve.ks(),
        brier=_brier(probabilities, truth),
        loss=log_loss(scores, truth),
        calibration_error=table.error,
        calibration=table.bins,
    )


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
        # A zero is in the right order with the ones above it and half so with the ones it ties
        # with; counting both thresholds around it gives twice that, in integers.
        above = self.true + np.concatenate(([0], self.true[:-1]))
        twice = int(np.sum(np.diff(self.false, prepend=0) * above))
        return twice / (2 * self.ones * self.zeros)

    def pr_auc(self) -> float:
        if not self.ones:
            return math.nan
        precision = self.true / (self.true + self.false)
        return float(np.sum(np.diff(self.true, prepend=0) * precision) / self.ones)

    def ks(self) -> float:
        if not (self.ones and self.zeros):
            return math.nan
        gaps = np.abs(self.true * self.zeros - self.false * self.ones)
        return int(gaps.max()) / (self.ones * self.zeros)


def _curve(scores: FloatArray, truth: _Truth) -> _Curve:
    order = np.argsort(scores)[::-1]
    ordered = scores[order]
    # Rows of equal score pass a threshold together, so only the last of each run counts.
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
    true = np.cumsum(truth[order], dtype=np.int64)[last]
    return _Curve(true=true, false=last + 1 - true)


def _balanced(guesses: NDArray[np.bool], truth: _Truth) -> float:
    ones = int(np.count_nonzero(truth))
    zeros = len(truth) - ones
    if not (ones and zeros):
        return math.nan
    right_ones = int(np.count_nonzero(guesses & truth))
    right_zeros = int(np.count_nonzero(~(guesses | truth)))
    return (right_ones / ones + right_zeros / zeros) / 2


def _brier(probabilities: FloatArray, truth: _Truth) -> float:
    return float(np.mean(np.square(probabilities - truth)))


def _calibration(probabilities: FloatArray, truth: _Truth, bins: int) -> Calibration:
    edges = np.linspace(0.0, 1.0, bins + 1)[1:-1]
    place = np.searchsorted(edges, probabilities)
    counts = np.bincount(place, minlength=bins)
    predicted = np.bincount(place, weights=probabilities, minlength=bins)
    observed = np.bincount(place, weights=truth, minlength=bins)
    table = tuple(
        CalibrationBin(
            float(predicted[i] / counts[i]), float(observed[i] / counts[i]), int(counts[i])
        )
        for i in np.flatnonzero(counts)
    )
    return Calibration(float(np.abs(predicted - observed).sum() / len(truth)), table)


def _checked(values: FloatArray, labels: LabelArray) -> _Truth:
    """The labels as booleans, once values and labels are known to be fit for use."""
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
