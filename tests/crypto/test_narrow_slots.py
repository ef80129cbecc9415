"""Products number by number modulo a small prime: exact, and uniform whatever Bob sent."""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, SlotScheme
from taciturn.crypto.bfv.modular import Flood, Grid, Multiplier
from taciturn.crypto.bfv.narrow_slots import NarrowSecretKey, NarrowSlots
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    NARROW,
    NARROW_MODULI,
    flood_half,
    narrow_modulus,
    narrow_right_bits,
    slot_noise,
)
from taciturn.crypto.bfv.seal import ByteReader
from taciturn.crypto.bfv.slots import BfvSlots
from taciturn.crypto.bfv.transform import Transform
from taciturn.crypto.clear import ClearSlots
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy, SystemEntropy
from tests.crypto.bfv_noise import Opened, first_primes
from tests.expected import refused

COINS = KeyedEntropy.from_seed(11)
FALSE_ALARM = 1e-4
PRIME = 786_433


@pytest.fixture(scope="module")
def owner() -> NarrowSecretKey:
    key = NarrowSlots(PRIME).generate(128, COINS)
    assert isinstance(key, NarrowSecretKey)
    return key


def masks(count: int, modulus: int = PRIME) -> IntArray:
    return KeyedEntropy.from_seed(5).integers(modulus, count).view(np.int64)


def test_the_primes_split_the_ring_and_are_none_of_the_ciphertext_s():
    for prime in NARROW_MODULI:
        assert prime % (2 * DEGREE) == 1
        assert all(prime % divisor for divisor in range(2, 2_020))
        assert prime not in NarrowSlots(prime)._seal(128).primes
    assert sum(NARROW.prime_bits) <= 218


@pytest.mark.parametrize("modulus", NARROW_MODULI)
def test_a_transform_takes_a_polynomial_s_values_at_the_odd_powers_of_a_root(modulus):
    transform, generator = Transform(modulus), np.random.default_rng(modulus)
    one, two = generator.integers(0, modulus, (2, DEGREE))
    one[:2] = modulus - 1, 0
    coefficients = transform.polynomial(one)
    assert transform.numbers(coefficients).tolist() == one.tolist()
    # x itself has the powers of a root of order 2N as its numbers, all different.
    identity = np.zeros(DEGREE, dtype=np.uint64)
    identity[1] = 1
    roots = transform.numbers(identity)
    assert len(set(roots.tolist())) == DEGREE
    for at in (0, 1, 4_095, DEGREE - 1):
        root, value = int(roots[at]), 0
        assert pow(root, DEGREE, modulus) == modulus - 1
        for coefficient in reversed(coefficients.tolist()):
            value = (value * root + coefficient) % modulus
        assert value == one[at]
    # Shifting a polynomial once is a product with x, number by number; the last one comes back.
    shifted = np.roll(coefficients, 1)
    shifted[0] = (modulus - int(shifted[0])) % modulus
    expected = [int(a) * int(b) % modulus for a, b in zip(one, roots, strict=True)]
    assert transform.numbers(shifted).tolist() == expected
    assert transform.polynomial(two - modulus).tolist() == transform.polynomial(two).tolist()


def test_products_with_constants_are_exact():
    prime = NarrowSlots(PRIME)._seal(128).primes[0]
    one, two = (KeyedEntropy.from_seed(seed).integers(prime, 500) for seed in (1, 2))
    one[:2] = two[:2] = prime - 1, 0
    expected = [int(a) * int(b) % prime for a, b in zip(one, two, strict=True)]
    assert Multiplier(one, prime)(two).tolist() == expected


