"""Metrics of predicted means, of labels that are numbers.

With the mean ``m`` of a row, its label y, its exposure e (1 without one) and its weight w::

    deviance            sum w d(y, m) / sum w, of the family's deviance d of a row
    deviance explained  1 - deviance / deviance of the best constant rate
    observed/expected   sum w y / sum w m
    calibration         rows by predicted rate m/e, in ten groups of equal exposure w e
    lift                rate of the group with the highest predictions, over the rate of all rows
    Gini                twice the area between the diagonal and the share of ``sum w y`` that the
                        rows up to a predicted rate have, by their share of the exposure

Lift and Gini are NaN where a label is negative. Intervals are of 95 % (``numerics.intervals``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.numerics.intervals import mean_interval
from taciturn.numerics.predicted_rows import PredictedRows

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


def regression_metrics(rows: PredictedRows, loss: float) -> RegressionMetrics:
    """All metrics of predicted means; ``loss`` is that of a training."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _measured(rows, loss)


def _measured(rows: PredictedRows, loss: float) -> RegressionMetrics:
    labels, deviance = rows.labels, rows.mean(rows.deviances)
    relative = rows.weights / rows.weights.mean()
    spread = float(np.std(relative * rows.deviances))
    low, high = mean_interval(deviance, spread, labels.rows)
    observed, expected = float(rows.weights @ rows.truth), float(rows.weights @ rows.means)
    error = math.sqrt(float(np.sum(np.square(rows.weights * (rows.truth - rows.means)))))
    ratio = observed / expected if expected > 0 else math.nan
    ends = mean_interval(ratio, error / expected, 1) if expected > 0 else (math.nan, math.nan)
    volume = rows.weights * rows.exposure
    groups = _groups(rows, volume)
    positive = bool(rows.truth.min() >= 0) and observed > 0
    rate = observed / float(volume.sum())
    return RegressionMetrics(
        family=labels.family,
        rows=labels.rows,
        exposure=float(volume.sum()),
        mean_label=rate,
        deviance=deviance,
        deviance_low=low,
        deviance_high=high,
        deviance_explained=1.0 - deviance / (rows.null_deviance or math.nan),
        rmse=math.sqrt(rows.mean(np.square(rows.truth - rows.means))),
        loss=loss,
        calibration_ratio=ratio,
        calibration_ratio_low=ends[0],
        calibration_ratio_high=ends[1],
        lift=groups[-1].observed / rate if positive else math.nan,
        gini=_gini(rows, volume) if positive else math.nan,
        calibration=groups,
    )


def _groups(rows: PredictedRows, volume: FloatArray) -> tuple[RateBin, ...]:
    order = np.argsort(rows.rates, kind="stable")
    share = np.cumsum(volume[order]) - volume[order] / 2
    places = np.minimum((share * _GROUPS / volume.sum()).astype(np.int64), _GROUPS - 1)
    sums = [
        np.bincount(places, weights=values[order], minlength=_GROUPS)
        for values in (rows.weights * rows.means, rows.weights * rows.truth, volume)
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


def _gini(rows: PredictedRows, volume: FloatArray) -> float:
    order = np.argsort(rows.rates, kind="stable")
    total = np.cumsum((rows.weights * rows.truth)[order])
    height = np.concatenate([[0.0], total / total[-1]])
    widths = volume[order] / volume.sum()
    return float(1.0 - np.sum(widths * (height[1:] + height[:-1])))
