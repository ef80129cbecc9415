"""The centralised trainer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from taciturn.arrays import FloatArray
from taciturn.errors import ShapeError
from taciturn.numerics import LearningRate, Penalty, log_loss, train_centralised
from taciturn.numerics import cut_batches as batches

ROWS, COLUMNS = 200, 4


@pytest.fixture
def table():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(ROWS, COLUMNS))
    scores = features @ np.array([1.5, -2.0, 0.5, 0.0]) + 0.7
    labels = (rng.random(ROWS) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    return features, labels


def test_reaches_scikit_learns_weights_without_intercept(table):
    features, labels = table
    l2 = 0.05
    weights = train_centralised(
        features, labels, [np.arange(ROWS)] * 800, LearningRate(1.0), Penalty(l2=l2)
    )
    # scikit-learn minimises C sum(loss) + |w|^2/2: the same optimum at C = 1/(n l2).
    oracle = LogisticRegression(C=1 / (ROWS * l2), fit_intercept=False, tol=1e-10)
    expected = oracle.fit(features, labels).coef_[0]
    np.testing.assert_allclose(weights, expected, atol=1e-6)


def test_reaches_scikit_learns_weights_with_a_free_intercept(table):
    features, labels = table
    l2 = 0.05
    widened = np.column_stack([features, np.ones(ROWS)])
    weights = train_centralised(
        widened, labels, [np.arange(ROWS)] * 800, LearningRate(1.0), Penalty(l2=l2), free=1
    )
    oracle = LogisticRegression(C=1 / (ROWS * l2), tol=1e-10).fit(features, labels)
    np.testing.assert_allclose(weights[:-1], oracle.coef_[0], atol=1e-6)
    np.testing.assert_allclose(weights[-1:], oracle.intercept_, atol=1e-6)


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


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float64])
def test_the_type_of_the_labels_does_not_matter(table, dtype):
    features, labels = table
    parts = list(batches(np.arange(ROWS), 32))
    settings = (parts, LearningRate(0.3), Penalty())
    expected = train_centralised(features, labels, *settings)
    np.testing.assert_array_equal(
        train_centralised(features, labels.astype(dtype), *settings), expected
    )


def test_leaves_its_input_alone_and_starts_at_zero(table):
    features, labels = table
    features.flags.writeable = False
    labels.flags.writeable = False
    assert (
        train_centralised(features, labels, [], LearningRate(1.0), Penalty()).tolist()
        == [0.0] * COLUMNS
    )


def test_l1_holds_useless_weights_near_zero(table):
    features, labels = table
    weights = train_centralised(
        features, labels, [np.arange(ROWS)] * 400, LearningRate(0.05), Penalty(l1=0.1)
    )
    assert abs(weights[3]) < 0.01 < abs(weights[1])


def test_refuses_what_does_not_fit(table):
    features, labels = table
    with pytest.raises(ShapeError):
        train_centralised(features, labels[:-1], [], LearningRate(1.0), Penalty())


def test_an_empty_batch_costs_its_penalty_alone(table):
    features, labels = table
    rate, penalty = LearningRate(0.5), Penalty(l2=0.2)
    once = train_centralised(features, labels, [np.arange(ROWS)], rate, penalty)
    more = train_centralised(features, labels, [np.arange(ROWS), np.arange(0)], rate, penalty)
    np.testing.assert_allclose(more, once * (1 - 0.5 * 0.2))
