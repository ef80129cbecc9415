"""Intervals of a share and of an AUC, against SciPy and against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binomtest, rankdata

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError, DataError
from taciturn.numerics.intervals import auc_interval, wilson
from taciturn.numerics.metrics import evaluate
from tests.expected import refused


def hanley_mcneil(area: float, positives: int, negatives: int) -> float:
    """The standard error as the paper prints it."""
    q1 = area / (2 - area)
    q2 = 2 * area**2 / (1 + area)
    total = area * (1 - area)
    total += (positives - 1) * (q1 - area**2) + (negatives - 1) * (q2 - area**2)
    return math.sqrt(total / (positives * negatives))


@pytest.mark.parametrize("area", [0.0, 0.2, 0.5, 0.893, 0.999, 1.0])
@pytest.mark.parametrize(("positives", "negatives"), [(51, 58), (5, 200), (200, 5), (1, 1)])
def test_the_ends_of_an_auc_interval_lie_z_standard_errors_away(area, positives, negatives):
    low, high = auc_interval(area, positives, negatives)
    assert 0 <= low <= area <= high <= 1
    for end in {low, high} - {0.0, 1.0}:
        error = max(
            hanley_mcneil(end, positives, negatives), hanley_mcneil(end, negatives, positives)
        )
        assert abs(area - end) == pytest.approx(ndtri(0.975) * error, rel=1e-6)


def draw(kind: str, area: float, positives: int, negatives: int, runs: int) -> FloatArray:
    """The observed AUC of each run, where ``area`` is the true one."""
    rng = np.random.default_rng(20)
    shape_1, shape_0 = (runs, positives), (runs, negatives)
    odds = area / (1 - area)
    if kind == "normal":
        ones = rng.normal(size=shape_1) + math.sqrt(2) * ndtri(area)
        zeros = rng.normal(size=shape_0)
    elif kind == "scattered ones":
        ones, zeros = odds * rng.exponential(size=shape_1), rng.exponential(size=shape_0)
    else:
        ones, zeros = -rng.exponential(size=shape_1), -odds * rng.exponential(size=shape_0)
    ranks: FloatArray = rankdata(np.hstack([ones, zeros]), axis=1)[:, :positives].sum(axis=1)
    return (ranks - positives * (positives + 1) / 2) / (positives * negatives)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", ["normal", "scattered ones", "scattered zeros"])
@pytest.mark.parametrize("area", [0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize(("positives", "negatives"), [(5, 5), (60, 60), (10, 140), (140, 10)])
def test_auc_interval_covers(positives, negatives, area, kind):
    """False alarm below 1e-4 a case: four standard errors beyond 92 % and 3.5 %, the claims."""
    runs = 2000
    seen, times = np.unique(draw(kind, area, positives, negatives, runs), return_counts=True)
    ends = np.array([auc_interval(float(value), positives, negatives) for value in seen])
    too_high = float(times[ends[:, 0] > area].sum()) / runs
    too_low = float(times[ends[:, 1] < area].sum()) / runs
    assert 1 - too_high - too_low > 0.92 - 4 * math.sqrt(0.92 * 0.08 / runs)
    assert too_high < 0.035 + 4 * math.sqrt(0.035 * 0.965 / runs)


@pytest.mark.parametrize("trials", [1, 10, 57, 455])
def test_wilson_agrees_with_scipy(trials):
    for successes in {0, 1, trials // 3, trials - 1, trials}:
        expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
        assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def _binormal(draws: np.random.Generator, positives: int, negatives: int, apart: float):
    """Scores that are the log-odds of their labels, whatever the base rate: N(+-apart^2/2)."""
    labels = np.repeat([1, 0], [positives, negatives])
    means = np.where(labels, 0.5, -0.5) * apart**2
    odds = np.log(positives / negatives)
    return means + apart * draws.standard_normal(len(labels)) + odds, labels


@pytest.mark.parametrize(("positives", "negatives"), [(60, 60), (50, 950)])
def test_intervals_of_a_models_figures_cover(positives, negatives):
    """Binormal scores, of which every figure is known: 200 draws, each interval near 95 %."""
    draws, apart = np.random.default_rng(17), 1.2
    scores, labels = _binormal(draws, 300 * positives, 300 * negatives, apart)
    truth = evaluate(scores, labels)
    assert truth.ks == pytest.approx(2 * ndtr(apart / 2) - 1, abs=0.01)
    covered = dict.fromkeys(("auc", "pr_auc", "ks", "loss"), 0)
    for _ in range(200):
        figures = evaluate(*_binormal(draws, positives, negatives, apart))
        for name in covered:
            low, high = (getattr(figures, f"{name}_{end}") for end in ("low", "high"))
            assert low <= getattr(figures, name) <= high
            covered[name] += low <= getattr(truth, name) <= high
    # Labels were fixed, which makes all but the AUC's less variable than their intervals allow.
    assert all(count >= 0.92 * 200 for count in covered.values()), covered


def test_the_interval_of_observed_over_expected_covers_a_calibrated_model():
    draws, covered = np.random.default_rng(3), 0
    for _ in range(400):
        chances = draws.beta(1, 15, 1500)
        labels = draws.random(1500) < chances
        figures = evaluate(np.log(chances / (1 - chances)), labels.astype(int))
        covered += figures.calibration_ratio_low <= 1 <= figures.calibration_ratio_high
    assert 0.92 * 400 <= covered <= 400


def test_what_has_no_interval_is_refused_or_no_number():
    assert np.isnan(auc_interval(math.nan, 0, 5)).all()
    for confidence in (0.0, 1.0, -1.0, 95.0, math.nan):
        with refused(ConfigError, names="confidence"):
            auc_interval(0.7, 2, 3, confidence)
    for area, positives, negatives in ((1.1, 2, 2), (-0.1, 2, 2), (0.5, 0, 2)):
        with refused(DataError, names=area):
            auc_interval(area, positives, negatives)
