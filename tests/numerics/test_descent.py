"""Descent on a public schedule: its bounds hold for any table, and one label moves no more.

Every pair of label vectors that differ in one label is tried on tables of up to eight rows; the
products are exact, so that what is measured is the descent and not its rounding.
"""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import ConfigError
from taciturn.numerics.descent import BoundedTable, DescentSolver, parties_with_columns, row_bound
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from tests.expected import refused

L2 = 0.05


def table(rows: int, columns: int, seed: int, *, outlier: float = 1.0) -> np.ndarray:
    values = np.random.default_rng(seed).normal(size=(rows, columns))
    values[:1] *= outlier
    return values


def signs(rows: int, columns: int, seed: int) -> np.ndarray:
    """Rows that are all alike in length: whitened, none is cut."""
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(rows, columns))


def with_intercept(values: np.ndarray) -> np.ndarray:
    return np.hstack([values, np.ones((len(values), 1))])


def solver_of(
    labels: np.ndarray, own: np.ndarray, free: int, weights: tuple[float, float] | None = None
) -> DescentSolver:
    likelihood = label_likelihood(labels, partial(weighted_likelihood, class_weight=weights))
    return DescentSolver(likelihood, own, L2, free, passes=1)


def descend(solver: DescentSolver, alice: np.ndarray, passes: int) -> np.ndarray:
    """Alice's whitened weights after all steps, with exact products."""
    for _ in range(passes):
        direction = solver.direction()
        solver.add(direction, alice @ (direction @ alice))
    weights: np.ndarray = solver.conclude()[0] @ alice
    return weights


# --- tables ---------------------------------------------------------------------------------------

SIZES = {"rows": st.integers(1, 30), "columns": st.integers(1, 6), "seed": st.integers(0, 10**6)}


@settings(max_examples=60, deadline=None)
@given(**SIZES, outlier=st.sampled_from([1.0, 30.0, 1e4]), bits=st.integers(3, 12))
def test_a_rounded_table_is_within_its_bounds(rows, columns, seed, outlier, bits):
    values = table(rows, columns, seed, outlier=outlier)
    values[:, -1] = values[:, 0]
    rounding = 2.0 ** -(bits + 1)
    rounded = (
        np.rint(BoundedTable.from_table(values, L2).shrunk(rounding).values * 2**bits) / 2**bits
    )
    assert np.linalg.norm(rounded, 2) ** 2 <= 4 * rows
    assert np.sqrt(np.square(rounded).sum(axis=1)).max() <= row_bound(columns)


def test_weights_mean_the_same_for_rows_that_were_not_cut():
    values = signs(40, 3, 1)
    bounded = BoundedTable.from_table(values, L2)
    small = bounded.shrunk(2.0**-8)
    assert bounded.cut_rows == 0
    weights = np.array([0.5, -1.0, 2.0])
    for of in (bounded, small):
        scores = values @ of.whitening.weights(weights)
        assert np.allclose(of.values @ weights, scores)
        assert np.allclose(of.whitening.apply(values), of.values)


def test_at_most_half_of_the_rows_are_cut():
    for seed in range(20):
        values = np.random.default_rng(seed).standard_cauchy(size=(51, 3))
        assert BoundedTable.from_table(values, 1e-3).cut_rows <= 25


def test_a_table_that_rounding_would_drown_is_refused():
    bounded = BoundedTable.from_table(table(200, 100, 3), L2)
    with refused(ConfigError, names=100):
        bounded.shrunk(2.0**-3)


# --- steps ----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(**SIZES, bob=st.integers(0, 3), free=st.booleans(), outlier=st.sampled_from([1.0, 50.0]))
def test_no_step_takes_two_points_apart(rows, columns, seed, bob, free, outlier):
    """The curvature of what is descended on lies between 0 and P, at every point."""
    own = table(rows, bob, seed + 1, outlier=outlier)
    own = with_intercept(own) if free else own
    blocks = [BoundedTable.from_table(table(rows, columns, seed, outlier=outlier), L2).values]
    if own.shape[1]:
        blocks.append(BoundedTable.from_table(own, L2, int(free)).values)
    joined, size = np.hstack(blocks), sum(block.shape[1] for block in blocks)
    penalty, at = np.zeros((size, size)), 0
    for block in blocks:
        part = slice(at, at + block.shape[1])
        penalty[part, part] = np.eye(block.shape[1]) - block.T @ block / (4 * rows)
        at += block.shape[1]
    entropy = np.random.default_rng(seed)
    for curvature in (np.zeros(rows), np.full(rows, 0.25), entropy.uniform(0, 0.25, rows)):
        hessian = (joined * curvature[:, None]).T @ joined / rows + penalty
        values = np.linalg.eigvalsh(hessian)
        assert values[0] >= -1e-12
        assert values[-1] <= parties_with_columns(own.shape[1]) + 1e-12


