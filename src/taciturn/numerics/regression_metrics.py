"""Metrics of predicted means, and the choice between these and those of two classes.

With the mean ``m`` of a row, its label y, its exposure e (1 without one) and its weight w::

    deviance            sum w d(y, m) / sum w, of the family's deviance d of a row
    deviance explained  1 - deviance / deviance of the best constant rate
    observed/expected   sum w y / sum w m
    calibration         rows by predicted rate m/e, in ten groups of equal exposure w e
    lift                rate of the group with the highest predictions, over the rate of all rows
    Gini                twice the area between the diagonal and the share of ``sum w y`` that the
                        rows up to a predicted rate have, by their share of the exposure

Lift and Gini are NaN where a label is negative. Intervals are of 95 % (``numerics.intervals``).
The **loss** of a training is half of the deviance in the labels' coordinates: of ``gaussian`` that
of labels in standard deviations; of two classes it is the log loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.tables import LabelTable
from taciturn.memmap import over_blocks
from taciturn.numerics.convergence import MOST_LOSS
from taciturn.numerics.intervals import mean_interval
from taciturn.numerics.likelihood import response_likelihood, weighted_likelihood
from taciturn.numerics.logistic import training_loss
from taciturn.numerics.metrics import AddedAuc, Metrics, added_auc, evaluate

_GROUPS = 10


@dataclass(frozen=True, slots=True)
class RateBin:
    """Rows of similar predicted rate; ``exposure`` is the sum of theirs, times their weights."""

    predicted: float
    observed: float
    exposure: float
    count: int


@dataclass(frozen=True, slots=True)
class RegressionMetrics:
    """Metrics of predicted means of a family; those that do not apply are NaN.

    ``mean_label`` is per exposure. ``rmse`` is in the label's unit. ``calibration_ratio`` is
    observed over expected.
    """

    family: str
    rows: int
    exposure: float
    mean_label: float
    deviance: float
    deviance_low: float
    deviance_high: float
    deviance_explained: float
    rmse: float
    loss: float
    calibration_ratio: float
    calibration_ratio_low: float
    calibration_ratio_high: float
    lift: float
    gini: float
    calibration: tuple[RateBin, ...]


@dataclass(frozen=True, slots=True)
class AddedDeviance:
    """Deviance explained that a model adds to another on the same rows, with its interval."""

    explained: float
    low: float
    high: float


ModelMetrics: TypeAlias = Metrics | RegressionMetrics
Added: TypeAlias = AddedAuc | AddedDeviance


def class_metrics(metrics: ModelMetrics | None) -> Metrics:
    """Metrics of labels of two classes; TypeError where they are of another family."""
    if not isinstance(metrics, Metrics):
        raise TypeError(f"{metrics} are not metrics of two classes")
    return metrics


def evaluate_labels(scores: FloatArray, labels: LabelTable, shift: float = 0.0) -> ModelMetrics:
    """All metrics of scores, those of the labels' family."""
    if labels.kind.has_classes:
        return evaluate(scores, labels.values, shift)
    return _Rows(scores, labels).metrics()


def added_by_partner(scores: FloatArray, alone: FloatArray, labels: LabelTable) -> Added:
    """What a model adds to another on the same rows: AUC, or deviance explained."""
    if labels.kind.has_classes:
        return added_auc(scores, alone, labels.values)
    joint, other = _Rows(scores, labels), _Rows(alone, labels)
    null = joint.null_deviance
    gains = (other.deviances - joint.deviances) * joint.weights / joint.weights.mean() / null
    difference = float(gains.mean())
    return AddedDeviance(difference, *mean_interval(difference, float(gains.std()), labels.rows))


def labels_loss(
    scores: FloatArray,
    labels: LabelTable,
    class_weight: tuple[float, float] | None = None,
    rows: IndexArray | None = None,
) -> float:
    """Mean training loss of some rows, or of all."""
    if labels.kind.has_classes:
        values = labels.values if rows is None else labels.values[rows]
        return training_loss(scores, values, class_weight)
    chosen = labels if rows is None else labels.take(rows)
    likelihood = response_likelihood(chosen, partial(weighted_likelihood, class_weight=None))

    def value(place: slice) -> float:
        return float(np.sum(likelihood(scores[place], place).value))

    with np.errstate(over="ignore", invalid="ignore"):
        return -sum(over_blocks(value, chosen.rows, scores)) / chosen.rows


def fits_worse_than_base_rate(scores: FloatArray, labels: LabelTable) -> bool:
    """Whether a constant fits the rows better than the scores do, by more than chance would have.

    By more than two standard errors of the mean difference of a row's deviances.
    """
    model, constant = (
        _Rows(np.nan_to_num(one), labels)
        for one in (scores, np.full(labels.rows, null_score(labels)))
    )
    excess = (model.deviances - constant.deviances) * model.weights / model.weights.mean()
    if not np.isfinite(excess).all():
        return True
    return bool(excess.mean() > 2.0 * excess.std() / math.sqrt(labels.rows))


