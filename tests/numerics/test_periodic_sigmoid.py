"""The sigmoid as a sum of waves: its bound holds on the whole ring, and shares add up to it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from taciturn.families.binomial import sigmoid
from taciturn.numerics.periodic_sigmoid import PeriodicSigmoid, SharedSigmoid, half_range
from taciturn.rng import KeyedEntropy

BITS = 59
RANGES = [(4.0, 1e-2), (8.0, 1e-3), (32.0, 1e-3), (32.0, 1e-5), (128.0, 1e-3)]


def ring(reach: float, error: float, points: int = 60_001) -> tuple[PeriodicSigmoid, np.ndarray]:
    """A function, and scores from one end of its range to the other."""
    return PeriodicSigmoid.with_error(half_range(reach, error), error), np.linspace(
        -reach, reach, points
    )


@pytest.mark.parametrize(("reach", "error"), RANGES)
def test_the_bound_holds_on_the_whole_range_and_is_no_larger_than_what_was_asked_for(reach, error):
    function, scores = ring(reach, error)
    worst = np.abs(function(scores) - sigmoid(scores)).max()
    assert worst <= function.bound(reach) <= error
    # One wave fewer is not enough, and the bound is not far from the truth.
    assert PeriodicSigmoid(function.half_range, function.waves - 1).bound(reach) > error * 0.7
    assert worst > error / 20


def test_the_function_has_the_ring_s_period_and_mirrors_around_zero():
    function, scores = ring(32.0, 1e-3, 401)
    turns = scores + 2 * function.half_range
    assert np.abs(function(turns) - function(scores)).max() < 1e-12
    assert np.abs(function(scores) + function(-scores) - 1.0).max() < 1e-12


def test_the_coefficients_are_those_of_the_function_s_fourier_series():
    """By quadrature of a square wave smoothed by the logistic density."""
    half = 24.0
    function = PeriodicSigmoid(half, 6)
    grid = np.linspace(-half, half, 40_001)
    images = sum((-1) ** turn * (sigmoid(grid - turn * half) - 0.5) for turn in range(-9, 10))
    for wave, coefficient in zip(function.frequencies, function.coefficients, strict=True):
        projected = np.trapezoid(images * np.sin(math.pi * wave * grid / half), grid) / half
        assert projected == pytest.approx(coefficient, abs=1e-6)


def shares(scores: np.ndarray, half: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores cut in two: the first part uniform, both centred modulo 2^BITS."""
    whole = np.rint(scores / half * 2.0 ** (BITS - 1)).astype(np.int64)
    first = KeyedEntropy.from_seed(seed).words(len(scores)).view(np.int64)
    return centred(first), centred(whole - first)


def centred(values: np.ndarray) -> np.ndarray:
    shift = np.int64(64 - BITS)
    return (values << shift) >> shift


@pytest.mark.parametrize("digits", [18, 21, 24])
def test_products_of_both_sides_numbers_add_up_to_the_sigmoid_on_the_whole_ring(digits):
    function, scores = ring(32.0, 1e-3)
    shared = SharedSigmoid(function, BITS, 1.37 * 2.0**digits)
    hers, his = shares(scores, function.half_range, seed=3)
    phases = shared.phases(his, np.ones(len(his)))
    table = shared.table(hers, KeyedEntropy.from_seed(5))
    error = (phases * table).sum(axis=1) / shared.step + 0.5 - function(scores)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(shared.rounding, rel=0.1)
    assert np.abs(error).max() < 6 * shared.rounding
    # Roundings are as often up as down: nothing piles up over many steps.
    assert abs(error.mean()) < 5 * shared.rounding / math.sqrt(len(error))
    assert phases.shape == table.shape == (len(scores), shared.entries)
    assert np.abs(table).max() <= 2**shared.table_bits
    assert np.abs(phases).max() <= 2**shared.bits


def test_a_factor_weighs_the_residue():
    function, scores = ring(8.0, 1e-3, 101)
    shared = SharedSigmoid(function, BITS, 2.0**24)
    hers, his = shares(scores, function.half_range, seed=3)
    table = shared.table(hers, KeyedEntropy.from_seed(5))
    factors = np.linspace(-1.0, 1.0, 101)
    weighed = (shared.phases(his, factors) * table).sum(axis=1) / shared.step
    assert np.abs(weighed - factors * (function(scores) - 0.5)).max() < 8 * shared.rounding


def test_the_ends_of_the_ring_are_shares_like_others():
    function = PeriodicSigmoid(40.0, 14)
    shared = SharedSigmoid(function, BITS, 2.0**24)
    ends = np.array([-(2 ** (BITS - 1)), 2 ** (BITS - 1) - 1, 0, 1], dtype=np.int64)
    zeros = np.zeros(4, dtype=np.int64)
    table = shared.table(ends, KeyedEntropy.from_seed(5))
    values = (shared.phases(zeros, np.ones(4)) * table).sum(axis=1) / shared.step + 0.5
    assert values == pytest.approx([0.5, 0.5, 0.5, 0.5], abs=8 * shared.rounding)


@pytest.mark.parametrize(("reach", "error"), RANGES)
def test_the_loss_of_the_waves_is_within_its_bound_on_the_whole_range(reach, error):
    function, scores = ring(reach, error)
    worst = np.abs(function.even_loss(scores) - np.logaddexp(scores / 2, -scores / 2)).max()
    assert worst <= function.loss_bound(reach) <= error
    assert worst > function.loss_bound(reach) / 20


def test_the_loss_has_the_function_as_its_slope():
    function, scores = ring(32.0, 1e-3, 401)
    step = 1e-4
    slope = (function.even_loss(scores + step) - function.even_loss(scores - step)) / (2 * step)
    assert np.abs(slope - (function(scores) - 0.5)).max() < 1e-6


def test_shares_make_the_loss_with_bob_s_numbers_of_the_sigmoid():
    function, scores = ring(32.0, 1e-3, 2_001)
    shared, unit = SharedSigmoid(function, BITS, 2.0**34), 2.0**44
    first, second = shares(scores, function.half_range, 5)
    factors = np.where(np.arange(len(scores)) % 2, -1.0, -0.25)
    table = shared.loss_table(first, unit, KeyedEntropy.from_seed(6))
    made = (table * shared.phases(second, factors)).sum(axis=1) / unit
    expected = -factors * (function.even_loss(scores) - function.half_range / 4)
    assert np.abs(made - expected).max() < 4e-4
    assert abs(np.mean(made - expected)) < 2e-5


@pytest.mark.parametrize("extra", [0, 3])
def test_roundings_of_a_loss_are_as_large_as_stated(extra):
    """Within a tenth: four standard errors of a deviation of 1,000 rows, and Alice's roundings."""
    function, scores = ring(64.0, 3e-3, 1_001)
    shared, unit = SharedSigmoid(function, BITS, 2.0**24, extra_bits=extra), 2.0**44
    first, second = shares(scores, function.half_range, 5)
    table = shared.loss_table(first, unit, KeyedEntropy.from_seed(6))
    made = -(table * shared.phases(second, np.ones(len(scores)))).sum(axis=1) / unit
    errors = made - (function.half_range / 4 - function.even_loss(scores)) * -1.0
    assert np.std(errors) == pytest.approx(shared.loss_rounding, rel=0.1)
