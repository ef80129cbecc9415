"""The bounds that are stated about the parameters, computed a second time."""

from __future__ import annotations

from fractions import Fraction
from math import comb, log2, pi, prod

import numpy as np
import pytest

from taciturn.crypto.base import Capacity, Wrapping
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    LEAST_FAILURE_BITS,
    MARGIN,
    MOST_PRIME_BITS,
    STANDARD,
    flood_half,
    most_pieces,
    require_fit,
)
from taciturn.crypto.bfv.seal import Seal
from taciturn.errors import CryptoError
from taciturn.rng import SystemEntropy
from tests.expected import refused

E_LOG2 = 1.4426950408889634
PAPER = {
    # The rows of an answer (Alice's columns), and 20 bits of residue, 16 of feature with what the
    # features' magnitudes add, and the batch.
    "breast-cancer": (30, Capacity(20, 16 + 4, 16)),
    "digits": (64, Capacity(20, 16 + 3, 32)),
    "census-income": (81, Capacity(20, 16 + 7, 32)),
    "give-me-some-credit": (10, Capacity(20, 16 + 8, 8)),
}


def accepted() -> list[Capacity]:
    """Every split of the bits with matrices of up to 45, for short and long sums."""
    capacities = []
    for terms in (1, 2, 3, 16, 1000, DEGREE, DEGREE + 1, 1 << 20):
        width = (terms - 1).bit_length()
        for vector_bits in range(59 - width):
            for matrix_bits in range(min(46, 59 - width - vector_bits)):
                capacities.append(Capacity(vector_bits, matrix_bits, terms))
    return capacities


def real_primes() -> tuple[int, ...]:
    return Seal(STANDARD, 65537).primes


def bound_on_noise(capacity: Capacity, pieces: int) -> float:
    """12 standard deviations of X e over all pieces, the roundings, and Alice's zero."""
    variance = 42 / 4 * DEGREE * pieces  # Of 42 tosses each; at most N non-zero factors a piece.
    roundings = capacity.terms / 2  # A zero beyond the vector's end has no rounding error.
    zero = 21 * (2 * DEGREE + 1)
    return float((12 * variance**0.5 + roundings) * 2**capacity.matrix_bits + zero)


def failure_bits(capacity: Capacity, primes: tuple[int, ...]) -> float:
    """From SEAL's real primes and with both roundings and the rounding of c0 at their worst."""
    noise = bound_on_noise(capacity, most_pieces(capacity.terms))
    kept, dropped = prod(primes[:2]), primes[2]
    t = 2 ** (capacity.product_bits + 1) + 1
    # In whole numbers: the room is a small difference of large ones.
    over = 2 * t * flood_half(primes[:3], t)
    guard = Fraction(kept, t * 2**57)
    room = float(Fraction(kept * dropped - over, 2 * t * dropped) - guard) - noise / dropped - 1.5
    variance = (DEGREE + 1) / 12  # Every coefficient of s at its largest.
    return room**2 / (2 * variance) * E_LOG2 - 1 if room > 0 else 0.0


def test_every_accepted_capacity_fails_with_less_than_2_to_the_minus_100():
    primes = real_primes()
    capacities = accepted()
    assert len(capacities) > 5000
    for capacity in capacities:
        stated = require_fit(capacity).failure_bits(capacity)
        assert stated >= LEAST_FAILURE_BITS == 100
        # What is stated is never more than what the real primes give.
        assert stated <= failure_bits(capacity, primes) * (1 + 1e-9)


def test_failure_by_hand():
    """512 less the two roundings of messages: 6 * 510^2 / (8193 ln 2) - 1."""
    stated = STANDARD.failure_bits(Capacity(20, 20, 16))
    assert MARGIN == 512
    assert stated == pytest.approx(6 * 510**2 / 8193 * E_LOG2 - 1, rel=1e-6)
    assert stated == pytest.approx(273.8, abs=0.1)


@pytest.mark.parametrize(("bits", "cover"), [(50, 39.99), (59, 30.99)])
def test_how_much_of_the_gap_the_flood_leaves_open(bits, cover):
    ring = Wrapping.with_modulus(bits, 16, 40)
    assert STANDARD.cover_bits(ring) == pytest.approx(cover, abs=0.01)
    # By the numbers that are really drawn: a gap rounded by 0.01 bits would leave 2^-7 open.
    primes = real_primes()[:3]
    drawn, gap = 2 * flood_half(primes, 1 << bits), Fraction(prod(primes), 1 << bits)
    assert float(1 - drawn / gap) == pytest.approx(2.0**-cover, rel=0.02)
    assert drawn >= 2 * STANDARD.flood(ring)


