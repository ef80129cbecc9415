"""Metrics, against scikit-learn and SciPy."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from taciturn.errors import LabelValueError, MissingValueError, ShapeError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.metrics import (
    added_auc,
    auc,
    evaluate,
    log_odds_shift,
)
from taciturn.results.serialise import record_of


@st.composite
def both_classes(draw):
    """Scores with many ties, and labels of both classes."""
    size = draw(st.integers(2, 40))
    score = st.one_of(st.integers(-4, 4).map(float), st.floats(-50, 50))
    scores = draw(st.lists(score, min_size=size, max_size=size))
    labels = [0, 1, *draw(st.lists(st.integers(0, 1), min_size=size - 2, max_size=size - 2))]
    return np.array(scores), np.array(labels)


# The oracles warm up slowly on a busy machine.
@given(both_classes())
def test_figures_agree_with_scikit_learn(rows):
    scores, labels = rows
    guesses, chances = scores > 0, sigmoid(scores)
    figures, same = evaluate(scores, labels), pytest.approx
    assert figures.rows == len(scores)
    assert figures.accuracy == oracle.accuracy_score(labels, guesses)
    assert figures.balanced_accuracy == same(
        oracle.balanced_accuracy_score(labels, guesses), rel=1e-12
    )
    assert figures.auc == auc(scores, labels)
    assert figures.auc == same(oracle.roc_auc_score(labels, scores), rel=1e-12)
    assert figures.pr_auc == same(oracle.average_precision_score(labels, scores), rel=1e-12)
    assert figures.brier == same(oracle.brier_score_loss(labels, chances), rel=1e-12)


@given(both_classes())
def test_auc_is_the_exact_share_of_pairs(rows):
    scores, labels = rows
    ones, zeros = scores[labels == 1], scores[labels == 0]
    pairs = ones[:, None] - zeros[None, :]
    twice = int(2 * np.sum(pairs > 0) + np.sum(pairs == 0))
    assert auc(scores, labels) == float(Fraction(twice, 2 * pairs.size))


@given(both_classes())
def test_ks_is_the_exact_largest_gap(rows):
    scores, labels = rows
    ones, zeros = scores[labels == 1], scores[labels == 0]
    gaps = [
        Fraction(int(np.sum(ones <= cut)), len(ones))
        - Fraction(int(np.sum(zeros <= cut)), len(zeros))
        for cut in scores
    ]
    assert evaluate(scores, labels).ks == float(max(abs(gap) for gap in gaps))


@given(both_classes())
def test_calibration_agrees_with_scikit_learn(rows):
    scores, labels = rows
    figures = evaluate(scores, labels)
    observed, predicted = calibration_curve(labels, sigmoid(scores), n_bins=10)
    np.testing.assert_allclose([group.observed for group in figures.calibration], observed)
    np.testing.assert_allclose([group.predicted for group in figures.calibration], predicted)
    weights = np.array([group.count for group in figures.calibration]) / len(labels)
    assert weights.sum() == pytest.approx(1)
    error = float(np.sum(weights * np.abs(observed - predicted)))
    assert figures.calibration_error == pytest.approx(error)


def test_the_loss_is_scikit_learns():
    rng = np.random.default_rng(4)
    scores = np.round(rng.normal(size=500), 1)
    labels = rng.integers(0, 2, 500).astype(np.uint8)
    assert evaluate(scores, labels).loss == pytest.approx(
        oracle.log_loss(labels, sigmoid(scores)), rel=1e-12
    )


def test_a_record_of_it_is_plain_json():
    scores = np.array([-math.inf, 2.0, 1.0])
    plain = json.loads(json.dumps(record_of(evaluate(scores, np.ones(3))), allow_nan=False))
    assert plain["auc"] is None
    assert plain["loss"] == "inf"
    assert plain["pr_auc"] == 1.0
    assert [row["count"] for row in plain["calibration"]] == [1, 1, 1]


@pytest.mark.parametrize("label", [0, 1])
def test_one_class_leaves_comparisons_undefined(label):
    figures = evaluate(np.array([1.0, -1.0]), np.array([label, label]))
    assert figures.accuracy == 0.5
    for value in (figures.auc, figures.ks, figures.balanced_accuracy):
        assert math.isnan(value)
    assert math.isnan(figures.pr_auc) == (label == 0)


def test_auc_counts_millions_of_pairs_without_rounding():
    size = 200_000
    labels = np.tile([0, 1], size // 2)
    half = size // 2
    # Ranks 0, 1, 2, ...: each one beats every zero of a lower rank.
    assert auc(np.arange(size, dtype=np.float64), labels) == (half + 1) / (2 * half)


@pytest.mark.parametrize("figure", [auc, evaluate])
@pytest.mark.parametrize(
    ("scores", "labels", "error"),
    [
        ([0.5, math.nan], [0, 1], MissingValueError),
        ([0.5, 0.1], [0, 2], LabelValueError),
        ([0.5, 0.1], [-1, 1], LabelValueError),
        ([0.5, 0.1], [0.0, math.nan], LabelValueError),
        ([0.5, 0.1], [0], ShapeError),
        ([[0.5], [0.1]], [[0], [1]], ShapeError),
        ([], [], ShapeError),
    ],
)
def test_refuses_unfit_rows(figure, scores, labels, error):
    with pytest.raises(error):
        figure(np.array(scores), np.array(labels))


def _covariances(models: Any, labels: Any) -> Any:
    """DeLong's covariance matrix of several AUCs, from all pairs of a one and a zero."""
    kernels = []
    for scores in models:
        gaps = scores[labels == 1][:, None] - scores[labels == 0][None, :]
        kernels.append(np.where(gaps > 0, 1.0, np.where(gaps == 0, 0.5, 0.0)))
    ones, zeros = kernels[0].shape
    across = np.cov([kernel.mean(axis=1) for kernel in kernels]) / ones
    return across + np.cov([kernel.mean(axis=0) for kernel in kernels]) / zeros


