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
from scipy.stats import ks_2samp
from sklearn import metrics as oracle
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from taciturn.errors import ConfigError, DataError, LabelValueError, MissingValueError, ShapeError
from taciturn.numerics import (
    accuracy,
    added_auc,
    auc,
    balanced_accuracy,
    brier,
    calibration,
    evaluate,
    ks,
    log_odds_shift,
    pr_auc,
    sigmoid,
)
from taciturn.results import record_of


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
    assert accuracy(scores, labels) == oracle.accuracy_score(labels, guesses)
    same = pytest.approx
    assert balanced_accuracy(scores, labels) == same(
        oracle.balanced_accuracy_score(labels, guesses), rel=1e-12
    )
    assert auc(scores, labels) == same(oracle.roc_auc_score(labels, scores), rel=1e-12)
    assert pr_auc(scores, labels) == same(oracle.average_precision_score(labels, scores), rel=1e-12)
    assert brier(chances, labels) == same(oracle.brier_score_loss(labels, chances), rel=1e-12)


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
    assert ks(scores, labels) == float(max(abs(gap) for gap in gaps))


@pytest.mark.parametrize("decimals", [0, 1, 8])
@pytest.mark.parametrize("shift", [0.0, 0.4, -1.5])
def test_ks_agrees_with_scipy(decimals, shift):
    # Not a property: on tiny samples SciPy warns about its p-value, which is not used here.
    rng = np.random.default_rng(7)
    labels = rng.random(400) < 0.3
    scores = np.round(rng.normal(size=400) + shift * labels, decimals)
    expected = ks_2samp(scores[labels], scores[~labels], method="asymp").statistic
    assert ks(scores, labels) == pytest.approx(expected, rel=1e-12)


@given(both_classes(), st.randoms(use_true_random=False))
def test_rank_figures_ignore_row_order_and_increasing_maps(rows, shuffler):
    scores, labels = rows
    order = list(range(len(scores)))
    shuffler.shuffle(order)
    # Ranks of the distinct scores: an increasing map with no rounding.
    ranks = np.unique(scores, return_inverse=True)[1].astype(np.float64)
    for figure in (auc, pr_auc, ks):
        assert figure(scores[order], labels[order]) == figure(scores, labels)
        assert figure(ranks * 2 - 5, labels) == figure(scores, labels)


@given(both_classes())
def test_turning_the_scores_or_the_labels_mirrors(rows):
    scores, labels = rows
    assert auc(-scores, labels) == pytest.approx(1 - auc(scores, labels), abs=1e-15)
    assert auc(-scores, 1 - labels) == auc(scores, labels)
    assert ks(-scores, labels) == ks(scores, labels)


@given(both_classes(), st.integers(1, 12))
def test_calibration_agrees_with_scikit_learn(rows, bins):
    scores, labels = rows
    chances = sigmoid(scores)
    table = calibration(chances, labels, bins)
    observed, predicted = calibration_curve(labels, chances, n_bins=bins)
    np.testing.assert_allclose([group.observed for group in table.bins], observed)
    np.testing.assert_allclose([group.predicted for group in table.bins], predicted)
    weights = np.array([group.count for group in table.bins]) / len(labels)
    assert weights.sum() == pytest.approx(1)
    assert table.error == pytest.approx(float(np.sum(weights * np.abs(observed - predicted))))


def test_evaluate_is_the_single_figures():
    rng = np.random.default_rng(4)
    scores = np.round(rng.normal(size=500), 1)
    labels = rng.integers(0, 2, 500).astype(np.uint8)
    figures, chances = evaluate(scores, labels), sigmoid(scores)
    assert figures.rows == 500
    assert figures.accuracy == accuracy(scores, labels)
    assert figures.balanced_accuracy == balanced_accuracy(scores, labels)
    assert figures.auc == auc(scores, labels)
    assert figures.pr_auc == pr_auc(scores, labels)
    assert figures.ks == ks(scores, labels)
    assert figures.brier == brier(chances, labels)
    assert figures.loss == pytest.approx(oracle.log_loss(labels, chances), rel=1e-12)
    table = calibration(chances, labels)
    assert (figures.calibration_error, figures.calibration) == (table.error, table.bins)


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


def test_known_answers():
    scores, labels = np.array([3.0, 1.0, 1.0, -2.0]), np.array([1, 1, 0, 0])
    assert auc(scores, labels) == 0.875
    assert ks(scores, labels) == 0.5
    assert pr_auc(scores, labels) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert auc(np.zeros(4), labels) == 0.5
    assert ks(np.zeros(4), labels) == 0.0
    assert accuracy(np.zeros(4), labels) == 0.5
    assert auc(np.array([math.inf, math.inf, -math.inf, 0.0]), labels) == 1.0


def test_auc_counts_millions_of_pairs_without_rounding():
    size = 200_000
    labels = np.tile([0, 1], size // 2)
    half = size // 2
    # Ranks 0, 1, 2, ...: each one beats every zero of a lower rank.
    assert auc(np.arange(size, dtype=np.float64), labels) == (half + 1) / (2 * half)


@pytest.mark.parametrize("figure", [accuracy, balanced_accuracy, auc, pr_auc, ks, evaluate])
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


@pytest.mark.parametrize("value", [-0.1, 1.1])
def test_refuses_what_is_no_probability(value):
    with pytest.raises(DataError, match=r"outside \[0, 1\]"):
        brier(np.array([value, 0.5]), np.array([0, 1]))
    with pytest.raises(DataError, match=r"outside \[0, 1\]"):
        calibration(np.array([value, 0.5]), np.array([0, 1]))


def test_refuses_no_bins():
    with pytest.raises(ConfigError, match="bins"):
        calibration(np.array([0.5]), np.array([1]), bins=0)


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
