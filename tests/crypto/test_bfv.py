"""BFV: exact on every shape, strict about bytes, and silent about the matrix."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tenseal.sealapi as sealapi
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity, EncryptedAnswer, EncryptedVector
from taciturn.crypto.bfv.keys import BfvScheme, BfvSecretKey
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.parameters import DEGREE, LEAST_LEAK_BITS, STANDARD
from taciturn.crypto.bfv.seal import Seal
from taciturn.errors import CryptoError
from taciturn.rng import SystemEntropy
from tests.crypto.bfv_noise import (
    answer_bytes,
    first_primes,
    kept_primes,
    unpacked,
    vector_bytes,
    widths,
)
from tests.crypto.schemes import answered, exchange, ints, key_pair
from tests.expected import refused

COINS = SystemEntropy()
SMALL = Capacity(20, 20, 16)
LONG = Capacity(20, 16, 9000)
CAPACITIES = [
    SMALL,
    Capacity(20, 23, 32),
    Capacity(20, 18, 2000),
    Capacity(28, 19, 2000),
    Capacity(0, 0, 2000),
    Capacity(0, 42, 2000),
    Capacity(47, 0, 2000),
    LONG,
]


def bfv_key(capacity: Capacity, seed: int = 0) -> BfvSecretKey:
    secret, _ = key_pair("bfv", capacity, seed)
    assert isinstance(secret, BfvSecretKey)
    return secret


@pytest.fixture
def key() -> BfvSecretKey:
    return bfv_key(SMALL)


# Exactness


@st.composite
def problems(draw):
    """Shapes of up to some hundred thousand entries, with plain, extreme and empty ones."""
    capacity = draw(st.sampled_from(CAPACITIES))
    most = min(capacity.terms, draw(st.sampled_from([4, 40, 400, 2000, 9000])))
    length = draw(st.integers(1, most))
    rows = draw(st.integers(1, max(1, min(2000, 60_000 // length))))
    entropy = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    fill = draw(st.sampled_from(["uniform", "extreme", "largest", "small", "sparse", "zero-rows"]))

    def entries(bits: int, shape: tuple[int, ...]) -> IntArray:
        limit = 1 << bits
        if fill == "extreme":
            return limit * (2 * entropy.integers(0, 2, shape) - 1)
        if fill == "largest":
            return np.full(shape, limit * int(2 * entropy.integers(0, 2) - 1))
        if fill == "small":
            return entropy.integers(-1, 2, shape)
        return entropy.integers(-limit, limit, shape, endpoint=True)

    matrix = entries(capacity.matrix_bits, (rows, length))
    vector = entries(capacity.vector_bits, (length,))
    if fill == "sparse":
        matrix[entropy.random(matrix.shape) < 0.95] = 0
        vector[entropy.random(vector.shape) < 0.5] = 0
    if fill == "zero-rows":
        matrix[entropy.random(rows) < 0.8] = 0
    return capacity, matrix, vector, draw(st.booleans())


def check(problem: tuple[Capacity, IntArray, IntArray, bool]) -> None:
    capacity, matrix, vector, ahead = problem
    secret, public = key_pair("bfv", capacity)
    rows, length = matrix.shape
    pieces = Layout.for_shape(rows, length).pieces
    if STANDARD.leak_bits(capacity, rows, pieces) < LEAST_LEAK_BITS:
        # Beyond some thousand rows of the largest entries.
        with refused(CryptoError):
            public.prepare(matrix)
        return
    prepared, mask = public.prepare(matrix), public.draw_mask(len(matrix), COINS)
    if ahead:
        secret.stock(len(matrix), len(vector), COINS)
        public.stock(prepared, mask, COINS)
    encrypted = secret.encrypt(vector, len(matrix), COINS)
    answer = public.masked_product(prepared, encrypted, mask, COINS)
    product = public.unmask(secret.decrypt(answer, len(vector)), mask)
    # No sum exceeds 58 bits: int64 is exact.
    assert np.array_equal(product, np.einsum("ij,j->i", matrix, vector))


SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(SETTINGS, max_examples=25)
@given(problems())
def test_products_are_exact(problem):
    check(problem)


@pytest.mark.slow
@settings(SETTINGS, max_examples=10_000)
@given(problems())
def test_products_are_exact_on_ten_thousand_shapes(problem):
    check(problem)


@pytest.mark.parametrize(
    ("rows", "length"),
    [(1, DEGREE), (DEGREE, 1), (10_000, 1), (3, 9000), (81, 1024), (1024, 81), (600, 100)],
)
def test_extreme_shapes(rows, length):
    matrix = np.full((rows, length), 1 << LONG.matrix_bits)
    matrix[::3] *= -1
    # SEAL refuses products with a zero polynomial: whole pieces are zero here.
    matrix[rows // 2 + 1 :, length // 2 :] = 0
    check((LONG, matrix, np.full(length, -(1 << LONG.vector_bits)), False))


def test_zeros_take_as_many_products(monkeypatch):
    """How many of a table's columns are zeros is not told by the time that an answer takes."""
    secret, opened = key_pair("bfv", LONG)
    public: Any = opened
    evaluator, calls = public.server_ops.seal.evaluator, list[str]()

    class Counting:
        def __getattr__(self, name: str) -> Any:
            def call(*values: Any) -> Any:
                calls.append(name)
                return getattr(evaluator, name)(*values)

            return call

    monkeypatch.setattr(public.server_ops.seal, "evaluator", Counting())
    full = np.full((81, 1024), 1 << 16)
    vector = secret.encrypt(np.full(1024, 1 << 20), 81, COINS)
    counts = []
    for zeros in (0, 40, 81):
        matrix = full.copy()
        matrix[81 - zeros :] = 0
        calls.clear()
        public.masked_product(public.prepare(matrix), vector, public.draw_mask(81, COINS), COINS)
        counts.append(
            [calls.count(name) for name in ("transform_to_ntt_inplace", "multiply_plain")]
        )
    assert counts[0] == counts[1] == counts[2]
    assert min(counts[0]) > 0


