"""The centralised trainer."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.arrays import FloatArray
from taciturn.errors import ShapeError
from taciturn.numerics.logistic import Penalty, log_loss
from taciturn.numerics.sgd import LearningRate, batches, train_centralised
from tests.expected import refused

ROWS, COLUMNS = 200, 4


@pytest.fixture
def table():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(ROWS, COLUMNS))
    scores = features @ np.array([1.5, -2.0, 0.5, 0.0]) + 0.7
    labels = (rng.random(ROWS) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    return features, labels


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float64])
def test_reaches_scikit_learns_weights_whatever_the_type_of_labels(table, intercept, dtype):

    from sklearn.linear_model import LogisticRegression

    features, labels = table
    l2 = 0.05
    columns = np.column_stack([features, np.ones(ROWS)]) if intercept else features
    weights = train_centralised(
        columns,
        labels.astype(dtype),
        [np.arange(ROWS)] * 800,
        LearningRate(1.0),
        Penalty(l2=l2),
        free=int(intercept),
    )
    # scikit-learn minimises C sum(loss) + |w|^2/2: the same optimum at C = 1/(n l2).
    oracle = LogisticRegression(C=1 / (ROWS * l2), fit_intercept=intercept, tol=1e-10)
    oracle.fit(features, labels)
    expected = [*oracle.coef_[0], *oracle.intercept_][: columns.shape[1]]
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    with refused(ShapeError):
        train_centralised(columns, labels[:-1], [], LearningRate(1.0), Penalty())


def test_mini_batches_with_a_shrinking_rate_come_near_the_optimum(table):
    features, labels = table
    rng = np.random.default_rng(6)
    penalty = Penalty(l2=0.05)
    epochs = (part for _ in range(60) for part in batches(rng.permutation(ROWS), 16))
    weights = train_centralised(
        features, labels, epochs, LearningRate(0.5, "inverse", decay=0.05), penalty
    )
    full = [np.arange(ROWS)] * 800
    best = train_centralised(features, labels, full, LearningRate(1.0), penalty)

    def objective(w: FloatArray) -> float:
        return log_loss(features @ w, labels) + penalty.value(w)

    assert objective(weights) <= objective(best) + 1e-3


def test_two_steps_by_hand():
    features = np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, 3.0]])
    labels = np.array([1, 0, 1])
    rate, penalty = LearningRate(0.5, "inverse", decay=1.0), Penalty(l1=0.01, l2=0.1)
    weights = train_centralised(
        features, labels, [np.array([2, 0]), np.array([1])], rate, penalty, free=1
    )
    # Step 1: gradient -(1/2)(0.5 (0, 3) + 0.5 (1, 2)) = (-0.25, -1.25), no penalty at 0.
    first = 0.5 * np.array([0.25, 1.25])
    # Step 2: the row (-1, 0) with label 0, at half the rate; the last weight is free.
    chance = 1 / (1 + np.exp(first[0]))
    slope = np.array([-chance + 0.1 * first[0] + 0.01, 0.0])
    np.testing.assert_allclose(weights, first - 0.25 * slope, rtol=1e-14)


def test_an_empty_batch_costs_its_penalty_alone(table):
    features, labels = table
    rate, penalty = LearningRate(0.5), Penalty(l2=0.2)
    once = train_centralised(features, labels, [np.arange(ROWS)], rate, penalty)
    more = train_centralised(features, labels, [np.arange(ROWS), np.arange(0)], rate, penalty)
    np.testing.assert_allclose(more, once * (1 - 0.5 * 0.2))
