"""Products number by number: exact, of one form, and what their noise tells, measured exactly."""

from __future__ import annotations

from math import log2, prod
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, SlotPublicKey, SlotScheme
from taciturn.crypto.bfv.modular import Grid, block_sums
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    LEAST_FAILURE_BITS,
    MARGIN,
    SLOT_MODULUS,
    SLOTS,
    flood_half,
    slot_failure_bits,
    slot_leak_bits,
    slot_noise,
)
from taciturn.crypto.bfv.seal import ByteReader
from taciturn.crypto.bfv.slot_encoder import SlotEncoder
from taciturn.crypto.bfv.slots import BfvSlots, BfvSlotSecretKey
from taciturn.crypto.clear import ClearSlots
from taciturn.crypto.trapdoor import looks_prime
from taciturn.errors import CryptoError
from taciturn.protocol.mutual import MOST_WAVES
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy
from tests.crypto.bfv_noise import Opened, first_primes, kept_primes
from tests.expected import refused

COINS = KeyedEntropy.from_seed(11)
FALSE_ALARM = 1e-4
KINDS: dict[str, tuple[SlotScheme, int]] = {"bfv": (BfvSlots(), 128), "clear": (ClearSlots(), 0)}


@pytest.fixture(scope="module")
def owner() -> BfvSlotSecretKey:
    key = BfvSlots().generate(128, COINS)
    assert isinstance(key, BfvSlotSecretKey)
    return key


def masks(count: int, seed: int = 5) -> IntArray:
    return KeyedEntropy.from_seed(seed).integers(SLOT_MODULUS, count).view(np.int64)


def test_the_modulus_is_a_prime_whose_ring_splits_and_that_lies_just_below_a_power_of_two():
    assert looks_prime(SLOT_MODULUS)
    assert SLOT_MODULUS % (2 * DEGREE) == 1
    assert 0 < 2**59 - SLOT_MODULUS < 2**18


def product(
    public: SlotPublicKey,
    table: IntArray,
    vector: EncryptedVector,
    hidden: IntArray,
    entropy: Entropy,
) -> EncryptedAnswer:
    """A masked sum of one product."""
    total = public.sum_of(len(table))
    total.add(table, vector)
    return total.masked(hidden, entropy)


EDGES = [1, -1, 2**31, -(2**31), 0, 12345]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 6, 900, DEGREE])
def test_products_are_exact_modulo_the_prime(kind, count):
    scheme, bits = KINDS[kind]
    key = scheme.generate(bits, COINS)
    public = scheme.read_public(key.public.to_bytes(), bits)
    generator = np.random.default_rng(count)
    left = generator.integers(-(2**31), 2**31, count, endpoint=True)
    right = generator.integers(-(2**31), 2**31, count, endpoint=True)
    left[: len(EDGES)], right[: len(EDGES)] = EDGES[:count], EDGES[::-1][:count]
    hidden = masks(count)
    hidden[-1:] = SLOT_MODULUS - 1
    answer = product(public, right, key.encrypt(left, COINS), hidden, COINS)
    expected = [
        (int(one) * int(two) + int(mask)) % SLOT_MODULUS
        for one, two, mask in zip(left, right, hidden, strict=True)
    ]
    assert key.decrypt(answer).tolist() == expected
    again = scheme.read_secret(key.to_bytes(), bits)
    assert again.decrypt(answer).tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_of_many_products_is_exact_modulo_the_prime(kind):
    """As many as the sigmoid may have, at the largest sizes, with a table of zeros among them."""
    scheme, bits = KINDS[kind]
    key, generator = scheme.generate(bits, COINS), np.random.default_rng(4)
    left, right = generator.integers(-(2**31), 2**31, (2, 2 * MOST_WAVES, 70), endpoint=True)
    left[0], right[0], right[1] = 2**31, -(2**31), 0
    total, hidden = key.public.sum_of(70), masks(70)
    for one, two in zip(left, right, strict=True):
        total.add(two, key.encrypt(one, COINS))
    products = left.astype(object) * right.astype(object)
    expected = (products.sum(axis=0) + hidden.astype(object)) % SLOT_MODULUS
    assert key.decrypt(total.masked(hidden, COINS)).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("count", "slots"), [(1, 64), (64, 64), (65, 128), (896, 1024), (4097, 8192), (DEGREE, 8192)]
)
def test_messages_hold_the_next_power_of_two(owner, count, slots):
    """25 bytes a slot and the seed; 13 bytes a slot, and as many for N coefficients."""
    for value in (7, -(2**31)):
        values = np.full(count, value, dtype=np.int64)
        vector = owner.encrypt(values, COINS)
        answer = product(owner.public, values, vector, masks(count), COINS)
        assert (len(vector.data), len(answer.data)) == (25 * slots + 64, 13 * (slots + DEGREE))