def test_what_is_added_has_delongs_interval():
    draws = np.random.default_rng(5)
    labels = (draws.random(300) < 0.2).astype(int)
    shared = draws.standard_normal(300) + labels
    better = np.round(shared + 0.5 * labels + 0.5 * draws.standard_normal(300), 1)
    worse = np.round(shared + 0.5 * draws.standard_normal(300), 1)
    added = added_auc(better, worse, labels)
    matrix = _covariances((better, worse), labels)
    error = math.sqrt(matrix[0, 0] + matrix[1, 1] - 2 * matrix[0, 1])
    areas = [oracle.roc_auc_score(labels, scores) for scores in (better, worse)]
    assert added.auc == pytest.approx(areas[0] - areas[1], abs=1e-12)
    reach = 1.959963984540054 * error
    assert (added.low, added.high) == pytest.approx((added.auc - reach, added.auc + reach))
    mirrored = added_auc(worse, better, labels)
    assert (mirrored.low, mirrored.high) == pytest.approx((-added.high, -added.low))


def test_the_interval_of_what_is_added_covers():
    """Two models that share most of their errors; 95 % means 95 %, to within three deviations."""
    draws, covered = np.random.default_rng(11), 0

    def rows(count: int) -> Any:
        labels = (draws.random(count) < 0.25).astype(int)
        shared = draws.standard_normal(count) + labels
        return labels, shared + 0.4 * labels, shared + 0.7 * draws.standard_normal(count)

    labels, better, worse = rows(400_000)
    first, second = auc(better, labels), auc(worse, labels)
    for _ in range(400):
        labels, better, worse = rows(250)
        added = added_auc(better, worse, labels)
        covered += added.low <= first - second <= added.high
    assert 0.917 * 400 <= covered <= 0.983 * 400


def test_a_perfect_model_adds_no_exact_amount():
    labels = np.array([0] * 10 + [1] * 10)
    added = added_auc(labels.astype(float), labels.astype(float), labels)
    assert added.auc == 0
    assert added.low < -0.1
    assert added.high > 0.1
    assert math.isnan(added_auc(np.zeros(3), np.zeros(3), np.ones(3, dtype=int)).auc)


def test_probabilities_of_a_weighted_model_are_those_of_an_unweighted_one():
    """The optimum of a weighted loss on a rare class, against the plain fit's probabilities."""
    draws = np.random.default_rng(2)
    columns = draws.standard_normal((40_000, 3))
    odds = columns @ np.array([0.8, -0.5, 0.3]) - 3.3
    labels = (draws.random(40_000) < sigmoid(odds)).astype(int)
    weights = (0.05, 1.0)
    fitted = LogisticRegression(C=1e6, class_weight=dict(enumerate(weights))).fit(columns, labels)
    scores = fitted.decision_function(columns)
    shift = log_odds_shift(weights)
    naive, corrected = evaluate(scores, labels), evaluate(scores, labels, shift)
    assert naive.calibration_ratio < 0.25
    assert corrected.calibration_ratio == pytest.approx(1, abs=0.05)
    plain = LogisticRegression(C=1e6).fit(columns, labels).predict_proba(columns)[:, 1]
    assert corrected.loss == pytest.approx(oracle.log_loss(labels, plain), rel=0.01)
    # What only ranks rows, or takes the weighted side of zero, is as it was.
    assert (corrected.auc, corrected.accuracy) == (naive.auc, naive.accuracy)
