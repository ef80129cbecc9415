"""Tests of calibration, against statsmodels, a textbook formula, and what chance gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn_risk.scorecard.calibration_tests import (
    calibration_groups,
    calibration_line,
    hosmer_lemeshow,
    spiegelhalter,
)


def drawn(rows: int, seed: int = 1, slope: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    entropy = np.random.default_rng(seed)
    scores = entropy.normal(-1, 1.5, rows)
    return scores, (entropy.uniform(size=rows) < sigmoid(slope * scores + slope - 1)).astype(int)


def test_the_line_is_that_of_statsmodels():
    import statsmodels.api as sm

    scores, labels = drawn(800, slope=0.7)
    line = calibration_line(scores, labels)
    fitted = sm.Logit(labels, sm.add_constant(scores)).fit(disp=0, tol=1e-12)
    assert (line.intercept, line.slope) == pytest.approx(fitted.params.tolist(), rel=1e-8)
    errors = (line.intercept_error, line.slope_error)
    assert errors == pytest.approx(fitted.bse.tolist(), rel=1e-6)
    large = sm.GLM(labels, np.ones(800), family=sm.families.Binomial(), offset=scores).fit()
    assert line.in_the_large == pytest.approx(large.params[0], rel=1e-6)
    assert line.in_the_large_error == pytest.approx(large.bse[0], rel=1e-6)


def test_separated_classes_have_no_line():
    line = calibration_line(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1]))
    assert math.isnan(line.slope)
    assert math.isnan(calibration_line(np.zeros(3), np.ones(3)).in_the_large)
    # A constant score has a level, and no slope.
    flat = calibration_line(np.ones(4), np.array([0, 1, 1, 0]))
    assert flat.in_the_large == pytest.approx(-1.0)
    assert math.isnan(flat.slope)


@given(
    st.lists(st.tuples(st.integers(-8, 8).map(float), st.integers(0, 1)), min_size=1, max_size=80),
    st.integers(1, 12),
)
def test_groups_hold_every_row_once_and_keep_equal_scores_together(pairs, count):
    scores, labels = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    groups = calibration_groups(scores, labels, count)
    assert 1 <= len(groups) <= count
    assert sum(one.rows for one in groups) == len(scores)
    assert sum(one.ones for one in groups) == labels.sum()
    assert sum(one.rows * one.predicted for one in groups) == pytest.approx(sigmoid(scores).sum())
    bounds = np.cumsum([0, *(one.rows for one in groups)])
    ordered = np.sort(scores)
    assert all(ordered[at - 1] < ordered[at] for at in bounds[1:-1])


def test_the_statistic_is_that_of_its_formula():
    scores, labels = drawn(500)
    groups = calibration_groups(scores, labels)
    order, probabilities = np.argsort(scores), sigmoid(scores)
    expected = 0.0
    for part in np.array_split(order, 10):
        ones, sums = labels[part].sum(), probabilities[part].sum()
        expected += (ones - sums) ** 2 / (sums * (1 - sums / len(part)))
    result = hosmer_lemeshow(groups, fitted=False)
    assert result.statistic == pytest.approx(expected)
    assert result.degrees == 10
    assert hosmer_lemeshow(groups, fitted=True).degrees == 8


def test_true_probabilities_are_refused_as_often_as_chance_says():
    """Of 400 sets about 20 are below 0.05; both tests, on rows that no model was fitted to."""
    low = {"groups": 0, "none": 0}
    for seed in range(400):
        scores, labels = drawn(400, seed)
        low["groups"] += (
            hosmer_lemeshow(calibration_groups(scores, labels), fitted=False).p_value < 0.05
        )
        low["none"] += spiegelhalter(scores, labels).p_value < 0.05
    assert 8 <= low["groups"] <= 36
    assert 8 <= low["none"] <= 36


def test_wrong_probabilities_are_refused():
    scores, labels = drawn(4000, slope=0.6)
    assert hosmer_lemeshow(calibration_groups(scores, labels), fitted=False).p_value < 1e-6
    assert spiegelhalter(scores, labels).p_value < 1e-6


def test_what_cannot_be_tested_is_no_number():
    assert math.isnan(spiegelhalter(np.zeros(4), np.array([0, 1, 0, 1])).z)
    groups = calibration_groups(np.zeros(4), np.array([0, 1, 0, 1]))
    assert math.isnan(hosmer_lemeshow(groups, fitted=True).statistic)
    sure = calibration_groups(np.array([-800.0, -800.0, 1.0]), np.array([0, 1, 1]))
    assert hosmer_lemeshow(sure, fitted=False).p_value == 0.0
    with pytest.raises(ConfigError):
        calibration_groups(np.zeros(2), np.zeros(2), 0)