@pytest.mark.parametrize("slots", [64, 1024, DEGREE])
def test_a_coder_s_polynomials_are_multiplied_number_by_number(slots):
    encoder, generator = SlotEncoder(slots), np.random.default_rng(slots)
    one, two = (generator.integers(0, SLOT_MODULUS, slots, dtype=np.uint64) for _ in range(2))
    assert encoder.numbers(encoder.polynomial(one)).tolist() == one.tolist()
    sums = (one + two) % np.uint64(SLOT_MODULUS)
    added = (encoder.polynomial(one) + encoder.polynomial(two)) % np.uint64(SLOT_MODULUS)
    assert encoder.polynomial(sums).tolist() == added.tolist()
    assert len(range(DEGREE)[encoder.places]) == slots


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_refused(kind):
    scheme, bits = KINDS[kind]
    key = scheme.generate(bits, COINS)
    one = np.ones(1, dtype=np.int64)
    vector = key.encrypt(one, COINS)
    wrongs: tuple[Any, ...] = (
        np.array([2**31 + 1]),
        np.ones(DEGREE + 1, dtype=np.int64),
        one[:0],
        np.ones(2),
    )
    for wrong in wrongs:
        with pytest.raises(CryptoError):
            key.encrypt(wrong, COINS)
        with pytest.raises(CryptoError):
            product(key.public, wrong, vector, masks(max(len(wrong), 1)), COINS)
    with pytest.raises(CryptoError):
        product(key.public, np.ones(2, dtype=np.int64), vector, masks(2), COINS)
    with pytest.raises(CryptoError):
        product(key.public, one, vector, masks(2), COINS)
    short = EncryptedVector(vector.data[:-1], 1)
    with pytest.raises(CryptoError):
        product(key.public, one, short, masks(1), COINS)
    answer = product(key.public, one, vector, masks(1), COINS)
    with pytest.raises(CryptoError):
        key.decrypt(EncryptedAnswer(answer.data + b"0", 1))
    with pytest.raises(CryptoError):
        scheme.read_public(key.public.to_bytes() + b"0", bits)


def test_a_coefficient_beyond_its_prime_is_refused(owner):
    one = np.ones(1, dtype=np.int64)
    vector = owner.encrypt(one, COINS)
    beyond = EncryptedVector(b"\xff" * 8 + vector.data[8:], 1)
    with refused(CryptoError):
        product(owner.public, one, beyond, masks(1), COINS)
    answer = product(owner.public, one, vector, masks(1), COINS)
    with refused(CryptoError):
        owner.decrypt(EncryptedAnswer(b"\xff" * 8 + answer.data[8:], 1))


def test_sums_of_blocks_are_exact_modulo_the_prime():
    words = KeyedEntropy.from_seed(2).integers(SLOT_MODULUS, 40 * 700).reshape(40, 700)
    words[0] = SLOT_MODULUS - 1
    expected = [sum(row) % SLOT_MODULUS for row in words.tolist()]
    assert block_sums(words, SLOT_MODULUS).tolist() == expected


def test_random_rounding_goes_up_or_down_and_has_the_right_mean():
    primes = BfvSlots()._seal(128).primes[:1]
    grid, count = Grid(primes, SLOT_MODULUS), 20_000
    message = np.full(count, 123_456_789_012_345_678, dtype=np.uint64)
    offsets = KeyedEntropy.from_seed(3).integers(SLOT_MODULUS, count)
    exact = primes[0] * 123_456_789_012_345_678
    points = grid.at_random(message, offsets)[0]
    below = exact // SLOT_MODULUS
    assert set(points.tolist()) == {below, below + 1}
    share = (exact % SLOT_MODULUS) / SLOT_MODULUS
    # Five standard deviations of a proportion.
    assert abs(float((points == below + 1).mean()) - share) < 5 * 0.5 / np.sqrt(count)


