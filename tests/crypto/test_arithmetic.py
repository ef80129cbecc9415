"""Primes, products of powers, and packing."""

from __future__ import annotations

from itertools import pairwise

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.base import Capacity
from tacit.crypto.multiexp import PowerTable, best_window, product_of_powers, signed_digits
from tacit.crypto.packing import Packing
from tacit.crypto.primes import draw_prime, has_small_factor, looks_prime
from tacit.errors import CryptoError
from tacit.rng import KeyedEntropy

MODULUS = mpz(10007 * 10009)


@given(st.integers(-(2**200), 2**200), st.integers(2, 8))
def test_signed_digits_are_a_sparse_form(exponent, window):
    digits = list(signed_digits(mpz(exponent), window))
    assert sum(digit << position for position, digit in digits) == exponent
    assert all(digit % 2 and abs(digit) < 1 << (window - 1) for _, digit in digits)
    positions = [position for position, _ in digits]
    assert all(b - a >= window for a, b in pairwise(positions))


units = st.integers(1, int(MODULUS) - 1).filter(lambda unit: gmpy2.gcd(unit, MODULUS) == 1)


@given(st.lists(st.tuples(units, st.integers(-(2**90), 2**90), st.integers(2, 7)), max_size=6))
def test_product_of_powers_equals_separate_powers(terms):
    factors = [
        (PowerTable(mpz(base), MODULUS, k), signed_digits(mpz(power), k))
        for base, power, k in terms
    ]
    expected = 1
    for base, power, _ in terms:
        expected = expected * pow(base, power, int(MODULUS)) % int(MODULUS)
    assert product_of_powers(factors, MODULUS) == expected


def test_windows_grow_with_the_work():
    windows = [best_window(bits) for bits in (0, 10, 100, 1000, 10_000, 10**6)]
    assert windows == sorted(windows)
    assert windows[0] == 2
    assert windows[-1] == 8


@pytest.mark.parametrize("bits", [32, 64, 256])
def test_primes_have_their_two_top_bits_set(bits):
    coins = KeyedEntropy.from_seed(bits)
    for _ in range(5):
        prime = draw_prime(bits, coins)
        assert prime >> (bits - 2) == 3
        assert gmpy2.is_prime(prime)


def test_drawn_primes_are_all_of_the_form_and_no_gap_is_favoured():
    coins = KeyedEntropy.from_seed(8)
    wanted = {k for k in range(3 << 14, 1 << 16) if gmpy2.is_prime(k)}
    counts = dict.fromkeys(wanted, 0)
    for _ in range(4000):
        counts[int(draw_prime(16, coins))] += 1
    mean = 4000 / len(wanted)
    chi2 = sum((count - mean) ** 2 / mean for count in counts.values())
    freedom = len(wanted) - 1
    # Five standard deviations: a false alarm once in millions of seeds, and the seed is fixed.
    assert abs(chi2 - freedom) < 5 * (2 * freedom) ** 0.5


def test_composites_are_seen():
    assert not looks_prime(mpz(3215031751))  # A strong pseudoprime to bases 2, 3, 5 and 7.
    assert not looks_prime(mpz(561))
    assert has_small_factor(mpz(4093) * 10007)
    assert not has_small_factor(mpz(10007) * 10009)


@given(
    st.integers(0, 62),
    st.lists(st.integers(0, 2**66 - 1), min_size=1, max_size=5),
    st.integers(0, 2**100),
)
def test_packing_round_trip_ignores_what_lies_above(product_bits, values, above):
    packing = Packing(product_bits, len(values))
    packed = packing.pack(values) + (mpz(above) << (packing.width * len(values)))
    assert packing.unpack(packed, len(values)) == values


def test_packing_of_negative_values_is_the_plain_sum():
    packing = Packing(3, 3)
    assert packing.pack([-1, 2, -3]) == -1 + (2 << packing.width) - (3 << 2 * packing.width)


def test_packing_fills_below_every_modulus_of_the_size():
    packing = Packing.within(Capacity(10, 10, 4), 512)
    assert packing.slots * packing.width <= 511 < (packing.slots + 1) * packing.width
    # One plaintext, or an even number of nearly equal ones for two cores to share.
    assert [list(group) for group in Packing(0, 2).groups(2)] == [[0, 1]]
    assert [list(group) for group in Packing(0, 2).groups(5)] == [[0, 1], [2], [3], [4]]
    for length in range(1, 40):
        groups = list(Packing(0, 7).groups(length))
        assert [entry for group in groups for entry in group] == list(range(length))
        assert len(groups) == Packing(0, 7).plaintexts(length)
        assert max(map(len, groups)) <= 7
    with pytest.raises(CryptoError, match="holds 63"):
        Packing.within(Capacity(10, 10, 4), 64)
