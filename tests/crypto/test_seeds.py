"""Keys from seeds: the distributions, the algebra, and the same key again."""

from __future__ import annotations

import numpy as np
import pytest

from taciturn.crypto.bfv.modular import products
from taciturn.crypto.bfv.parameters import DEGREE, SLOT_MODULUS, SLOTS, STANDARD, BfvParameters
from taciturn.crypto.bfv.seal import Seal
from taciturn.crypto.bfv.seeds import KeySeeds, centred_binomial, ternary, uniform_half
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy
from tests.expected import refused

COINS = KeyedEntropy.from_seed(4)
SEEDS = KeySeeds(bytes(range(32)), bytes(range(32, 64)))


@pytest.mark.parametrize(
    ("parameters", "modulus"), [(STANDARD, 1 << 59), (STANDARD, 65537), (SLOTS, SLOT_MODULUS)]
)
def test_a_public_key_is_minus_a_s_and_the_error(parameters: BfvParameters, modulus: int):
    seal = Seal(parameters, modulus)
    secret = SEEDS.secret_values(seal)
    half = SEEDS.public_half(seal, secret)
    first, a = half.polynomials(seal)
    error = np.empty_like(first)
    for at, prime in enumerate(seal.primes[:-1]):
        summed = products(a[at], secret[at], prime).astype(object) + first[at].astype(object)
        error[at] = (-summed % prime).astype(np.uint64)
    # Back from the roots: the same small numbers modulo each prime of a ciphertext.
    pair = np.stack([error, secret[:-1]])
    cipher = seal.load_cipher(pair, seal.first_id, ntt=True)
    seal.evaluator.transform_from_ntt_inplace(cipher)
    for number, drawn in enumerate((centred_binomial, ternary)):
        entropy = KeyedEntropy(SEEDS.secret).fork(("error", "secret")[number])
        expected = drawn(entropy)
        for at, prime in enumerate(seal.primes[:-1]):
            words = seal.polynomials(cipher, len(seal.primes) - 1)[number, at].astype(object)
            assert ((words - expected) % prime == 0).all()


def test_errors_and_secrets_have_the_stated_distributions():
    errors = np.concatenate([centred_binomial(COINS) for _ in range(8)])
    secrets = np.concatenate([ternary(COINS) for _ in range(8)])
    # Variances of 21/2 and 2/3; each bound is six deviations of the estimate.
    assert abs(errors.var() - 10.5) < 6 * 10.5 * (2 / errors.size) ** 0.5
    assert abs(errors.mean()) < 6 * (10.5 / errors.size) ** 0.5
    assert abs(np.abs(secrets).mean() - 2 / 3) < 6 * (2 / 9 / secrets.size) ** 0.5
    assert np.abs(errors).max() <= 21
    assert set(secrets.tolist()) == {-1, 0, 1}


def test_the_uniform_half_is_the_documented_expansion():
    primes = Seal(STANDARD, 1 << 59).primes
    half = uniform_half(primes, SEEDS.public)
    for at, prime in enumerate(primes):
        stream = KeyedEntropy(SEEDS.public).fork(f"uniform half {at}")
        words = np.frombuffer(stream.token(8 * DEGREE), "<u8") >> np.uint64(64 - prime.bit_length())
        fits = words < np.uint64(prime)
        assert (half[at][fits] == words[fits]).all()
        assert half[at].max() < prime
    assert not half.flags.writeable
    assert len(set(half.ravel().tolist())) > 3 * DEGREE


def test_products_are_those_of_whole_numbers():
    for prime in (*Seal(SLOTS, SLOT_MODULUS).primes, SLOT_MODULUS, 3, (1 << 62) + 1):
        one, two = (COINS.fork(name).integers(prime, 500) for name in ("one", "two"))
        one[:3], two[:3] = [0, prime - 1, prime - 1], [prime - 1, prime - 1, 1]
        expected = one.astype(object) * two.astype(object) % prime
        assert products(one, two, prime).tolist() == expected.tolist()


@pytest.mark.parametrize("data", [b"", bytes(63), bytes(65)])
def test_other_lengths_are_no_secret_key(data):
    with refused(CryptoError):
        KeySeeds.from_bytes(data)


def test_nothing_secret_is_shown():
    assert repr(SEEDS.secret) not in repr(SEEDS)