def null_score(labels: LabelTable) -> float:
    """Score of the best constant model."""
    ones, response = np.ones(labels.rows), labels.response
    exposure, weights = (
        ones if given is None else given for given in (labels.exposure, labels.weights)
    )
    constant = labels.kind.constant(labels.values, exposure, weights)
    return (constant - response.location) / response.scale


def most_loss(labels: LabelTable) -> float:
    """Training loss beyond which a training has diverged: twice that of no model at all.

    That is the score 0, which with an intercept is the best constant.
    """
    if labels.kind.has_classes:
        return MOST_LOSS
    return 2.0 * labels_loss(np.zeros(labels.rows), labels)


class _Rows:
    """Means, deviances, exposures and weights of rows."""

    def __init__(self, scores: FloatArray, labels: LabelTable) -> None:
        self.labels, self.truth = labels, np.asarray(labels.values, dtype=np.float64)
        ones = np.ones(labels.rows)
        self.exposure = ones if labels.exposure is None else labels.exposure
        self.weights = ones if labels.weights is None else labels.weights
        self.scores = scores
        with np.errstate(over="ignore", invalid="ignore"):
            self.rates = labels.kind.mean(labels.response.predictor(scores))
            self.means = self.rates * self.exposure
            self.deviances = labels.kind.deviance(self.truth, self.means)

    @property
    def null_deviance(self) -> float:
        """Mean deviance of the best constant rate."""
        kind = self.labels.kind
        constant = kind.constant(self.truth, self.exposure, self.weights)
        means = kind.mean(np.full(self.labels.rows, constant)) * self.exposure
        return self._mean(kind.deviance(self.truth, means))

    def _mean(self, values: FloatArray) -> float:
        return float(self.weights @ values / self.weights.sum())

    def metrics(self) -> RegressionMetrics:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._metrics()

    def _metrics(self) -> RegressionMetrics:
        labels, deviance = self.labels, self._mean(self.deviances)
        relative = self.weights / self.weights.mean()
        spread = float(np.std(relative * self.deviances))
        low, high = mean_interval(deviance, spread, labels.rows)
        observed, expected = float(self.weights @ self.truth), float(self.weights @ self.means)
        error = math.sqrt(float(np.sum(np.square(self.weights * (self.truth - self.means)))))
        ratio = observed / expected if expected > 0 else math.nan
        ends = mean_interval(ratio, error / expected, 1) if expected > 0 else (math.nan, math.nan)
        volume = self.weights * self.exposure
        groups = self._groups(volume)
        positive = bool(self.truth.min() >= 0) and observed > 0
        rate = observed / float(volume.sum())
        return RegressionMetrics(
            family=labels.family,
            rows=labels.rows,
            exposure=float(volume.sum()),
            mean_label=rate,
            deviance=deviance,
            deviance_low=low,
            deviance_high=high,
            deviance_explained=1.0 - deviance / (self.null_deviance or math.nan),
            rmse=math.sqrt(self._mean(np.square(self.truth - self.means))),
            loss=labels_loss(self.scores, labels),
            calibration_ratio=ratio,
            calibration_ratio_low=ends[0],
            calibration_ratio_high=ends[1],
            lift=groups[-1].observed / rate if positive else math.nan,
            gini=self._gini(volume) if positive else math.nan,
            calibration=groups,
        )

    def _groups(self, volume: FloatArray) -> tuple[RateBin, ...]:
        order = np.argsort(self.rates, kind="stable")
        share = np.cumsum(volume[order]) - volume[order] / 2
        places = np.minimum((share * _GROUPS / volume.sum()).astype(np.int64), _GROUPS - 1)
        sums = [
            np.bincount(places, weights=values[order], minlength=_GROUPS)
            for values in (self.weights * self.means, self.weights * self.truth, volume)
        ]
        counts = np.bincount(places, minlength=_GROUPS)
        return tuple(
            RateBin(
                float(sums[0][place] / sums[2][place]),
                float(sums[1][place] / sums[2][place]),
                float(sums[2][place]),
                int(counts[place]),
            )
            for place in np.flatnonzero(sums[2])
        )

    def _gini(self, volume: FloatArray) -> float:
        order = np.argsort(self.rates, kind="stable")
        total = np.cumsum((self.weights * self.truth)[order])
        height = np.concatenate([[0.0], total / total[-1]])
        widths = volume[order] / volume.sum()
        return float(1.0 - np.sum(widths * (height[1:] + height[:-1])))
