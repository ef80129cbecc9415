"""Whitening: its identities, and columns that it cannot take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import ConfigError, ShapeError
from taciturn.numerics.whitening import MOST_COLUMNS, Whitening, training_means
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
    whitening = Whitening.fit(values, l2)
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
    whitening = Whitening.fit(values, l2)
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
        Whitening.fit(np.ones((3, 2)), l2)


def test_columns_may_repeat_each_other_be_empty_or_of_any_scale():
    values = table(50, 3, seed=2)
    values = np.hstack([values, values, np.zeros((50, 1)), 1e9 * table(50, 1, seed=3)])
    whitened = Whitening.fit(values, 1 / 50).apply(values)
    assert np.isfinite(whitened).all()
    assert not whitened[:, 6].any()


def test_tables_that_cannot_be_whitened_are_refused():
    large = 1e9 * table(50, 2, seed=4)
    # The penalty cannot tell columns apart; a product beyond the range of a float; too many of
    # them, before memory is taken; and no rows.
    with refused(ConfigError):
        Whitening.fit(np.hstack([large, large]), 1 / 50)
    with refused(ConfigError):
        Whitening.fit(np.full((3, 1), 1e200), 0.1)
    with refused(ConfigError, names=(f"{MOST_COLUMNS:,}", "solver")):
        Whitening.fit(np.zeros((1, MOST_COLUMNS + 1)), 0.1)
    with refused(ShapeError):
        Whitening.fit(np.zeros((0, 2)), 0.1)


@given(
    rows=st.integers(2, 30),
    alice=st.integers(1, 5),
    bob=st.integers(0, 4),
    intercept=st.booleans(),
    repeated=st.sampled_from([0.0, 1e-6, 0.1]),
    heaviest=st.floats(0.05, 1.0),
    l2=st.floats(1e-4, 10.0),
    seed=st.integers(0, 10_000),
)
def test_beside_each_other_two_tables_curve_by_at_most_one(
    rows, alice, bob, intercept, repeated, heaviest, l2, seed
):
    rng = np.random.default_rng(seed)
    hers, his = table(rows, alice, seed), table(rows, bob, seed + 1)
    if bob:
        # A column of his that nearly repeats one of hers, and a constant one.
        his[:, 0] = hers[:, 0] + repeated * his[:, 0]
        his[:, -1] = 7.0 if bob > 1 else his[:, -1]
    free = int(intercept)
    if intercept:
        his = np.hstack([his, np.ones((rows, 1))])
    sides = [(hers, 0, bob), (his, free, alice)]
    parts, penalties = [], []
    for values, own_free, others in sides:
        means = training_means(values, own_free) if intercept else None
        whitening = Whitening.fit(values, l2, own_free, heaviest, means).beside(others)
        parts.append(whitening.apply(values))
        penalties.append(np.eye(values.shape[1]) - whitening.kept(l2, own_free))
    joined = np.hstack(parts)
    # Any labels, scores and class weights: a row curves the loss by at most a quarter of a weight.
    curvature = heaviest * rng.choice([0.0, 0.01, 0.25], size=rows)
    for rows_curvature in (curvature, np.full(rows, heaviest / 4)):
        hessian = (joined * rows_curvature[:, None]).T @ joined / rows
        start = 0
        for penalty in penalties:
            place = slice(start, start + len(penalty))
            hessian[place, place] += penalty
            start += len(penalty)
        values = np.linalg.eigvalsh(hessian)
        assert values.max() <= 1 + 1e-7
        assert values.min() >= -1e-7


def test_centred_columns_are_free_of_the_intercept_on_either_side():
    hers, his = (
        table(40, 3, seed=1) + 5.0,
        np.hstack([table(40, 2, seed=2) - 3.0, np.ones((40, 1))]),
    )
    alone = Whitening.fit(his, 0.1, 1, means=training_means(his, 1))
    beside = alone.beside(3)
    joined = np.hstack(
        [Whitening.fit(hers, 0.1, means=hers.mean(axis=0)).apply(hers), beside.apply(his)]
    )
    assert np.abs(joined[:, :-1].T @ joined[:, -1]).max() < 1e-10
    # It is 2 in every row; where it is all that Bob has, Alice loses nothing.
    assert joined[:, -1] == pytest.approx(np.full(40, 2.0))
    assert alone.apply(his)[:, 0] != pytest.approx(beside.apply(his)[:, 0])
    lone = Whitening.fit(hers, 0.1, means=hers.mean(axis=0))
    assert np.array_equal(lone.beside(0).factor, lone.factor)


def test_an_intercept_absorbs_the_means_of_its_side():
    values = np.hstack([table(30, 3, seed=5) + 9.0, np.ones((30, 1))])
    means = training_means(values, 1)
    whitening = Whitening.fit(values, 0.1, 1, means=means)
    weights = np.array([0.3, -1.0, 2.0, 0.7])
    whitened = whitening.whitened(weights)
    assert whitening.weights(whitened) == pytest.approx(weights)
    assert whitening.apply(values) @ whitened == pytest.approx(values @ weights)
    again = Whitening.from_numbers(whitening.to_numbers(), 4, means.tolist(), 1)
    assert again.weights(whitened) == pytest.approx(weights)
