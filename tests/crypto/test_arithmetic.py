"""Primes, products of powers, and packing."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from taciturn.crypto.base import Capacity
from taciturn.crypto.multiexp import Ladder, SubsetTables, block_sizes, product_of_powers
from taciturn.crypto.paillier import Packing
from taciturn.crypto.trapdoor import draw_prime, has_small_factor, looks_prime
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy
from tests.expected import refused

N = 10007 * 10009
SQUARE = N * N
OFFSET_BITS, WIDTH = 7, 20

units = st.integers(1, SQUARE - 1).filter(lambda unit: gmpy2.gcd(unit, N) == 1)
entries = st.integers(-(2**OFFSET_BITS), 2**OFFSET_BITS)


@st.composite
def products(draw):
    """Bases, their exponents in slots, and blocks of any sizes."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    bases = draw(st.lists(units, min_size=sum(sizes), max_size=sum(sizes)))
    slot = st.lists(entries, min_size=len(bases), max_size=len(bases))
    return bases, draw(st.lists(slot, min_size=1, max_size=3)), sizes


@given(products(), st.booleans())
def test_product_of_powers_equals_separate_powers(product, alone):
    bases, slots, sizes = product
    tables = SubsetTables.from_bases([mpz(base) for base in bases], mpz(N), sizes)
    ladder = Ladder.from_exponents(np.array(slots), OFFSET_BITS, WIDTH, sizes)
    expected = 1
    for base, column in zip(bases, zip(*slots, strict=True), strict=True):
        power = sum(entry << (WIDTH * slot) for slot, entry in enumerate(column))
        expected = expected * pow(base, power, SQUARE) % SQUARE
    assert product_of_powers(ladder, tables, mpz(N), alone=alone) == expected


@given(st.lists(units, min_size=1, max_size=5))
def test_tables_hold_every_subset_and_the_inverse_of_all(bases):
    tables = SubsetTables.from_bases([mpz(base) for base in bases], mpz(N), [len(bases)])
    *products, inverse = (
        int(short * (1 + tail * N) % SQUARE)
        for short, tail in zip(tables.shorts, tables.tails, strict=True)
    )
    expected = [1]
    for base in bases:
        expected += [product * base % SQUARE for product in expected]
    assert products == expected
    assert inverse == pow(expected[-1], -1, SQUARE)
    assert all(0 < short < N for short in tables.shorts)


def test_blocks_hold_all_bases_evenly_and_grow_with_the_work():
    for bases in (1, 7, 30, 1024):
        largest = []
        for positions in (1, 30, 200, 1500, 10**6):
            sizes = block_sizes(bases, positions)
            assert sum(sizes) == bases
            assert max(sizes) - min(sizes) <= 1
            largest.append(max(sizes))
        assert largest == sorted(largest)
        assert largest[-1] == min(bases, 10)


@pytest.mark.parametrize("bits", [32, 64, 256])
def test_primes_have_their_two_top_bits_set(bits):
    entropy = KeyedEntropy.from_seed(bits)
    for _ in range(5):
        prime = draw_prime(bits, entropy)
        assert prime >> (bits - 2) == 3
        assert gmpy2.is_prime(prime)


def test_drawn_primes_are_all_of_the_form_and_no_gap_is_favoured():
    entropy = KeyedEntropy.from_seed(8)
    wanted = {k for k in range(3 << 14, 1 << 16) if gmpy2.is_prime(k)}
    counts = dict.fromkeys(wanted, 0)
    for _ in range(4000):
        counts[int(draw_prime(16, entropy))] += 1
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
    with refused(CryptoError, names=63):
        Packing.within(Capacity(10, 10, 4), 64)