# Encryptions of zero


@pytest.mark.parametrize("ahead", [True, False])
def test_no_encryption_of_zero_is_used_twice(key, ahead):
    """Equal vectors, matrices and masks: all that differs is what was drawn."""
    public, matrix = key.public, np.full((40, 16), 7)
    prepared, mask = public.prepare(matrix), public.draw_mask(40, COINS)
    seconds, seeds, firsts = set(), set(), set()
    for _ in range(4):
        if ahead:
            key.stock(40, 16, COINS)
            public.stock(prepared, mask, COINS)
        encrypted = key.encrypt(np.full(16, 9), 40, COINS)
        seeds.add(encrypted.data[-64:])
        for _ in range(2):
            answer = public.masked_product(prepared, encrypted, mask, COINS)
            (cipher,) = unpacked(key, answer, 16)
            seconds.add(cipher[1].tobytes())
            firsts.add(cipher[0].tobytes())
            assert set(key.decrypt(answer, 16)) == {
                (16 * 63 + value) % public.modulus for value in mask.values
            }
    assert len(seeds) == 4
    assert len(seconds) == len(firsts) == 8


def test_several_answers_have_several_zeros():
    key = bfv_key(LONG)
    mask = key.public.draw_mask(600, COINS)
    matrix = np.ones((600, 100), dtype=np.int64)
    answer = answered(key, key.public, matrix, np.ones(100, dtype=np.int64), mask, COINS)
    seconds = {cipher[1].tobytes() for cipher in unpacked(key, answer, 100)}
    assert len(seconds) == Layout.for_shape(600, 100).answers == 4


# The bytes


@pytest.mark.parametrize("capacity", [SMALL, Capacity(28, 19, 2000)], ids=["narrow", "wide"])
@pytest.mark.parametrize(("rows", "length"), [(30, 16), (1, 1), (7000, 16)])
def test_sizes_are_those_stated(capacity, rows, length):
    key = bfv_key(capacity)
    layout = Layout.for_shape(rows, length)
    encrypted = key.encrypt(np.ones(length, dtype=np.int64), rows, COINS)
    assert len(encrypted.data) == vector_bytes(key, layout.pieces)
    prepared = key.public.prepare(np.ones((rows, length), dtype=np.int64))
    answer = key.public.masked_product(
        prepared, encrypted, key.public.draw_mask(rows, COINS), COINS
    )
    assert len(answer.data) == answer_bytes(key, layout)
    if capacity is SMALL and rows == 30:
        # By hand: 21 bytes a coefficient and the seed; 13 bytes for N + 30 coefficients.
        assert len(encrypted.data) == 8192 * (8 + 5 + 8) + 64
        assert len(answer.data) == (8 + 5) * (8192 + 30)
    assert len(key.public.to_bytes()) == DEGREE * sum(widths(first_primes(key))) + 32
    # Of each first polynomial there are the entries' coefficients and no other ones.
    ciphers = unpacked(key, answer, length)
    sent = [np.count_nonzero(cipher[0].any(axis=0)) for cipher in ciphers]
    assert sum(sent) == rows