@pytest.mark.parametrize(
    "capacity", [Capacity(30, 29, 1), Capacity(20, 38, 2), Capacity(20, 20, 1 << 19)]
)
def test_wider_products_are_refused_with_the_scheme_that_holds_them(capacity):
    for refuses in (
        lambda: require_fit(capacity),
        lambda: BfvScheme().generate(128, capacity, SystemEntropy()),
        lambda: BfvScheme().read_public(b"", 128, capacity),
    ):
        with refused(CryptoError, names=(59, 58, "paillier")):
            refuses()


def test_primes_are_what_is_stated():
    assert sum(STANDARD.prime_bits) <= MOST_PRIME_BITS == 218
    primes = real_primes()
    assert tuple(prime.bit_length() for prime in primes) == STANDARD.prime_bits
    assert len(set(primes)) == len(primes)
    for prime in primes:
        assert prime % (2 * DEGREE) == 1
        assert pow(3, prime - 1, prime) == pow(5, prime - 1, prime) == 1
    # "Primes lie just below their power of two": by less than the 0.01 bits of the formulas.
    assert sum(STANDARD.kept) - log2(prod(primes[:2])) < 0.01
    assert STANDARD.dropped[0] - log2(primes[2]) < 0.01


@pytest.mark.sampled(8)
@pytest.mark.parametrize("bits", range(58, -1, -1))
def test_products_of_58_bits_fit_and_seal_takes_every_plaintext_modulus(bits):
    """Above, SEAL's plaintext moduli end, not the bound."""
    capacity = Capacity(bits // 2, bits - bits // 2, 1)
    assert require_fit(capacity) is STANDARD
    modulus = STANDARD.plain_modulus(capacity)
    assert modulus == 2 ** (bits + 1) + 1
    assert Seal(STANDARD, modulus).plain_modulus == modulus
    assert STANDARD.failure_bits(Capacity(30, 29, 1)) > LEAST_FAILURE_BITS


@pytest.mark.parametrize(
    ("shape", "leak"),
    [
        ("breast-cancer", 77.19),
        ("digits", 77.10),
        ("census-income", 68.76),
        ("give-me-some-credit", 71.77),
    ],
)
def test_the_papers_shapes(shape, leak):
    """-log2 of what Bob learns of X per answer."""
    entries, capacity = PAPER[shape]
    assert Layout.for_shape(entries, capacity.terms).pieces == 1
    bits = STANDARD.leak_bits(capacity, entries)
    print(shape, bits)
    assert bits == pytest.approx(leak, abs=0.01)
    t = 2 ** (capacity.product_bits + 1) + 1
    width = prod(real_primes()[:3]) / t - 2 * MARGIN * real_primes()[2]
    assert bits <= -log2(entries * bound_on_noise(capacity, 1) / width)


@pytest.mark.parametrize(
    ("rows", "length"),
    [(30, 16), (90, 32), (81, 1024), (1024, 81), (500, 4096), (DEGREE, DEGREE), (50, 9000)],
)
def test_the_noise_is_bounded_for_all_pieces(rows, length):
    """A layout may cut a vector into more pieces than ``ceil(terms / N)``; each adds its noise."""
    capacity = Capacity(20, 20, length)
    pieces = Layout.for_shape(rows, length).pieces
    assert STANDARD.noise(capacity, pieces) >= bound_on_noise(capacity, pieces)
    assert STANDARD.leak_bits(capacity, rows, pieces) < STANDARD.leak_bits(capacity, rows, 1) + 1e-9


@pytest.mark.parametrize(("rows", "fits"), [(4, True), (400, False)])
def test_a_matrix_whose_answer_would_tell_too_much_of_it_is_refused(rows, fits):
    """The bound is that of the answer as it is laid out: here 2^-44 and 2^-37."""
    capacity = Capacity(0, 49, 4)
    public = BfvScheme().generate(128, capacity, SystemEntropy()).public
    matrix = np.ones((rows, 4), dtype=np.int64)
    if fits:
        assert public.prepare(matrix).rows == rows
    else:
        with refused(CryptoError, names="2^-37"):
            public.prepare(matrix)


def test_seals_errors_are_as_the_bound_takes_them():
    """Centred binomial of 42 tosses: variance 21/2, and never beyond 21."""
    weights = {k - 21: comb(42, k) for k in range(43)}
    assert sum(k * k * weight for k, weight in weights.items()) / 2**42 == 21 / 2
    # Close to the standard's Gaussian of 3.2: within a percent and a half.
    assert (21 / 2) ** 0.5 == pytest.approx(8 / (2 * pi) ** 0.5, rel=0.016)
