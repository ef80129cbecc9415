"""The exact interval of a share, against SciPy and against what it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from taciturn.errors import ConfigError, DataError
from taciturn_audit.exact_intervals import clopper_pearson
from tests.expected import refused


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


def test_what_has_no_interval_is_refused():
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    for confidence in (0.0, 1.0, -1.0, 95.0, math.nan):
        with refused(ConfigError, names="confidence"):
            clopper_pearson(1, 2, confidence)
    for successes, trials in ((-1, 2), (3, 2), (0, -1)):
        with refused(DataError, names=(successes, trials)):
            clopper_pearson(successes, trials)
