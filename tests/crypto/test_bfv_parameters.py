"""The bounds that are stated about the parameter sets, computed a second time."""

from __future__ import annotations

from math import comb, log2, pi, prod

import numpy as np
import pytest

from taciturn.crypto.base import Capacity
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    LEAST_FAILURE_BITS,
    MOST_PRIME_BITS,
    NARROW,
    SETS,
    WIDE,
    BfvParameters,
    most_pieces,
    parameters_for,
)
from taciturn.crypto.bfv.seal import Seal
from taciturn.errors import CryptoError
from taciturn.rng import SystemEntropy

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
    """Every split of the bits, for short and long sums."""
    found = []
    for terms in (1, 2, 3, 16, 1000, DEGREE, DEGREE + 1, 1 << 20):
        width = (terms - 1).bit_length()
        for vector_bits in range(59 - width):
            for matrix_bits in range(59 - width - vector_bits):
                found.append(Capacity(vector_bits, matrix_bits, terms))
    return found


def real_primes(parameters: BfvParameters) -> tuple[int, ...]:
    return Seal(parameters, 65537).primes


def bound_on_noise(capacity: Capacity, pieces: int) -> float:
    """12 standard deviations of X e over all pieces, the roundings, and Alice's zero."""
    variance = 42 / 4 * DEGREE * pieces  # Of 42 tosses each; at most N non-zero factors a piece.
    roundings = capacity.terms / 2  # A zero beyond the vector's end has no rounding error.
    zero = 21 * (2 * DEGREE + 1)
    return float((12 * variance**0.5 + roundings) * 2**capacity.matrix_bits + zero)


def failure_bits(parameters: BfvParameters, capacity: Capacity, primes: tuple[int, ...]) -> float:
    """From SEAL's real primes and with both roundings and the rounding of c0 at their worst."""
    kept = prod(primes[: len(parameters.kept)])
    dropped = prod(primes[len(parameters.kept) : -1])
    t = 2 ** (capacity.product_bits + 1) + 1
    noise = bound_on_noise(capacity, most_pieces(capacity.terms))
    room = kept / (2 * t) - noise / dropped - 1.5
    variance = DEGREE / 12  # Every coefficient of s at its largest.
    return room**2 / (2 * variance) * E_LOG2 - 1 if room > 0 else 0.0


def test_every_accepted_capacity_fails_with_less_than_2_to_the_minus_100():
    primes = {each.name: real_primes(each) for each in SETS}
    capacities = accepted()
    assert len(capacities) > 5000
    for capacity in capacities:
        chosen = parameters_for(capacity)
        stated = chosen.failure_bits(capacity)
        assert stated >= LEAST_FAILURE_BITS == 100
        # What is stated is never more than what the real primes give.
        assert stated <= failure_bits(chosen, capacity, primes[chosen.name]) * (1 + 1e-9)


@pytest.mark.parametrize(("bits", "stated"), [(46, 17465), (48, 1087), (49, 270)])
def test_failure_of_the_narrow_set_by_hand(bits, stated):
    # q'/(2t) = 2^60 / 2^(bits + 2); 6 room^2 / (8192 ln 2) - 1.
    room = 2.0 ** (60 - 0.01 - bits - 2) - 2
    assert 6 * room**2 / DEGREE * E_LOG2 - 1 == pytest.approx(stated, rel=1e-2)
    assert NARROW.failure_bits(Capacity(20, bits - 20, 1)) == pytest.approx(stated, rel=1e-2)