KINDS: dict[str, tuple[Callable[[int], SlotScheme], int]] = {
    "bfv": (NarrowSlots, 128),
    "clear": (ClearSlots, 0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("modulus", [NARROW_MODULI[0], PRIME, NARROW_MODULI[-1]])
@pytest.mark.parametrize("count", [1, 900, DEGREE])
def test_sums_of_products_are_exact_modulo_the_prime(kind, modulus, count):
    make, bits = KINDS[kind]
    scheme = make(modulus)
    key = scheme.generate(bits, COINS)
    public = scheme.read_public(key.public.to_bytes(), bits)
    generator, half = np.random.default_rng(count), modulus // 2
    left, right = generator.integers(-half, half, (2, 4, count), endpoint=True)
    left[0], right[0], right[1] = half, -half, 0
    hidden, total = masks(count, modulus), public.sum_of(count)
    for one, two in zip(left, right, strict=True):
        total.add(two, key.encrypt(one, COINS))
    answer = total.masked(hidden, COINS)
    expected = ((left * right % modulus).sum(axis=0) + hidden) % modulus
    assert key.decrypt(answer).tolist() == expected.tolist()
    again = scheme.read_secret(key.to_bytes(), bits)
    assert again.decrypt(answer).tolist() == expected.tolist()


def test_messages_have_twelve_bytes_a_slot(owner):
    for count in (1, DEGREE):
        values = np.full(count, -7, dtype=np.int64)
        vector, total = owner.encrypt(values, COINS), owner.public.sum_of(count)
        total.add(values, vector)
        assert len(vector.data) == 12 * DEGREE + 32
        assert len(total.masked(masks(count), COINS).data) == 24 * DEGREE


def test_what_does_not_fit_is_refused(owner):
    one = np.ones(1, dtype=np.int64)
    vector = owner.encrypt(one, COINS)
    wrongs: tuple[Any, ...] = (
        np.array([PRIME // 2 + 1]),
        np.ones(DEGREE + 1, dtype=np.int64),
        one[:0],
        np.ones(2),
    )
    for wrong in wrongs:
        with refused(CryptoError):
            owner.encrypt(wrong, COINS)
        with refused(CryptoError):
            owner.public.sum_of(1).add(wrong, vector)
    for length in (0, DEGREE + 1):
        with refused(CryptoError):
            owner.public.sum_of(length)
    for data in (vector.data[:-1], b"\xff" * 6 + vector.data[6:]):
        with refused(CryptoError):
            owner.public.sum_of(1).add(one, EncryptedVector(data, 1))
    with refused(CryptoError):
        owner.public.sum_of(1).masked(masks(2), COINS)
    answer = owner.public.sum_of(1).masked(masks(1), COINS)
    with refused(CryptoError):
        owner.decrypt(EncryptedAnswer(b"\xff" * 6 + answer.data[6:], 1))
    with refused(CryptoError):
        NarrowSlots(PRIME).read_public(owner.public.to_bytes(), 128, seed=bytes(32))
    assert "hidden" in repr(owner)


# --- noise, and what an answer tells ----------------------------------------------------------


def dense(value: int) -> IntArray:
    return np.random.default_rng(9).integers(-value, value, DEGREE, endpoint=True)


@pytest.fixture(scope="module")
def bob(owner: NarrowSecretKey) -> Opened:
    key: Any = owner
    return Opened.of(key)


def bare_noise(bob: Opened, products: int) -> FloatArray:
    """The noise of a sum of products before it is masked."""
    key: Any = bob.key
    total = key.public.sum_of(DEGREE)
    for _ in range(products):
        total.add(dense(PRIME // 2), key.encrypt(dense(1000), SystemEntropy()))
    seal = key.public.seal
    seal.evaluator.transform_from_ntt_inplace(total._sum)
    primes = first_primes(bob.key)
    polynomials = seal.polynomials(total._sum, len(primes))
    return bob.noise(polynomials, primes, np.arange(DEGREE))[1]


@pytest.mark.parametrize("products", [1, 9])
def test_the_noise_of_a_sum_is_within_its_bound_and_not_far_below(bob, products):
    noise, bound = np.abs(bare_noise(bob, products)), slot_noise(products, modulus=PRIME)
    assert bound / 4 < noise.mean() < bound
    assert noise.max() < slot_noise(products, 12.0, modulus=PRIME)


def test_the_stated_chance_is_that_of_all_coefficients_of_all_answers():
    primes = NarrowSlots(PRIME)._seal(128).primes[:2]
    gap = prod(primes) / PRIME
    for answers in ([42], [42] * 125, [5] * 3000):
        wrong = sum(DEGREE * slot_noise(one, modulus=PRIME) / gap for one in answers)
        assert narrow_right_bits(PRIME, answers) == pytest.approx(-log2(wrong), abs=0.05)


def test_the_prime_follows_from_the_answers_and_too_many_are_refused():
    few, many = [42] * 125, [42] * 3_075
    assert BfvSlots().narrow(few).modulus == ClearSlots().narrow(few).modulus == PRIME
    chosen = narrow_modulus(many)
    assert chosen < PRIME
    assert narrow_right_bits(chosen, many) >= 25
    larger = NARROW_MODULI[NARROW_MODULI.index(chosen) + 1]
    assert narrow_right_bits(larger, many) < 25
    with refused(CryptoError):
        BfvSlots().narrow([42] * 1_000_000)


@pytest.mark.parametrize(("primes", "modulus"), [((10_007,), 7), ((101, 103), 13)])
def test_masks_and_flood_fill_a_small_ring_and_an_error_moves_as_many_as_stated(primes, modulus):
    """Every mask with every number of the flood: each residue once, but for less than 2 t."""
    whole = prod(primes)
    half = flood_half(primes, modulus, dropped=0)
    points = Grid(primes, modulus)(np.arange(modulus))
    if len(primes) == 1:
        grid = points[0].astype(np.int64)
    else:
        every = np.arange(whole)
        grid = np.array(
            [every[(every % primes[0] == a) & (every % primes[1] == b)][0] for a, b in points.T]
        )
    flood = np.arange(-half, half)
    masked = (grid[:, None] + flood) % whole
    counts = np.bincount(masked.reshape(-1), minlength=whole)
    assert np.abs(counts - 1).sum() <= 2 * modulus
    for error in (-40, -1, 0, 3, 55):
        decrypted = np.rint((masked + error) * modulus / whole).astype(np.int64) % modulus
        wrong = int((decrypted != np.arange(modulus)[:, None]).sum())
        assert wrong <= modulus * (abs(error) + 1)
        assert wrong >= modulus * (abs(error) - 2)


@pytest.mark.parametrize("kind", ["as prescribed", "below the grid", "zeros", "a key of ones"])
def test_the_first_polynomial_is_uniform_whatever_bob_sent(owner, kind):
    """The flood's own draws: 128 answers to one vector of Bob's choice, a coefficient's values."""
    scheme, generator = NarrowSlots(PRIME), np.random.default_rng(3)
    primes = scheme._seal(128).primes[:2]
    vector, public = owner.encrypt(dense(1000), COINS), owner.public
    if kind == "below the grid":
        # A message of 1 in place of q/t, without error, and nothing of a key.
        words = np.ones((2, DEGREE), dtype="<u8").view(np.uint8).reshape(2, DEGREE, 8)[:, :, :6]
        vector = EncryptedVector(words.tobytes() + bytes(32), DEGREE)
    elif kind == "zeros":
        vector = EncryptedVector(bytes(12 * DEGREE + 32), DEGREE)
    elif kind == "a key of ones":
        ones = np.ones((2, DEGREE), dtype="<u8").view(np.uint8).reshape(2, DEGREE, 8)[:, :, :6]
        public = scheme.read_public(ones.tobytes() + bytes(32), 128)
    table, drawn = generator.integers(0, 2, DEGREE), [list[float](), list[float]()]
    for seed in range(8):
        coins = KeyedEntropy.from_seed(seed)
        total = public.sum_of(DEGREE)
        total.add(table, vector)
        hidden = coins.integers(PRIME, DEGREE).view(np.int64)
        parts = ByteReader(total.masked(hidden, coins).data)
        for at, prime in enumerate(primes):
            drawn[at] += (parts.words(DEGREE, prime)[::64] / prime).tolist()
            parts.words(DEGREE, prime)
    for values in drawn:
        assert kstest(values, "uniform").pvalue > FALSE_ALARM


def test_a_flood_of_half_a_gap_has_no_room_beside_it():
    primes = NarrowSlots(PRIME)._seal(128).primes[:2]
    half = flood_half(primes, PRIME, dropped=0)
    assert prod(primes) - 2 * half * PRIME < 2 * PRIME
    drawn = Flood(primes, half)(4_000, KeyedEntropy.from_seed(1))
    # What both residues say together, as a part of the gap: evenly spread over all of it.
    inverse = pow(primes[0], -1, primes[1])
    whole = [int(a) + primes[0] * ((int(b) - int(a)) * inverse % primes[1]) for a, b in drawn.T]
    spread = [(one + half) % prod(primes) / (2 * half) for one in whole]
    assert max(spread) < 1.0
    assert kstest(spread, "uniform").pvalue > FALSE_ALARM
