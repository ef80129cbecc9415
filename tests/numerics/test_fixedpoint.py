"""Reals on the grid and back."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from taciturn.errors import ConfigError, DataError, InfiniteValueError, MissingValueError
from taciturn.numerics.fixedpoint import FixedPoint, magnitude_bits
from tests.expected import refused

VALUES = arrays(
    np.float64, array_shapes(max_dims=2, max_side=8), elements=st.floats(-(2**20), 2**20)
)


@given(VALUES, st.integers(0, 42))
def test_decoding_is_within_half_a_step(values, bits):
    grid = FixedPoint(bits)
    encoded = grid.encode(values, magnitude_bits=20)
    assert encoded.dtype == np.int64
    assert encoded.shape == values.shape
    for value, integer in zip(values.flat, encoded.flat, strict=True):
        error = abs(Fraction(int(integer), 2**bits) - Fraction(float(value)))
        assert error <= Fraction(1, 2 ** (bits + 1))
    # What encode gives always has at most 53 significant bits, so decode is exact.
    assert np.array_equal(grid.encode(grid.decode(encoded), 20), encoded)


@given(VALUES, st.integers(0, 42))
def test_encoding_is_odd_and_bounded(values, bits):
    grid, width = FixedPoint(bits), magnitude_bits(float(np.abs(values).max()))
    encoded = grid.encode(values, width)
    np.testing.assert_array_equal(grid.encode(-values, width), -encoded)
    assert np.abs(encoded).max() <= 2 ** (bits + width)


@given(VALUES)
def test_magnitude_bits_is_the_smallest_that_holds(values):
    largest = float(np.abs(values).max())
    width = magnitude_bits(largest)
    assert largest <= 2.0**width
    assert width == 0 or largest > 2.0 ** (width - 1)


def test_halves_go_to_even():
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5])
    assert FixedPoint(0).encode(values, 2).tolist() == [0, 2, 2, 0, -2]


def test_the_bound_is_inclusive_and_counts_before_rounding():
    grid = FixedPoint(20)
    assert grid.encode(np.array([2.0, -2.0]), 1).tolist() == [2**21, -(2**21)]
    with refused(DataError, names=("2^20", "2^1")):
        grid.encode(np.array([np.nextafter(2.0, 3.0)]), 1)


def test_the_largest_word():
    assert FixedPoint(62).encode(np.array([1.0, -1.0]), 0).tolist() == [2**62, -(2**62)]
    assert FixedPoint(0).encode(np.array([2.0**62]), 62).tolist() == [2**62]


@pytest.mark.parametrize("shape", [(100_000,), (7, 9001), (70_000, 3), (2, 3, 9001)])
def test_blocks_meet_without_a_seam(shape):
    values = np.random.default_rng(3).normal(size=shape)
    expected = np.rint(values * 2.0**16).astype(np.int64)
    np.testing.assert_array_equal(FixedPoint(16).encode(values, 4), expected)
    turned = np.asfortranarray(values)[::-1]
    np.testing.assert_array_equal(FixedPoint(16).encode(turned, 4), expected[::-1])


@pytest.mark.parametrize("shape", [(), (0,), (0, 4), (4, 0)])
def test_scalars_and_nothing_keep_their_shape(shape):
    values = np.full(shape, 0.5)
    encoded = FixedPoint(1).encode(values, 0)
    assert encoded.shape == shape
    assert np.all(encoded == 1)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (math.nan, MissingValueError),
        (math.inf, InfiniteValueError),
        (-math.inf, InfiniteValueError),
        (1.5, DataError),
        (-1.5, DataError),
        (1e308, DataError),
    ],
)
@pytest.mark.parametrize("place", [0, 50_000, -1])
def test_encode_refuses_what_does_not_fit_without_naming_the_value(bad, error, place):
    values = np.zeros(100_000)
    values[place] = bad
    with refused(error, names=("2^20", "2^0")) as caught:
        FixedPoint(20).encode(values, 0)
    assert math.isinf(bad) or str(bad) not in str(caught.value)


def test_refuses_impossible_scales_and_ranges_beyond_a_word():
    for bits in (-1, 63):
        with refused(ConfigError):
            FixedPoint(bits)
    for width in (-1, 43):
        with refused(ConfigError):
            FixedPoint(20).encode(np.zeros(1), width)