@pytest.mark.parametrize("capacity", [SMALL, Capacity(28, 19, 2000)], ids=["narrow", "wide"])
def test_seal_decrypts_our_encryptions(capacity):
    key = bfv_key(capacity)
    limit = 1 << capacity.vector_bits
    vector = ints(limit, -limit, 0, 1, -1, 12345)
    layout = Layout.for_shape(3, 6)
    (piece,) = key.public._pieces(key.encrypt(vector, 3, COINS), layout)
    # Alice computes with another plaintext modulus, which no ciphertext depends on.
    alice = key.public.server_ops.seal
    alice.evaluator.transform_from_ntt_inplace(piece)
    piece = key._seal.load_cipher(alice.polynomials(piece, 3), key._seal.first_id)
    plain = sealapi.Plaintext()
    key._client_ops._decryptor.decrypt(piece, plain)
    decrypted = [int(plain[at]) for at in range(plain.coeff_count())]
    assert decrypted == [value % key.public.modulus for value in vector.tolist()]
    # Fresh noise is a few bits: nearly all of q/t is left.
    bits = sum(prime.bit_length() for prime in first_primes(key)) - capacity.product_bits - 1
    assert bits - 12 <= key._client_ops._decryptor.invariant_noise_budget(piece) <= bits


def test_the_second_polynomial_is_the_seeds_as_seal_expands_it(key):
    """Two vectors with one seed have one second polynomial, two seeds have two."""
    layout = Layout.for_shape(1, 1)
    data = key.encrypt(ints(1), 1, COINS).data
    other = key.encrypt(ints(1), 1, COINS).data

    def second(data: bytes) -> bytes:
        (piece,) = key.public._pieces(EncryptedVector(data, 1), layout)
        return bytes(key._seal.polynomials(piece, 3)[1].tobytes())

    assert second(data) == second(other[:-64] + data[-64:])
    assert second(data) != second(other)


def spoiled(data: bytes, at: int, value: int, width: int) -> bytes:
    return data[:at] + value.to_bytes(width, "little") + data[at + width :]


@pytest.mark.parametrize("capacity", [SMALL, Capacity(28, 19, 2000)], ids=["narrow", "wide"])
@pytest.mark.parametrize("beyond", ["prime", "prime-plus-one", "all-ones"])
def test_coefficients_beyond_their_prime_are_refused(capacity, beyond):
    """At the first and the last place of every part, in vectors, answers and public keys."""
    key = bfv_key(capacity)
    public, mask = key.public, key.public.draw_mask(5, COINS)
    prepared = public.prepare(np.ones((5, 3), dtype=np.int64))
    vector = key.encrypt(ints(1, 2, 3), 5, COINS)
    answer = public.masked_product(prepared, vector, mask, COINS)

    def parts(primes: tuple[int, ...], counts: tuple[int, ...]) -> list[tuple[int, int, int]]:
        """(offset, value, width) of each spoiling."""
        spoilings, at = [], 0
        for prime, width in zip(primes, widths(primes), strict=True):
            top = (1 << 8 * width) - 1
            value = {"prime": prime, "prime-plus-one": prime + 1, "all-ones": top}[beyond]
            for count in counts:
                spoilings += [(at, value, width), (at + (count - 1) * width, value, width)]
                at += count * width
        return spoilings

    for spoil in parts(first_primes(key), (DEGREE,)):
        bad = replace(vector, data=spoiled(vector.data, *spoil))
        with refused(CryptoError):
            public.masked_product(prepared, bad, mask, COINS)
    for spoil in parts(kept_primes(key), (5, DEGREE)):
        bad_answer = replace(answer, data=spoiled(answer.data, *spoil))
        with refused(CryptoError):
            key.decrypt(bad_answer, 3)
    data = public.to_bytes()
    for spoil in parts(first_primes(key), (DEGREE,)):
        with refused(CryptoError):
            BfvScheme().read_public(spoiled(data, *spoil), 128, capacity)
    # A refusal leaves nothing behind: the key stays usable.
    assert public.unmask(key.decrypt(answer, 3), mask).tolist() == [6] * 5