def test_a_step_is_one_of_gradient_descent_in_whitened_coordinates():
    values, own = table(30, 3, 2, outlier=20.0), with_intercept(table(30, 2, 3))
    labels = (np.arange(30) % 3 == 0).astype(np.int8)
    hers, his = BoundedTable.from_table(values, L2), BoundedTable.from_table(own, L2, 1)
    assert hers.cut_rows
    w_a, w_b = np.zeros(3), np.zeros(3)
    for _ in range(6):
        z_a, z_b = hers.values @ w_a, his.values @ w_b
        error = 1 / (1 + np.exp(-z_a - z_b)) - labels
        slope_a = hers.values.T @ (error - z_a / 4) / 30 + w_a
        slope_b = his.values.T @ (error - z_b / 4) / 30 + w_b
        w_a, w_b = w_a - slope_a / 2, w_b - slope_b / 2
    solver = solver_of(labels, own, free=1)
    assert np.allclose(descend(solver, hers.values, passes=5), w_a, atol=1e-12)
    assert np.allclose(solver.conclude()[1], his.whitening.weights(w_b), atol=1e-12)


def test_many_steps_reach_the_optimum_where_no_row_is_cut():
    values, own = signs(60, 3, 4), with_intercept(signs(60, 2, 5))
    labels = (values @ [1.0, -1.0, 0.5] + own[:, 0] > 0.2).astype(np.int8)
    hers = BoundedTable.from_table(values, L2)
    solver = solver_of(labels, own, free=1)
    assert hers.cut_rows == BoundedTable.from_table(own, L2, 1).cut_rows == 0
    w_a = hers.whitening.weights(descend(solver, hers.values, passes=300))
    weights = np.concatenate([w_a, solver.conclude()[1]])
    joined = np.hstack([values, own])
    likelihood = label_likelihood(labels, partial(weighted_likelihood, class_weight=None))
    loss = penalised_loss(joined @ weights, likelihood, weights, L2, 1)
    assert loss - optimum(joined, likelihood, L2, 1).loss < 1e-6


@pytest.mark.parametrize("scores", [np.nan, np.inf, -np.inf, 1e300, 0.0])
def test_any_scores_are_taken(scores):
    solver = solver_of(np.array([0, 1, 1], dtype=np.int8), np.ones((3, 1)), free=1)
    solver.add(solver.direction(), np.full(3, scores))
    with np.errstate(over="ignore", invalid="ignore"):
        assert solver.direction().shape == (3,)
        assert solver.scores().shape == (3,)
        assert [part.shape for part in solver.conclude()] == [(3,), (1,)]


def test_a_resumed_solver_continues_to_the_last_bit():
    values, own = (
        BoundedTable.from_table(table(12, 2, 6), L2).values,
        with_intercept(table(12, 1, 7)),
    )
    labels = (np.arange(12) % 2).astype(np.int8)
    whole = solver_of(labels, own, free=1)
    for _ in range(4):
        again = solver_of(labels, own, free=1)
        again.resume(*whole.arrays, whole.position)
        assert again.direction().tolist() == whole.direction().tolist()
        assert again.weights.tolist() == whole.weights.tolist()
        assert again.mixture.tolist() == whole.mixture.tolist()
        direction = whole.direction()
        whole.add(direction, values @ (direction @ values))


# --- what a label moves ---------------------------------------------------------------------------

TABLES = {
    "all at Alice": (table(8, 2, 8, outlier=40.0), np.empty((8, 0)), 0),
    "an intercept": (table(8, 2, 8, outlier=40.0), np.ones((8, 1)), 1),
    "halves": (table(7, 2, 9, outlier=40.0), with_intercept(table(7, 1, 10, outlier=40.0)), 1),
    "two rows": (table(2, 1, 11), np.empty((2, 0)), 0),
}


def moved(name: str, passes: int, weights: tuple[float, float] | None = None) -> float:
    """The most that one label moves Alice's weights, over all labels of all rows, by the bound."""
    alice, own, free = TABLES[name]
    hers, rows = BoundedTable.from_table(alice, L2).values, len(alice)
    ends = {
        labels: descend(
            solver_of(np.array(labels, dtype=np.int8), own, free, weights), hers, passes
        )
        for labels in itertools.product((0, 1), repeat=rows)
    }
    most = max(
        float(np.linalg.norm(end - ends[(*labels[:row], 1 - labels[row], *labels[row + 1 :])]))
        for labels, end in ends.items()
        for row in range(rows)
    )
    reach = math.hypot(row_bound(alice.shape[1]), row_bound(own.shape[1], free))
    return most / ((passes + 1) * reach / (parties_with_columns(own.shape[1]) * rows))


@pytest.mark.parametrize("passes", [0, 1, 3])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.sampled(3)
def test_one_label_moves_no_more_than_the_bound_and_a_tenth_of_it_at_least(name, passes):
    assert 0.1 < moved(name, passes) <= 1.0


def test_of_one_step_the_bound_is_exact():
    """A row that was cut is as long as rows may be."""
    assert moved("all at Alice", passes=0) > 0.999


def test_class_weights_move_no_more():
    assert moved("halves", 2, (0.25, 1.0)) <= 1.0
