"""Whitening: its identities, and columns that it cannot take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError, ShapeError
from taciturn.numerics import MOST_COLUMNS, Whitening
from tests.expected import refused

TABLES = st.tuples(
    st.integers(1, 12), st.integers(0, 6), st.integers(0, 10_000), st.floats(1e-6, 1e3)
)


def table(rows: int, columns: int, seed: int):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)) * 10.0 ** rng.integers(-2, 3, columns)


@given(TABLES)
def test_the_penalty_follows_from_whitened_columns_alone(drawn):
    rows, columns, seed, l2 = drawn
    values = table(rows, columns, seed)
    whitening = Whitening.of(values, l2)
    whitened = whitening.apply(values)
    assert np.array_equal(whitening.factor, np.tril(whitening.factor))
    inverse = np.linalg.inv(whitening.factor)
    left = l2 * inverse @ inverse.T
    right = np.eye(columns) - whitened.T @ whitened / (4 * rows)
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-7)
    # So loss and penalty together have a curvature of at most one.
    assert np.linalg.eigvalsh(left).max(initial=0.0) <= 1 + 1e-9


@given(TABLES)
def test_weights_change_coordinates_and_back_and_scores_stay(drawn):
    rows, columns, seed, l2 = drawn
    values = table(rows, columns, seed)
    whitening = Whitening.of(values, l2)
    weights = np.random.default_rng(seed + 1).normal(size=columns)
    whitened = whitening.whitened(weights)
    np.testing.assert_allclose(whitening.weights(whitened), weights, rtol=1e-6, atol=1e-9)
    scores = values @ weights
    np.testing.assert_allclose(
        whitening.apply(values) @ whitened, scores, rtol=0, atol=1e-7 * (1 + np.abs(scores).max())
    )


@pytest.mark.parametrize("l2", [0.0, -1.0, float("nan"), float("inf")])
def test_a_penalty_is_needed(l2):
    with refused(ConfigError, setting="l2"):
        Whitening.of(np.ones((3, 2)), l2)


def test_columns_may_repeat_each_other_be_empty_or_of_any_scale():
    values = table(50, 3, seed=2)
    values = np.hstack([values, values, np.zeros((50, 1)), 1e9 * table(50, 1, seed=3)])
    whitened = Whitening.of(values, 1 / 50).apply(values)
    assert np.isfinite(whitened).all()
    assert not whitened[:, 6].any()


def test_tables_that_cannot_be_whitened_are_refused():
    large = 1e9 * table(50, 2, seed=4)
    # The penalty cannot tell columns apart; a product beyond the range of a float; too many of
    # them, before memory is taken; and no rows.
    with refused(ConfigError):
        Whitening.of(np.hstack([large, large]), 1 / 50)
    with refused(ConfigError):
        Whitening.of(np.full((3, 1), 1e200), 0.1)
    with refused(ConfigError, names=(f"{MOST_COLUMNS:,}", "solver")):
        Whitening.of(np.zeros((1, MOST_COLUMNS + 1)), 0.1)
    with refused(ShapeError):
        Whitening.of(np.zeros((0, 2)), 0.1)
