"""Clopper-Pearson intervals, against SciPy and against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from tacit.errors import ConfigError, DataError
from tacit.numerics.intervals import clopper_pearson


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 10, 57, 455])
def test_agrees_with_scipy(trials, confidence):
    for successes in {0, 1, trials // 3, trials - 1, trials}:
        expected = binomtest(successes, trials).proportion_ci(confidence, method="exact")
        interval = clopper_pearson(successes, trials, confidence)
        assert interval == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("trials", [1, 5, 20, 100])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.3, 0.5, 0.87, 0.999])
def test_covers_at_least_as_often_as_it_says(trials, share, confidence):
    """All outcomes enumerated: the coverage is exact, there is no false alarm."""
    counts = np.arange(trials + 1)
    inside = [
        low <= share <= high
        for low, high in (clopper_pearson(int(k), trials, confidence) for k in counts)
    ]
    assert np.sum(binom.pmf(counts, trials, share)[inside]) >= confidence


def test_edges():
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    low, high = clopper_pearson(0, 10)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025**0.1)
    low, high = clopper_pearson(10, 10)
    assert low == pytest.approx(0.025**0.1)
    assert high == 1.0


def test_mirrors_and_grows_with_confidence():
    low, high = clopper_pearson(3, 17)
    assert clopper_pearson(14, 17) == pytest.approx((1 - high, 1 - low), rel=1e-12)
    wider_low, wider_high = clopper_pearson(3, 17, 0.99)
    assert wider_low < low < 3 / 17 < high < wider_high


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0, math.nan])
def test_refuses_bad_confidence(confidence):
    with pytest.raises(ConfigError, match="confidence"):
        clopper_pearson(1, 2, confidence)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 2), (3, 2), (0, -1)])
def test_refuses_impossible_counts(successes, trials):
    with pytest.raises(DataError, match="successes"):
        clopper_pearson(successes, trials)