def test_the_narrow_set_ends_at_49_bits_and_the_wide_at_58():
    for bits in range(59):
        capacity = Capacity(bits // 2, bits - bits // 2, 1)
        assert parameters_for(capacity) is (NARROW if bits <= 49 else WIDE)
    # The next one would not do: 2^-66.
    assert NARROW.failure_bits(Capacity(25, 25, 1)) < LEAST_FAILURE_BITS
    # Above, SEAL's plaintext moduli end, not the bound.
    assert WIDE.failure_bits(Capacity(30, 29, 1)) > LEAST_FAILURE_BITS


@pytest.mark.parametrize(
    "capacity", [Capacity(30, 29, 1), Capacity(20, 38, 2), Capacity(20, 20, 1 << 19)]
)
def test_wider_products_are_refused_with_the_hint(capacity):
    for refuses in (
        lambda: parameters_for(capacity),
        lambda: BfvScheme().generate(128, capacity, SystemEntropy()),
        lambda: BfvScheme().read_public(b"", 128, capacity),
    ):
        with pytest.raises(CryptoError, match=r"products of 59 bits .* holds 58") as caught:
            refuses()
        assert "smaller batches, or use paillier" in str(caught.value)


@pytest.mark.parametrize("parameters", SETS, ids=lambda each: each.name)
def test_primes_are_what_is_stated(parameters):
    assert sum(parameters.prime_bits) <= MOST_PRIME_BITS == 218
    primes = real_primes(parameters)
    assert tuple(prime.bit_length() for prime in primes) == parameters.prime_bits
    assert len(set(primes)) == len(primes)
    for prime in primes:
        assert prime % (2 * DEGREE) == 1
        assert pow(3, prime - 1, prime) == pow(5, prime - 1, prime) == 1
    # "Primes lie just below their power of two": by less than the 0.01 bits of the formulas.
    kept, dropped = primes[: len(parameters.kept)], primes[len(parameters.kept) : -1]
    assert sum(parameters.kept) - log2(prod(kept)) < 0.01
    assert sum(parameters.dropped) - log2(prod(dropped)) < 0.01


@pytest.mark.parametrize("bits", range(59))
def test_seal_takes_every_plaintext_modulus(bits):
    capacity = Capacity(0, bits, 1)
    parameters = parameters_for(capacity)
    modulus = parameters.plain_modulus(capacity)
    assert modulus == 2 ** (bits + 1) + 1
    assert Seal(parameters, modulus).plain_modulus == modulus


@pytest.mark.parametrize(
    ("shape", "failure", "leak"),
    [
        ("breast-cancer", 279_670, 74.19),
        ("digits", 279_670, 74.10),
        ("census-income", 1_087, 69.76),
        ("give-me-some-credit", 4_361, 71.77),
    ],
)
def test_the_papers_shapes(shape, failure, leak):
    """-log2 of the failure per entry, and of what Bob learns of X per answer."""
    entries, capacity = PAPER[shape]
    chosen = parameters_for(capacity)
    print(shape, chosen.failure_bits(capacity), chosen.leak_bits(capacity, entries))
    assert chosen is NARROW
    assert Layout.of(entries, capacity.terms).pieces == 1
    assert chosen.failure_bits(capacity) == pytest.approx(failure, rel=0.01)
    found = chosen.leak_bits(capacity, entries)
    assert found >= 60
    assert found == pytest.approx(leak, abs=0.01)
    dropped = prod(real_primes(chosen)[1:3])
    assert found <= -log2(entries * bound_on_noise(capacity, 1) / dropped)


@pytest.mark.parametrize(
    ("rows", "length"),
    [(30, 16), (90, 32), (81, 1024), (1024, 81), (500, 4096), (DEGREE, DEGREE), (50, 9000)],
)
def test_the_noise_is_bounded_for_all_pieces(rows, length):
    """A layout may cut a vector into more pieces than ``ceil(terms / N)``; each adds its noise."""
    capacity = Capacity(20, 20, length)
    pieces = Layout.of(rows, length).pieces
    chosen = parameters_for(capacity)
    assert chosen.noise(capacity, pieces) >= bound_on_noise(capacity, pieces)
    assert chosen.leak_bits(capacity, rows, pieces) < chosen.leak_bits(capacity, rows, 1) + 1e-9


@pytest.mark.parametrize(("rows", "fits"), [(4, True), (400, False)])
def test_a_matrix_whose_answer_would_tell_too_much_of_it_is_refused(rows, fits):
    """The bound is that of the answer as it is laid out: here 2^-41 and 2^-34."""
    capacity = Capacity(0, 56, 4)
    public = BfvScheme().generate(128, capacity, SystemEntropy()).public
    matrix = np.ones((rows, 4), dtype=np.int64)
    if fits:
        assert public.prepare(matrix).rows == rows
    else:
        with pytest.raises(CryptoError, match=r"hide its matrix to within 2\^-34 only"):
            public.prepare(matrix)


def test_twelve_deviations_are_beyond_2_to_the_minus_100():
    assert 12**2 / 2 * E_LOG2 - 1 > 100


def test_seals_errors_are_as_the_bound_takes_them():
    """Centred binomial of 42 tosses: variance 21/2, and never beyond 21."""
    weights = {k - 21: comb(42, k) for k in range(43)}
    assert sum(k * k * weight for k, weight in weights.items()) / 2**42 == 21 / 2
    # Close to the standard's Gaussian of 3.2: within a percent and a half.
    assert (21 / 2) ** 0.5 == pytest.approx(8 / (2 * pi) ** 0.5, rel=0.016)
