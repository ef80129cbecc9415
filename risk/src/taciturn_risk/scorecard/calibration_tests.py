"""Calibration tests of predicted probabilities: groups of rows, a fitted line, and two tests.

- **Hosmer-Lemeshow** [HosmerLemeshow80]: rows in ``g`` groups of equal size by probability; with
  ``O`` ones, ``E`` the sum of probabilities and ``n`` rows in a group, ::

      H = sum (O - E)^2 / (E (1 - E/n))   ~ chi-square

  with ``g - 2`` degrees of freedom on the rows that the model was fitted to, and ``g`` on others.
- **Spiegelhalter's z** [Spiegelhalter86], from the Brier score and without groups::

      z = sum (y - p)(1 - 2p) / sqrt(sum (1 - 2p)^2 p (1 - p))   ~ normal

- **The calibration line** [Cox58]: ``logit P(y) = a + b logit p`` fitted by maximum likelihood; a
  model that is right has ``b = 1`` and ``a = 0``. ``b < 1``: the model is too sure of itself. *In
  the large* is the ``a`` with ``b`` held at 1: by how much the log-odds are too low.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray, LabelArray
from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.intervals import wilson
from taciturn.numerics.sorted_scores import truth_of

_STEPS, _CLOSE = 50, 1e-10


@dataclass(frozen=True, slots=True)
class CalibrationGroup:
    """Rows of similar probability; ``low`` and ``high`` bound ``observed``, the rate of ones."""

    rows: int
    ones: int
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class HosmerLemeshow:
    """Hosmer-Lemeshow test; ``p_value`` is how often chance alone gives a statistic as large."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Spiegelhalter:
    """Spiegelhalter's two-sided test."""

    z: float
    p_value: float


@dataclass(frozen=True, slots=True)
class CalibrationLine:
    """Calibration line with standard errors; NaN where it does not exist.

    ``intercept`` is a, ``slope`` b, and ``in_the_large`` the a where b is 1.
    """

    intercept: float
    intercept_error: float
    slope: float
    slope_error: float
    in_the_large: float
    in_the_large_error: float


def calibration_groups(
    scores: FloatArray, labels: LabelArray, groups: int = 10
) -> tuple[CalibrationGroup, ...]:
    """Rows in about equal groups by log-odds, from low to high; equal scores stay together."""
    if groups < 1:
        raise ConfigError(
            f"a calibration test cannot have {groups} groups", where="groups", hint="use 10"
        )
    truth = truth_of(scores, labels)
    order = np.argsort(scores)
    ordered, ones = scores[order], truth[order]
    places = np.linspace(0, len(scores), min(groups, len(scores)) + 1)[1:-1].round()
    # A group begins with the first row of its score.
    starts = np.searchsorted(ordered, ordered[places.astype(np.int64)], side="left")
    starts = np.unique(np.append(0, starts))
    counts = np.diff(np.append(starts, len(scores)))
    sums = np.add.reduceat(sigmoid(ordered), starts)
    held = np.add.reduceat(ones.astype(np.int64), starts)
    return tuple(
        CalibrationGroup(int(n), int(k), float(p / n), int(k) / int(n), *wilson(int(k), int(n)))
        for n, k, p in zip(counts, held, sums, strict=True)
    )


def hosmer_lemeshow(groups: tuple[CalibrationGroup, ...], *, fitted: bool) -> HosmerLemeshow:
    """Hosmer-Lemeshow test; ``fitted`` where the model was fitted to these rows."""
    # Not scipy.stats, which has the same behind a second of imports.
    from scipy.special import chdtrc

    degrees = len(groups) - (2 if fitted else 0)
    if degrees < 1:
        return HosmerLemeshow(math.nan, max(degrees, 0), math.nan)
    statistic = 0.0
    for group in groups:
        variance = group.rows * group.predicted * (1 - group.predicted)
        gap = group.ones - group.rows * group.predicted
        if variance > 0:
            statistic += gap**2 / variance
        elif gap:
            # What was said to be impossible has happened.
            statistic = math.inf
    return HosmerLemeshow(statistic, degrees, float(chdtrc(degrees, statistic)))


def spiegelhalter(scores: FloatArray, labels: LabelArray) -> Spiegelhalter:
    """Spiegelhalter's test; NaN where every probability is 0, one half or 1."""
    truth, probabilities = truth_of(scores, labels), sigmoid(scores)
    lean = 1 - 2 * probabilities
    variance = float(np.sum(np.square(lean) * probabilities * (1 - probabilities)))
    if variance <= 0:
        return Spiegelhalter(math.nan, math.nan)
    z = float(np.sum((truth - probabilities) * lean)) / math.sqrt(variance)
    return Spiegelhalter(z, math.erfc(abs(z) / math.sqrt(2)))


def calibration_line(scores: FloatArray, labels: LabelArray) -> CalibrationLine:
    """Calibration line of scores, which are log-odds of a one."""
    truth = truth_of(scores, labels).astype(np.float64)
    ones = np.ones((len(scores), 1))
    large, large_error = _fitted(ones, scores, truth)
    line, errors = np.full(2, math.nan), np.full(2, math.nan)
    if not _separated(scores, truth > 0):
        line, errors = _fitted(np.column_stack([ones, scores]), np.zeros_like(scores), truth)
    values = (line[0], errors[0], line[1], errors[1], large[0], large_error[0])
    return CalibrationLine(*map(float, values))


def _separated(scores: FloatArray, truth: NDArray[np.bool]) -> bool:
    """Whether a threshold separates the classes: then the likelihood has no maximum."""
    ones, zeros = scores[truth], scores[~truth]
    if not (len(ones) and len(zeros)):
        return True
    return bool(zeros.max() <= ones.min() or ones.max() <= zeros.min())


def _fitted(
    design: FloatArray, offset: FloatArray, truth: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Maximum likelihood by Newton's method with halved steps, and standard errors."""
    none = np.full(design.shape[1], math.nan)
    if truth.min() == truth.max():
        return none, none
    # From what the model says of itself, which is near in most cases.
    at = np.zeros(design.shape[1])
    at[1:] = 1.0
    moved = design @ at + offset
    value = _likelihood(moved, truth)
    for _ in range(_STEPS):
        probabilities = sigmoid(moved)
        matrix = (design * (probabilities * (1 - probabilities))[:, None]).T @ design
        slope = design.T @ (truth - probabilities)
        try:
            step = np.linalg.solve(matrix, slope)
        except np.linalg.LinAlgError:
            return none, none
        if float(slope @ step) < _CLOSE:
            # The last step is as long as what is still wrong.
            return at + step, np.sqrt(np.diag(np.linalg.inv(matrix)))
        size = 1.0
        while True:
            moved = design @ (at + size * step) + offset
            reached = _likelihood(moved, truth)
            if reached >= value or size < _CLOSE:
                break
            size /= 2
        at, value = at + size * step, reached
    return none, none


def _likelihood(scores: FloatArray, truth: FloatArray) -> float:
    # log(1 + e^s) of minus the signed score: logaddexp, several times as fast.
    signed = scores * (1 - 2 * truth)
    return float(-(np.maximum(signed, 0.0) + np.log1p(np.exp(-np.abs(signed)))).sum())
