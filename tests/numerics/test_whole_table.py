"""Whole-table training in clear reaches scikit-learn's optimum, whatever the columns are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from taciturn.arrays import EVERY_ROW, FloatArray, LabelArray
from taciturn.families.base import RowLikelihood
from taciturn.numerics.label_noise import corrected_likelihood
from taciturn.numerics.likelihood import (
    Likelihood,
    clip_scores,
    label_likelihood,
    weighted_likelihood,
)
from taciturn.numerics.logistic import log_loss
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.whole_table import Fit, fit_in_clear

PASSES = 12


def plain(labels: LabelArray) -> Likelihood:
    return label_likelihood(labels, partial(weighted_likelihood, class_weight=None))


def breast_cancer() -> tuple[FloatArray, LabelArray]:
    values, labels = load_breast_cancer(return_X_y=True)
    return (values - values.mean(axis=0)) / values.std(axis=0), labels


def generated(rows: int, columns: int, seed: int = 0) -> tuple[FloatArray, LabelArray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, columns))
    labels = values[:, 0] - values[:, -1] + rng.logistic(size=rows) > 0.3
    return values, labels.astype(np.int8)


def gap(fit: Fit, joined: FloatArray, likelihood: Likelihood, l2: float, free: int) -> float:
    weights = np.concatenate([fit.alice, fit.own])
    np.testing.assert_allclose(fit.scores, clip_scores(joined @ weights), rtol=1e-5, atol=1e-5)
    loss = penalised_loss(joined @ weights, likelihood, weights, l2, free)
    return loss - optimum(joined, likelihood, l2, free).loss


@pytest.mark.parametrize("intercept", [True, False])
def test_the_optimum_is_that_of_scikit_learn(intercept):
    values, labels = breast_cancer()
    rows = len(values)
    fitted = LogisticRegression(C=1, fit_intercept=intercept, tol=1e-10, max_iter=10_000)
    fitted.fit(values, labels)
    expected = np.append(fitted.coef_[0], fitted.intercept_) if intercept else fitted.coef_[0]
    joined = np.column_stack([values, np.ones(rows)]) if intercept else values
    best = optimum(joined, plain(labels), 1 / rows, int(intercept))
    np.testing.assert_allclose(best.weights, expected, atol=1e-5)
    loss = log_loss(joined @ expected, labels) + fitted.coef_[0] @ fitted.coef_[0] / (2 * rows)
    assert best.loss == pytest.approx(loss, abs=1e-12)
    assert best.loss <= loss


@pytest.mark.parametrize("columns", [30, 15, 7])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_search_comes_close_to_it_in_a_few_passes(columns, intercept):
    values, labels = breast_cancer()
    joined = np.column_stack([values, np.ones(len(values))]) if intercept else values
    likelihood, l2, free = plain(labels), 1 / len(values), int(intercept)
    own = joined[:, columns:]
    fit = fit_in_clear(joined[:, :columns], own, likelihood, l2, free, PASSES)
    assert gap(fit, joined, likelihood, l2, free) < 5e-4


def test_as_many_passes_as_columns_are_exact():
    values, labels = generated(400, 5)
    likelihood, l2 = plain(labels), 1 / 400
    fit = fit_in_clear(values[:, :3], values[:, 3:], likelihood, l2, 0, passes=3)
    assert gap(fit, values, likelihood, l2, 0) == pytest.approx(0, abs=1e-9)


VALUES, LABELS = generated(200, 6)
ODD = {
    "repeated": (np.hstack([VALUES, VALUES]), LABELS, None),
    "constant": (np.column_stack([VALUES, np.zeros(200), np.ones(200)]), LABELS, None),
    "a large column": (VALUES * [1e9, 1, 1, 1, 1, 1], LABELS, None),
    "fewer rows than columns": (*generated(20, 40), None),
    "one row": (VALUES[:1], LABELS[:1], None),
    "separable": (VALUES, (VALUES[:, 1] > 0).astype(np.int8), None),
    "separable, hardly penalised": (VALUES, (VALUES[:, 1] > 0).astype(np.int8), 1e-9),
    "one class": (VALUES, np.ones(200, dtype=np.int8), None),
    "a large penalty": (VALUES, LABELS, 1e6),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_tables_are_trained_like_others(case):
    values, labels, l2 = ODD[case]
    rows = len(values)
    own = np.ones((rows, 1))
    factor = 1 / rows if l2 is None else l2
    fit = fit_in_clear(values, own, plain(labels), factor, 1, PASSES)
    assert abs(gap(fit, np.hstack([values, own]), plain(labels), factor, 1)) < 1e-5


@pytest.mark.parametrize("side", [1, 4])
def test_a_mean_far_from_zero_costs_nothing_at_either_side(side):
    """Each side centres its columns where there is an intercept; years are such a column."""
    values, labels = generated(400, 6)
    far = values + 1e6 * (np.arange(6) == side)
    likelihood, own = plain(labels), np.ones((400, 1))
    best = optimum(np.hstack([values, own]), likelihood, 1 / 400, 1)
    assert optimum(np.hstack([far, own]), likelihood, 1 / 400, 1).loss == pytest.approx(
        best.loss, abs=1e-9
    )
    fit = fit_in_clear(far[:, :3], np.hstack([far[:, 3:], own]), likelihood, 1 / 400, 1, PASSES)
    weights = np.concatenate([fit.alice, fit.own])
    scores = np.hstack([far, own]) @ weights
    assert penalised_loss(scores, likelihood, weights, 1 / 400, 1) - best.loss < 1e-6


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_flipped_labels_end_at_a_minimum_that_knows_the_true_ones(epsilon):
    values, labels = generated(3000, 4)
    flips = np.random.default_rng(5).random(3000) < 1 / (1 + np.exp(epsilon))
    likelihood = label_likelihood(labels ^ flips, partial(corrected_likelihood, epsilon=epsilon))
    fit = fit_in_clear(values[:, :3], values[:, 3:], likelihood, 1 / 3000, 0, PASSES)
    assert abs(gap(fit, values, likelihood, 1 / 3000, 0)) < 1e-6
    # Better than any constant, measured with labels that it has not seen.
    assert log_loss(fit.scores, labels) < 0.6


def test_class_weights_enter_the_optimum_as_in_scikit_learn():
    likelihood = label_likelihood(LABELS, partial(weighted_likelihood, class_weight=(1.0, 0.25)))
    fitted = LogisticRegression(
        C=1, fit_intercept=False, class_weight={0: 1.0, 1: 0.25}, tol=1e-10, max_iter=10_000
    ).fit(VALUES, LABELS)
    best = optimum(VALUES, likelihood, 1 / 200, 0)
    np.testing.assert_allclose(best.weights, fitted.coef_[0], atol=1e-5)


def test_a_penalised_loss_adds_the_price_of_the_weights_that_are_not_free():
    def zero(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        return RowLikelihood(0 * scores, 0 * scores, 0 * scores)

    weights = np.array([1.0, 2.0, 30.0])
    assert penalised_loss(np.zeros(4), zero, weights, 0.2, free=1) == pytest.approx(0.5)
