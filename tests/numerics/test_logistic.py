"""The sigmoid, the loss, the gradient and the penalty."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError, ShapeError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.logistic import Penalty, gradient, log_loss, residue
from tests.expected import refused

SCORES = arrays(np.float64, st.integers(1, 30), elements=st.floats(-1000, 1000))


@given(SCORES)
def test_sigmoid_never_falls_and_stays_a_probability(scores):
    values = sigmoid(np.sort(scores))
    # The exponential is faithful, not monotone to the last bit: allow one unit there.
    assert np.all(np.diff(values) >= -np.spacing(values[1:]))
    assert np.all((values >= 0) & (values <= 1))


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.0, 0.5), (1000.0, 1.0), (-1000.0, 0.0), (math.inf, 1.0), (-math.inf, 0.0)],
)
def test_sigmoid_at_the_edges(score, expected):
    assert sigmoid(np.array([score]))[0] == expected


def test_sigmoid_keeps_small_probabilities():
    np.testing.assert_allclose(sigmoid(np.array([-700.0])), [math.exp(-700)], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float64])
def test_log_loss_matches_scikit_learn_for_every_label_type(dtype):
    from sklearn.metrics import log_loss as sklearn_log_loss

    rng = np.random.default_rng(1)
    scores, labels = rng.normal(size=200) * 3, (rng.random(200) < 0.3).astype(dtype)
    expected = sklearn_log_loss(labels.astype(int), sigmoid(scores))
    assert log_loss(scores, labels) == pytest.approx(expected, rel=1e-12)


def test_log_loss_is_finite_far_out_and_precise_when_sure():
    assert log_loss(np.array([-1000.0]), np.array([1])) == 1000.0
    # y z - log(1 + exp(z)) would give 0 here.
    assert log_loss(np.array([50.0]), np.array([1])) == pytest.approx(math.exp(-50), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float64])
def test_residue_sign_is_the_label(dtype):
    labels = np.array([1, 0, 1, 0], dtype=dtype)
    values = residue(np.array([0.0, 0.0, 3.0, -3.0]), labels)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values > 0, labels == 1)
    assert values[:2].tolist() == [0.5, -0.5]


@pytest.mark.parametrize("free", [0, 1, 2])
def test_gradient_of_loss_and_penalty_matches_finite_differences(free):
    rng = np.random.default_rng(2)
    features, labels = rng.normal(size=(40, 5)), rng.integers(0, 2, 40)
    # Away from 0, where |w| has no derivative.
    weights = rng.choice([-1.0, 1.0], 5) * rng.uniform(0.2, 1.0, 5)
    penalty = Penalty(l1=0.3, l2=0.7)

    def objective(w: FloatArray) -> float:
        return log_loss(features @ w, labels) + penalty.value(w, free)

    step = 1e-6
    numeric = [
        (objective(weights + step * axis) - objective(weights - step * axis)) / (2 * step)
        for axis in np.eye(5)
    ]
    slope = gradient(features, residue(features @ weights, labels))
    slope += penalty.gradient(weights, free)
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-8)


def test_penalty_takes_the_zero_subgradient_at_zero_and_spares_the_free():
    weights = np.array([0.0, 2.0, -3.0])
    assert Penalty(l1=1.0, l2=0.5).gradient(weights).tolist() == [0.0, 2.0, -2.5]
    assert Penalty(l1=1.0, l2=0.5).gradient(weights, free=3).tolist() == [0.0, 0.0, 0.0]
    assert Penalty(l1=1.0, l2=0.5).value(weights, free=3) == 0.0
    assert Penalty().gradient(weights).tolist() == [0.0, 0.0, 0.0]
    assert weights.tolist() == [0.0, 2.0, -3.0]


def test_factors_and_shapes_that_do_not_fit_are_refused():
    for name in ("l1", "l2"):
        for factor in (-0.1, math.nan, math.inf):
            with refused(ConfigError, names=name):
                Penalty(**{name: factor})
    for call in (
        lambda: Penalty().gradient(np.ones(3), -1),
        lambda: Penalty().gradient(np.ones(3), 4),
        lambda: Penalty().value(np.ones(3), 4),
        # Shapes that would broadcast.
        lambda: log_loss(np.ones((3, 1)), np.ones(3)),
        lambda: residue(np.ones(3), np.ones(1)),
        lambda: gradient(np.ones((3, 2)), np.ones(2)),
        lambda: gradient(np.ones((0, 2)), np.ones(0)),
    ):
        with refused(ShapeError):
            call()
