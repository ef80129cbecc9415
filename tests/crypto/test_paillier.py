"""Paillier: its numbers, its structure checks and what it must not show."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, lcm

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

from taciturn.crypto.base import Capacity, EncryptedAnswer, EncryptedVector
from taciturn.crypto.paillier import PaillierScheme, PaillierSecretKey
from taciturn.crypto.trapdoor import Trapdoor, suitable
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy, SystemEntropy
from tests.crypto.schemes import SMALL, answered, exchange, ints, oracle
from tests.expected import refused

CAPACITY = Capacity(24, 24, 8)
P, Q = 11, 17
N = P * Q


@pytest.fixture(scope="module")
def small_key():
    return PaillierScheme(key_bits=(SMALL,)).generate(SMALL, CAPACITY, KeyedEntropy.from_seed(11))


def factors(key: PaillierSecretKey) -> tuple[int, int]:
    trapdoor = key._trapdoor
    return int(trapdoor._p.prime), int(trapdoor._q.prime)


# Real sizes


@pytest.mark.parametrize(
    ("bits", "slots"), [pytest.param(2048, 17, marks=pytest.mark.slow), (3072, 26)]
)
def test_real_keys(bits, slots):
    scheme, entropy = PaillierScheme(), KeyedEntropy.from_seed(bits)
    secret = scheme.generate(bits, CAPACITY, entropy)
    public = scheme.read_public(secret.public.to_bytes(), bits, CAPACITY)
    p, q = factors(secret)
    assert public.n == p * q
    assert public.n.bit_length() == bits
    assert p.bit_length() == q.bit_length() == bits // 2
    assert abs(p - q).bit_length() > bits // 2 - 100
    assert gmpy2.is_prime(p)
    assert gmpy2.is_prime(q)
    assert public.packing.slots == slots

    matrix = np.array([[entropy.below(1 << 25) - (1 << 24) for _ in range(3)] for _ in range(30)])
    vector = ints(1 << 24, -(1 << 24), 12345)
    assert exchange(secret, public, matrix, vector, entropy).tolist() == oracle(matrix, vector)
    mask = public.draw_mask(30, entropy)
    answer = answered(secret, public, matrix, vector, mask, entropy)
    assert len(answer.data) == 2 * bits // 4


def test_schemes_with_small_keys_say_so():
    assert not PaillierScheme(key_bits=(3072, 512)).protects
    assert PaillierScheme(key_bits=(512,)).name != PaillierScheme().name
    for sizes in ((), (0,), (2050,)):
        with pytest.raises(CryptoError):
            PaillierScheme(key_bits=sizes)


def test_capacity_that_does_not_fit_is_refused_before_primes_are_searched():
    class NoEntropy(SystemEntropy):
        def token(self, size):
            raise AssertionError("drew")

    with refused(CryptoError):
        PaillierScheme(key_bits=(128,)).generate(128, Capacity(31, 31, 1), NoEntropy())


# Known answers with a tiny key


def test_every_message_by_the_textbook_formula_tiny_key():
    trapdoor = Trapdoor.from_primes(mpz(P), mpz(Q))
    carmichael, square = lcm(P - 1, Q - 1), N * N
    mu = pow((pow(N + 1, carmichael, square) - 1) // N, -1, N)
    for message in range(N):
        r = next(r for r in range(message % 7 + 2, N) if gcd(r, N) == 1)
        cipher = pow(N + 1, message, square) * pow(r, N, square) % square
        assert trapdoor.encrypt(message, mpz(pow(r, N, square))) == cipher
        assert (pow(cipher, carmichael, square) - 1) // N * mu % N == message
        assert trapdoor.decrypt([mpz(cipher)]) == [message]
    assert trapdoor.encrypt(-3, mpz(1)) == trapdoor.encrypt(N - 3, mpz(1))


@pytest.mark.parametrize(("p", "q"), [(11, 17), (17, 11), (5, 7), (13, 31)])
def test_owner_obfuscators_are_exactly_the_nth_residues_tiny_key(p, q):
    trapdoor, n = Trapdoor.from_primes(mpz(p), mpz(q)), p * q
    drawn = [int(trapdoor.obfuscator(mpz(x), mpz(y))) for x in range(1, p) for y in range(1, q)]
    residues = {pow(r, n, n * n) for r in range(1, n) if gcd(r, n) == 1}
    # Equal sets and no repetition: uniform (x, y) gives the uniform distribution.
    assert set(drawn) == residues
    assert len(drawn) == len(residues)


def test_drawn_obfuscators_reach_every_residue_tiny_key():
    trapdoor, entropy = Trapdoor.from_primes(mpz(5), mpz(7)), KeyedEntropy.from_seed(1)
    drawn = {int(trapdoor.obfuscator(*trapdoor.draw_seed(entropy))) for _ in range(1000)}
    # 24 residues; all seen but with probability 24 * (23/24)^1000 < 10^-17.
    assert drawn == {pow(r, 35, 35 * 35) for r in range(1, 35) if gcd(r, 35) == 1}


def test_unsuitable_primes():
    assert suitable(mpz(61), mpz(37))
    assert not suitable(mpz(61), mpz(61))
    assert not suitable(mpz(61), mpz(59))  # Too close.
    assert not suitable(mpz(29), mpz(59))  # 29 divides 58.


# Randomness


def test_rerandomising_multiplies_by_an_nth_residue(small_key):
    entropy = KeyedEntropy.from_seed(2)
    public = small_key.public
    vector, matrix = small_key.encrypt(ints(7), 1, entropy), public.prepare(np.array([[5]]))
    mask = public.draw_mask(1, entropy)
    (c,) = public.read_elements(vector.data, 1)
    shift = mask.values[0] + (1 << CAPACITY.product_bits)
    plain = gmpy2.powmod(c, 5, public.square) * (1 + shift * public.n) % public.square
    (answer,) = public.read_elements(public.masked_product(matrix, vector, mask, entropy).data, 1)
    ratio = answer * gmpy2.invert(plain, public.square) % public.square
    p, q = factors(small_key)
    assert ratio != 1
    assert gmpy2.powmod(ratio, (p - 1) * (q - 1), public.square) == 1


def test_masks_have_64_bits_to_spare_and_slots_never_carry(small_key):
    public = small_key.public
    product_bits = CAPACITY.product_bits
    bounds = []

    class Recorder(SystemEntropy):
        def below(self, bound):
            bounds.append(bound)
            return bound - 1  # The largest mask.

    mask = public.draw_mask(6, Recorder())
    assert bounds == [1 << (product_bits + 1 + 64)] * 6
    # Two products differ by at most 2^(product_bits + 1): the distance of their masked slots.
    assert (1 << (product_bits + 1)) / bounds[0] == 2.0**-64
    assert public.modulus == 1 << (product_bits + 66)

    entropy = SystemEntropy()
    matrix = np.full((6, 8), 1 << 24)
    matrix[1::2] *= -1
    vector = np.full(8, 1 << 24)
    answer = answered(small_key, public, matrix, vector, mask, entropy)
    assert public.unmask(small_key.decrypt(answer, 8), mask).tolist() == oracle(matrix, vector)


# What is made ahead


def test_alices_obfuscators_are_the_same_ahead_or_not(small_key):
    """Masks and answers of a run that was seeded do not depend on when the work was done."""
    public = small_key.public
    encrypted = small_key.encrypt(ints(7, -8), 5, SystemEntropy())
    prepared = public.prepare(np.arange(10).reshape(5, 2))
    mask = public.draw_mask(5, SystemEntropy())
    answers = []
    for ahead in (False, True):
        entropy = KeyedEntropy.from_seed(6)
        if ahead:
            public.stock(prepared, mask, entropy)
        answers.append(public.masked_product(prepared, encrypted, mask, entropy))
    assert answers[0] == answers[1]


# Keys and elements from a stranger


@pytest.mark.parametrize(
    "element",
    [
        pytest.param(lambda n, p: 0, id="zero"),
        pytest.param(lambda n, p: n * n, id="n-squared"),
        pytest.param(lambda n, p: n * n + 1, id="beyond"),
        pytest.param(lambda n, p: n, id="n"),
        pytest.param(lambda n, p: n * 5, id="multiple-of-n"),
        pytest.param(lambda n, p: p, id="factor"),
        pytest.param(lambda n, p: (1 << (2 * SMALL)) - 1, id="all-ones"),
    ],
)
def test_elements_out_of_the_group_are_refused(small_key, element):
    n, (p, _) = int(small_key.public.n), factors(small_key)
    entropy = SystemEntropy()
    bad = element(n, p).to_bytes(SMALL // 4, "big")
    good = small_key.encrypt(ints(1), 1, entropy).data
    matrix = small_key.public.prepare(np.array([[1, 1]]))
    for data in (bad + good, good + bad):
        mask = small_key.public.draw_mask(1, entropy)
        with refused(CryptoError):
            small_key.public.masked_product(matrix, EncryptedVector(data, 2), mask, entropy)
    with refused(CryptoError):
        small_key.decrypt(EncryptedAnswer(bad, 1), 1)


def test_any_group_element_decrypts(small_key):
    entropy = KeyedEntropy.from_seed(4)
    square = int(small_key.public.square)
    for element in [1, square - 1, *(1 + entropy.below(square - 1) for _ in range(50))]:
        residues = small_key.decrypt(EncryptedAnswer(element.to_bytes(SMALL // 4, "big"), 2), 1)
        assert len(residues) == 2
        assert all(0 <= residue < small_key.public.modulus for residue in residues)


# Two products of primes: one has the agreed size, and one is a bit short of it.
GOOD = int(gmpy2.next_prime(3 << 254) * gmpy2.next_prime((3 << 254) + (1 << 200)))
SHORT = int(gmpy2.next_prime(3 << 254) * gmpy2.next_prime(1 << 255))


def small_modulus(make: Callable[[], int]) -> bytes:
    """A number of exactly 512 bits, as bytes."""
    number = int(make())
    assert number.bit_length() == SMALL
    return number.to_bytes(SMALL // 8, "big")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes(SMALL // 8), id="zero"),
        pytest.param(b"\xff" * (SMALL // 8 - 1) + b"\xfe", id="even"),
        pytest.param(SHORT.to_bytes(SMALL // 8, "big"), id="a-bit-short"),
        pytest.param(b"\x00" + GOOD.to_bytes(SMALL // 8, "big"), id="a-zero-in-front"),
        pytest.param(b"\xff" * (SMALL // 8), id="small-factors"),
        pytest.param(small_modulus(lambda: gmpy2.next_prime(1 << 511)), id="prime"),
        pytest.param(small_modulus(lambda: gmpy2.next_prime(3 << 254) ** 2), id="square"),
        pytest.param(
            small_modulus(lambda: gmpy2.next_prime((1 << 128) - 1000) ** 4),
            id="fourth-power",
        ),
    ],
)
def test_nonsense_public_keys_are_refused(data):
    with refused(CryptoError):
        PaillierScheme(key_bits=(SMALL,)).read_public(data, SMALL, CAPACITY)


# Secrets


def test_a_secret_key_of_another_size_is_refused(small_key):
    larger = PaillierScheme(key_bits=(2 * SMALL,))
    with refused(CryptoError, names=2 * SMALL):
        larger.read_secret(small_key.to_bytes(), 2 * SMALL, CAPACITY)


def test_no_repr_shows_a_secret(small_key):
    p, q = factors(small_key)
    secrets = [p, q, (p - 1) * (q - 1), lcm(p - 1, q - 1)]
    trapdoor = small_key._trapdoor
    shown = " ".join(
        text
        for thing in (small_key, small_key.public, trapdoor, trapdoor._p, trapdoor._q)
        for text in (repr(thing), str(thing), f"{thing}")
    )
    for secret in secrets:
        assert str(secret) not in shown
        assert f"{secret:x}" not in shown
    assert "hidden" in repr(trapdoor)