# --- noise ------------------------------------------------------------------------------------


def dense(value: int) -> IntArray:
    """A table whose polynomial has large coefficients: numbers of many sizes up to a value."""
    generator = np.random.default_rng(9)
    return generator.integers(-value, value, DEGREE, endpoint=True)


def bare_noise(bob: Opened, table: IntArray, values: IntArray, products: int) -> FloatArray:
    """The noise of a sum of products before cover and switch."""
    key: Any = bob.key
    total = key.public.sum_of(len(table))
    for _ in range(products):
        total.add(table, key.encrypt(values, SystemEntropy()))
    key._seal.evaluator.transform_from_ntt_inplace(total._sum)
    primes = first_primes(bob.key)
    _, noise = bob.noise(key._seal.polynomials(total._sum, len(primes)), primes, np.arange(DEGREE))
    return noise


def answers_noise(bob: Opened, table: IntArray, values: IntArray) -> FloatArray:
    """The noise of a whole answer, as its owner sees it."""
    key: Any = bob.key
    vector = key.encrypt(values, SystemEntropy())
    answer = product(key.public, table, vector, masks(len(table)), SystemEntropy())
    primes, parts = kept_primes(bob.key), ByteReader(answer.data)
    cipher = np.empty((2, len(primes), DEGREE), dtype=np.uint64)
    for at, prime in enumerate(primes):
        cipher[0, at] = parts.words(DEGREE, prime)
        cipher[1, at] = parts.words(DEGREE, prime)
    return bob.noise(cipher, primes, np.arange(DEGREE))[1]


@pytest.fixture(scope="module")
def bob(owner: BfvSlotSecretKey) -> Opened:
    key: Any = owner
    return Opened.of(key)


@pytest.mark.parametrize("products", [1, 9])
def test_the_noise_of_a_sum_is_within_its_bound_and_not_far_below(bob, products):
    noise = np.abs(bare_noise(bob, dense(2**31), dense(1000), products))
    assert noise.mean() < slot_noise(products)
    assert noise.max() < slot_noise(products, 12.0)
    assert noise.mean() > slot_noise(products) / 4


def test_an_answer_s_noise_is_uniform_and_the_same_for_small_tables_and_large(bob):
    primes = kept_primes(bob.key)
    half = prod(primes) / SLOT_MODULUS / 2
    small, large = (
        answers_noise(bob, table, dense(1000)) / half for table in (dense(1), dense(2**31))
    )
    for noise in (small, large):
        assert np.abs(noise).max() < 1
        assert kstest(noise, "uniform", args=(-1, 2)).pvalue > FALSE_ALARM
    assert ks_2samp(small, large).pvalue > FALSE_ALARM


def test_without_the_flood_the_noise_would_tell(bob, monkeypatch):
    """The twin of the last test: it must be noticed that nothing covers the product."""
    key: Any = bob.key
    monkeypatch.setattr(
        key.public.server_ops, "_flood", lambda count, _: np.zeros((4, count), dtype=np.uint64)
    )
    half = prod(kept_primes(bob.key)) / SLOT_MODULUS / 2
    noise = answers_noise(bob, dense(2**31), dense(1000)) / half
    assert kstest(noise, "uniform", args=(-1, 2)).pvalue < FALSE_ALARM


def test_the_bounds_are_those_that_are_stated():
    primes = BfvSlots()._seal(128).primes
    whole, dropped = prod(primes[:4]), prod(primes[2:4])
    half = flood_half(primes[:4], SLOT_MODULUS, 2)
    assert half == whole // (2 * SLOT_MODULUS) - MARGIN * dropped - (whole // SLOT_MODULUS >> 56)
    assert 2 * half >= 2 * SLOTS.flood_at(SLOT_MODULUS) * 0.999
    # Every coefficient of an answer counts.
    assert slot_leak_bits(1) == pytest.approx(log2(2 * half) - 13 - log2(slot_noise()), abs=0.05)
    # Variances add, not sizes: as many answers of a product each would tell 32 times as much.
    assert slot_leak_bits(1024) == pytest.approx(slot_leak_bits(1) - 5)
    assert BfvSlots().leak_bits(7) == slot_leak_bits(7)
    assert slot_failure_bits(256) > LEAST_FAILURE_BITS
    assert sum(SLOTS.prime_bits) <= 218
