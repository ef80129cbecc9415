"""The penalty of several tables as rows: the same optimum, and a rotation that hides the rest."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.arrays import FloatArray, LabelArray
from taciturn.numerics.likelihood import of_labels, weighted_likelihood
from taciturn.numerics.penalty_rows import (
    MeasuredPenalty,
    gain_bits,
    penalty_rows,
    rotation,
)
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.numerics.whitening import Whitening
from taciturn.numerics.whole_table import optimum
from taciturn.rng import KeyedEntropy

COINS = KeyedEntropy.from_seed(5)


def test_rotations_are_uniform():
    """Means and variances of entries of 4,000 draws, each within 5 deviations (6e-7)."""
    draws = np.array([rotation(3, COINS.fork(str(number))) for number in range(4000)])
    assert np.abs(draws.mean(axis=0)).max() < 5 * np.sqrt(1 / 3 / 4000)
    # The square of an entry of a uniform one has mean 1/3 and variance 4/45.
    assert np.abs((draws**2).mean(axis=0) - 1 / 3).max() < 5 * np.sqrt(4 / 45 / 4000)
    assert np.abs(np.linalg.det(draws).mean()) < 5 / np.sqrt(4000)


@given(st.integers(1, 6), st.integers(1, 5), st.floats(1e-4, 10.0), st.integers(0, 4))
def test_rows_of_all_parties_together_have_the_square_of_all_weights(first, second, l2, gain):
    coins, whole = COINS.fork(f"{first} {second}"), rotation(first + second, COINS)
    total, square = np.zeros(first + second), 0.0
    for place in (slice(0, first), slice(first, first + second)):
        width = place.stop - place.start
        values = coins.fork(str(place.start)).uniform((20, width)) - 0.5
        whitening = Whitening.of(values, l2)
        weights = coins.fork(f"weights {place.start}").uniform((width,))
        rows = penalty_rows(whitening, l2, whole[:, place], rotation(width, coins), gain)
        # No entry beyond the gain: the scales have room for it.
        assert np.abs(rows).max() <= 2.0**gain * (1 + 1e-9)
        total += rows @ whitening.whitened(weights)
        square += l2 * float(weights @ weights)
    assert float(total @ total) / 4.0**gain == pytest.approx(square, rel=1e-8)


def test_other_weights_with_the_same_products_look_the_same():
    """What Bob sees of two sets of weights differs by a rotation, if their products agree."""
    weights = COINS.fork("w").uniform((4, 3))
    turned = rotation(4, COINS.fork("turn")) @ weights
    assert np.allclose(weights.T @ weights, turned.T @ turned)


def search(
    parts: list[FloatArray], own: FloatArray, labels: LabelArray, l2: float, passes: int
) -> tuple[FloatArray, SubspaceSolver]:
    """Bob's search against tables in clear; one party has no rows for the penalty."""
    rows, several = len(own), len(parts) > 1
    width = sum(part.shape[1] for part in parts)
    gain = gain_bits(rows, 4)
    whole, tables, start = rotation(width, COINS), [], 0
    for number, part in enumerate(parts):
        whitening, place = Whitening.of(part, l2), slice(start, start + part.shape[1])
        table, start = whitening.apply(part), place.stop
        if several:
            alone = rotation(part.shape[1], COINS.fork(str(number)))
            more = penalty_rows(whitening, l2, whole[:, place], alone, gain)
            table = np.vstack([table, more])
        tables.append((whitening, table))
    penalty = MeasuredPenalty.empty(width, rows, gain) if several else None
    plain = partial(weighted_likelihood, class_weight=None)
    solver = SubspaceSolver(of_labels(labels, plain), own, l2, 1, passes, penalty=penalty)
    for number in range(passes):
        direction = solver.direction()
        scores = np.sum([table @ (table.T @ direction) for _, table in tables], axis=0)
        solver.add(direction, scores, last=number == passes - 1)
        if several and number == passes // 2:
            solver = resumed(solver, labels, own, l2, passes, penalty)
    combination, weights = solver.conclude()
    hers = [whitening.weights(table.T @ combination) for whitening, table in tables]
    return np.concatenate([*hers, weights]), solver


def resumed(
    solver: SubspaceSolver,
    labels: LabelArray,
    own: FloatArray,
    l2: float,
    passes: int,
    penalty: MeasuredPenalty | None,
) -> SubspaceSolver:
    plain = partial(weighted_likelihood, class_weight=None)
    other = SubspaceSolver(of_labels(labels, plain), own, l2, 1, passes, penalty=penalty)
    directions, scores = solver.arrays
    other.resume(directions, scores, solver.position)
    assert other.loss() == solver.loss()
    return other


@pytest.mark.parametrize("l2", [1e-3, 1e-1, 3.0])
@pytest.mark.parametrize("split", [[10], [5, 5], [1, 9], [3, 3, 4], [1] * 10])
def test_the_search_ends_at_the_optimum_however_the_columns_are_dealt(split, l2):
    values = COINS.fork("values").uniform((120, 10)) - 0.5
    # Columns that follow from one another, across parties.
    values[:, 9] = values[:, 0] - values[:, 4]
    labels = (values[:, 0] + values[:, 7] + COINS.fork("y").uniform((120,)) > 0.5).astype(np.int8)
    own = np.column_stack([COINS.fork("own").uniform((120, 2)), np.ones(120)])
    stops = np.cumsum(split)
    parts = np.split(values, stops[:-1], axis=1)
    weights, solver = search(parts, own, labels, l2, passes=24)
    plain = partial(weighted_likelihood, class_weight=None)
    best = optimum(np.hstack([values, own]), of_labels(labels, plain), l2, 1)
    assert np.abs(weights - best.weights).max() < 3e-4
    assert solver.loss() == pytest.approx(best.loss, abs=1e-8)


def test_answers_that_are_no_numbers_raise_nothing():
    own, labels = np.ones((30, 1)), np.arange(30) % 2
    plain = partial(weighted_likelihood, class_weight=None)
    penalty = MeasuredPenalty.empty(4, 30, 2)
    solver = SubspaceSolver(of_labels(labels, plain), own, 0.1, 1, 3, penalty=penalty)
    for answer in (np.full(34, np.nan), np.full(34, np.inf), np.zeros(34)):
        solver.add(solver.direction(), answer)
    assert np.isfinite(solver.combination()).all()