def repeated(key: BfvSecretKey, rows: int, draw: Callable[[int], int]) -> bytes:
    """An answer of numbers that ``draw`` gives for a prime."""
    primes = kept_primes(key)
    return b"".join(
        draw(prime).to_bytes(width, "little")
        for prime, width in zip(primes, widths(primes), strict=True)
        for _ in range(rows + DEGREE)
    )


def test_any_well_formed_bytes_are_taken(key):
    """Zeros, which are no real ciphertext, the largest numbers, and noise: never an error."""
    public, mask = key.public, key.public.draw_mask(5, COINS)
    assert key.decrypt(EncryptedAnswer(repeated(key, 5, lambda _: 0), 5), 3) == (0,) * 5
    prepared = public.prepare(np.ones((5, 3), dtype=np.int64))
    zero = EncryptedVector(bytes(vector_bytes(key, 1)), 3)
    assert len(key.decrypt(public.masked_product(prepared, zero, mask, COINS), 3)) == 5
    entropy = np.random.default_rng(3)
    draws: list[Callable[[int], int]] = [
        lambda prime: prime - 1,
        lambda prime: int(entropy.integers(0, prime)),
    ]
    for draw in draws:
        masked = key.decrypt(EncryptedAnswer(repeated(key, 5, draw), 5), 3)
        assert len(masked) == 5
        assert all(0 <= entry < public.modulus for entry in masked)


def test_a_key_of_another_uniform_half_than_agreed_is_refused():
    agreed, other = COINS.token(32), COINS.token(32)
    key = BfvScheme().generate(128, SMALL, COINS, agreed)
    data = key.public.to_bytes()
    assert BfvScheme().read_public(data, 128, SMALL, agreed).to_bytes() == data
    for spoiled_key in (
        data[:-32] + other,
        BfvScheme().generate(128, SMALL, COINS).public.to_bytes(),
    ):
        with refused(CryptoError):
            BfvScheme().read_public(spoiled_key, 128, SMALL, agreed)


def test_a_kept_key_is_the_same_to_the_last_bit(key):
    again = BfvScheme().read_secret(key.to_bytes(), 128, SMALL)
    assert len(key.to_bytes()) == 64
    assert again.public.to_bytes() == key.public.to_bytes()
    vector = key.encrypt(ints(1, 2, 3), 5, COINS)
    mask = key.public.draw_mask(5, COINS)
    prepared = again.public.prepare(np.ones((5, 3), dtype=np.int64))
    answer = again.public.masked_product(prepared, vector, mask, COINS)
    assert again.public.unmask(again.decrypt(answer, 3), mask).tolist() == [6] * 5


def test_masks_are_uniform_below_the_modulus():
    """Each of 5 residues within six deviations of 4000 in 20,000: a false alarm in 10^8 runs."""
    values = bfv_key(Capacity(1, 0, 1)).public.draw_mask(20_000, COINS).values
    counts = np.bincount(values, minlength=5)
    assert len(counts) == 5
    assert np.abs(counts - 4000).max() < 6 * (20_000 * 0.2 * 0.8) ** 0.5


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")
def test_descriptors_are_closed_with_their_contexts():
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    # What others left in cycles would go at any moment, and its descriptors with it.
    gc.collect()
    before = opened()
    contexts = [Seal(STANDARD, (65537, 1 << 50)[at % 2]) for at in range(50)]
    assert opened() == before + 50
    contexts.clear()
    assert opened() == before
    for _ in range(5):
        made = BfvScheme().generate(128, SMALL, COINS)
        read = BfvScheme().read_public(made.public.to_bytes(), 128, SMALL)
        exchange(made, read, np.array([[3]]), ints(4), COINS)
    del made, read
    assert opened() == before
