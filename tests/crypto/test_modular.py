"""Arithmetic modulo primes on arrays, against Python's integers."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from taciturn.crypto.bfv.modular import Flood, Grid, Multiplier, lowered
from taciturn.crypto.bfv.parameters import STANDARD
from taciturn.crypto.bfv.seal import Seal
from taciturn.rng import KeyedEntropy

PRIMES = Seal(STANDARD, 1 << 50).primes[:-1]
WORDS = st.integers(0, 2**64 - 1)
EDGES = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]


@given(
    modulus=st.one_of(st.sampled_from(PRIMES), st.integers(2, 2**63 - 1)),
    factor=WORDS,
    values=st.lists(WORDS, max_size=20),
)
def test_products_modulo_any_modulus_are_exact(modulus, factor, values):
    factor %= modulus
    words = np.array(EDGES + values + [modulus - 1, modulus], dtype=np.uint64)
    products = Multiplier(factor, modulus)(words).tolist()
    assert products == [word * factor % modulus for word in words.tolist()]


@given(modulus=st.integers(1, 2**63 - 1), part=st.floats(0, 1))
def test_sums_are_brought_below_the_modulus(modulus, part):
    below = [
        0,
        modulus - 1,
        modulus,
        2 * modulus - 1,
        min(int(part * 2 * modulus), 2 * modulus - 1),
    ]
    words = lowered(np.array(below, dtype=np.uint64), np.uint64(modulus))
    assert words.tolist() == [value % modulus for value in below]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("primes", [PRIMES, PRIMES[:2], PRIMES[:1]], ids=len)
@pytest.mark.parametrize("t", [2**50, 2**59, 2**45 + 1, 2**59 + 1, 3])
@given(parts=st.lists(st.floats(-1, 1), max_size=20))
def test_the_grid_is_the_nearest_integer_to_the_message_times_q_over_t(primes, t, parts):
    """Of every message from -t/2 to t: a signed one, or a class modulo t."""
    messages = [0, 1, -1, t // 2, -(t // 2), t - 1, *(int(part * (t // 2)) for part in parts)]
    points = Grid(primes, t)(np.array(messages, dtype=np.int64))
    whole = prod(primes)
    for at, prime in enumerate(primes):
        nearest = [(whole * message + t // 2) // t % prime for message in messages]
        assert points[at].tolist() == nearest


def combined(numbers: np.ndarray, primes: tuple[int, ...]) -> list[int]:
    """The integers of given residues, centred around zero."""
    whole, total = prod(primes), np.zeros(numbers.shape[1], dtype=object)
    for residues, prime in zip(numbers, primes, strict=True):
        rest = whole // prime
        total = total + residues.astype(object) * (rest * pow(rest, -1, prime))
    return [int(value) - whole * (value > whole // 2) for value in total % whole]


@pytest.mark.parametrize("bits", [5, 40, 63, 64, 65, 90, 110, 127, 128, 157])
def test_the_flood_is_uniform_on_its_whole_width(bits):
    """False alarms: one in ten thousand; draws are from a fixed seed, so none comes up anew."""
    half = (1 << bits) // 3
    numbers = Flood(PRIMES, half)(5000, KeyedEntropy.from_seed(bits))
    values = combined(numbers, PRIMES)
    assert -half <= min(values) < -0.9 * half
    assert 0.9 * half - 1 < max(values) <= half
    shares = np.array([value / half for value in values])
    if bits > 20:
        assert kstest(shares, "uniform", (-1, 2)).pvalue > 1e-4
        # And so are the low bits of it.
        low = np.array([value % 1024 / 1024 for value in values])
        assert kstest(low + 0.5 / 1024, "uniform").pvalue > 1e-4
    else:
        assert set(values) == set(range(-half, half))


@pytest.mark.parametrize("half", [50, 64, 71])
def test_a_flood_is_uniform_to_its_very_ends(half):
    """A top part of three bits: what is beyond the end is drawn again, and none is left out."""
    flood, count = Flood((1_009, 2_003), half, top_bits=3), 200_000
    numbers = flood(count, KeyedEntropy.from_seed(half)).astype(np.int64)
    values = np.where(numbers[0] > 500, numbers[0] - 1_009, numbers[0])
    assert (np.where(numbers[1] > 1_000, numbers[1] - 2_003, numbers[1]) == values).all()
    counts = np.bincount(values + half, minlength=2 * half)
    assert len(counts) == 2 * half
    expected = count / (2 * half)
    statistic = ((counts - expected) ** 2 / expected).sum()
    # Chi-squared: its mean and, times six, its standard deviation.
    assert statistic < 2 * half + 6 * np.sqrt(4 * half)
