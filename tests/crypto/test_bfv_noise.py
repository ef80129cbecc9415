"""What the noise of real answers tells Bob, who knows his key: measured exactly.

``bfv_noise`` has how. Statistical tests draw from the operating system, as SEAL does; each states
its false-alarm rate, and each has a twin that leaves out a step and must be caught.
"""

from __future__ import annotations

from math import log, prod
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp, kstest, spearmanr

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import Capacity, EncryptedVector, Wrapping
from taciturn.crypto.bfv.keys import BfvPublicKey, BfvSecretKey
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.modular import Flood
from taciturn.crypto.bfv.operations import ServerOps
from taciturn.crypto.bfv.parameters import DEGREE, MARGIN, STANDARD, flood_half
from taciturn.crypto.bfv.seal import Seal
from taciturn.crypto.bfv.seeds import KeySeeds
from taciturn.rng import Entropy, SystemEntropy
from tests.crypto.bfv_noise import (
    Opened,
    answer_noise,
    first_primes,
    kept_primes,
    unpacked,
)
from tests.crypto.schemes import key_pair

COINS = SystemEntropy()
FALSE_ALARM = 1e-4
CREDIT = Capacity(20, 24, 8)
CENSUS = Capacity(20, 23, 32)
STEEP = Capacity(0, 45, 4)
"""Huge matrix entries."""
ANSWERS = 60
# What the noise tells is the same question for both: the second is asked seldom.
BOTH = [
    pytest.param(CREDIT, id="credit"),
    pytest.param(STEEP, id="steep", marks=pytest.mark.slow),
]


def opened(capacity: Capacity) -> Opened:
    secret, _ = key_pair("bfv", capacity)
    assert isinstance(secret, BfvSecretKey)
    return Opened.of(secret)


class Still(Flood):
    """No flood at all."""

    def __call__(self, count: int, entropy: Entropy) -> WordArray:
        return np.zeros((len(self.primes), count), dtype=np.uint64)


class Bare(ServerOps):
    """Alice's encryption of zero alone: nothing is masked or flooded."""

    def __init__(self, key: BfvSecretKey) -> None:
        bits = key.public.capacity.matrix_bits
        super().__init__(key._seal, key.public._half.polynomials(key._seal), bits)
        self._flood = Still(self._primes, 1)

    def under_zero(self, total: Any) -> Any:
        zeros = np.zeros(DEGREE, dtype=np.int64)
        return self.covered(total, self.cover(zeros, slice(None), COINS))


def product(bob: Opened, matrix: IntArray, vector: IntArray) -> Any:
    """The steps of an answer up to the switch: the sum of products, and Alice's zero."""
    public = bob.key.public
    layout = Layout.for_shape(*matrix.shape)
    assert layout.pieces == layout.answers == 1
    pieces = public._pieces(bob.key.encrypt(vector, len(matrix), COINS), layout)
    total = public._sum_of_products(public.prepare(matrix).content[0], pieces)
    return Bare(bob.key).under_zero(total)


def noise_after(bob: Opened, matrix: IntArray, vector: IntArray, dropped: int) -> FloatArray:
    """The noise of the entries without a flood, where so many primes were switched away."""
    seal, total = bob.key.public.server_ops.seal, product(bob, matrix, vector)
    for _ in range(dropped):
        seal.evaluator.mod_switch_to_next_inplace(total)
    primes = first_primes(bob.key)[: len(first_primes(bob.key)) - dropped]
    places = Layout.for_shape(*matrix.shape).places(len(matrix))
    messages, noise = bob.noise(seal.polynomials(total, len(primes)), primes, places)
    assert messages == [int(entry) % bob.key.public.modulus for entry in matrix @ vector]
    return noise


def noise_of_answers(bob: Opened, matrix: IntArray, vector: IntArray, count: int) -> FloatArray:
    """The noise of real answers, with fresh vectors' encryptions and masks."""
    public, prepared = bob.key.public, bob.key.public.prepare(matrix)
    noises = []
    for _ in range(count):
        encrypted = bob.key.encrypt(vector, len(matrix), COINS)
        mask = public.draw_mask(len(matrix), COINS)
        answer = public.masked_product(prepared, encrypted, mask, COINS)
        noises.append(answer_noise(bob, answer, len(vector)))
    return np.concatenate(noises)


def tiny_and_huge(capacity: Capacity, rows: int) -> tuple[IntArray, IntArray]:
    tiny = np.zeros((rows, capacity.terms), dtype=np.int64)
    tiny[:, 0] = 1
    return tiny, np.full((rows, capacity.terms), 1 << capacity.matrix_bits)


def full_vector(capacity: Capacity) -> IntArray:
    return np.full(capacity.terms, (1 << capacity.vector_bits) - (capacity.vector_bits > 1))


# The measure itself


@pytest.mark.parametrize("capacity", BOTH)
def test_the_measured_messages_are_those_that_seal_decrypts(capacity):
    bob = opened(capacity)
    public, rows = bob.key.public, 40
    matrix = np.arange(rows * capacity.terms).reshape(rows, capacity.terms) - 50
    mask = public.draw_mask(rows, COINS)
    encrypted = bob.key.encrypt(full_vector(capacity), rows, COINS)
    answer = public.masked_product(public.prepare(matrix), encrypted, mask, COINS)
    (cipher,) = unpacked(bob.key, answer, capacity.terms)
    places = Layout.for_shape(*matrix.shape).places(rows)
    messages, noise = bob.noise(cipher, kept_primes(bob.key), places)
    assert tuple(messages) == bob.key.decrypt(answer, capacity.terms)
    # c0 has its entries only: with the whole of it SEAL's own measure agrees.
    total = product(bob, matrix, full_vector(capacity))
    seal, primes = public.server_ops.seal, kept_primes(bob.key)
    seal.evaluator.mod_switch_to_inplace(total, seal.kept_id)
    whole = np.array(seal.polynomials(total, len(primes)))
    total = bob.key._seal.load_cipher(whole, bob.key._seal.kept_id)
    _, everywhere = bob.noise(whole, primes, np.arange(DEGREE))
    budget = np.log2(prod(primes) / (2 * public.modulus * np.abs(everywhere).max()))
    assert bob.key._client_ops._decryptor.invariant_noise_budget(total) == pytest.approx(
        budget, abs=1.01
    )
    assert bob.key._client_ops._decryptor.invariant_noise_budget(total) > 0
    assert np.abs(noise).max() < prod(primes) / (2 * public.modulus)


# Within the bounds


@pytest.mark.sampled(1)
@pytest.mark.parametrize("capacity", [CENSUS, Capacity(24, 21, 16), STEEP])
def test_the_noise_of_answers_is_the_flood_and_the_roundings(capacity):
    """By the same tail that bounds failures: one false alarm in 10^9 runs.

    The flood is uniform, and it has the whole gap but for what is stated.
    """
    bob = opened(capacity)
    rows = DEGREE // capacity.terms
    _, huge = tiny_and_huge(capacity, rows)
    noise = noise_of_answers(bob, huge, full_vector(capacity), 20)
    primes, t = first_primes(bob.key), bob.key.public.modulus
    flood = flood_half(primes, t) / primes[-1]
    tail = (DEGREE / 6 * log(2 * len(noise) * 1e9)) ** 0.5 + 2
    steep = STANDARD.noise(capacity) / primes[-1]
    assert np.abs(noise).max() < flood + tail + steep
    assert tail + steep < MARGIN
    assert kstest(noise / flood, "uniform", (-1, 2)).pvalue > FALSE_ALARM
    gap = prod(kept_primes(bob.key)) / (2 * t)
    assert flood + MARGIN == pytest.approx(gap, rel=1e-12)


WRAPPING = {
    "narrow": Wrapping.with_modulus(modulus_bits=50, matrix_bits=16, terms=30),
    "wide": Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=30),
}
"""Vectors of full range, and products that wrap."""


@pytest.mark.parametrize(
    "capacity", [CENSUS, STEEP, Capacity(20, 10, 4096), *WRAPPING.values()], ids=str
)
def test_the_noise_before_switching_stays_within_its_bound(capacity):
    """All factors at their largest, of one sign; wrong with a probability below 2^-85."""
    bob = opened(capacity)
    _, huge = tiny_and_huge(capacity, DEGREE // capacity.terms)
    bound = bob.key._seal.parameters.noise(capacity)
    vectors = [full_vector(capacity)] * 2
    if isinstance(capacity, Wrapping):
        vectors = [capacity.draw(capacity.terms, COINS), -1 - vectors[0]]
    noise = np.concatenate([noise_after(bob, huge, vector, 0) for vector in vectors])
    assert np.abs(noise).max() < bound
    # And the bound is no more than some bits beyond what there is.
    assert np.abs(noise).max() > bound / 2**9


# What Bob can tell


def told_apart(one: FloatArray, two: FloatArray) -> float:
    """The p-value of the two-sample Kolmogorov-Smirnov test.

    Coefficients of one answer are correlated by the autocorrelation of s only, about 1/70 with
    random signs: too little to matter beside the test's own caution.
    """
    return float(ks_2samp(one, two, method="asymp").pvalue)


@pytest.mark.slow  # some thousand answers
@pytest.mark.parametrize("capacity", BOTH)
def test_tiny_and_huge_entries_leave_the_same_noise(capacity):
    """False alarms: one run in ten thousand."""
    bob, rows = opened(capacity), 2000 // capacity.terms
    samples = [
        noise_of_answers(bob, matrix, full_vector(capacity), ANSWERS)
        for matrix in tiny_and_huge(capacity, rows)
    ]
    p = told_apart(*samples)
    print(f"{capacity}: {len(samples[0])} entries each, p = {p:.3f}")
    assert p > FALSE_ALARM


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("capacity", BOTH)
def test_without_switch_and_flood_the_same_test_tells_them_apart(capacity):
    bob, rows = opened(capacity), 2000 // capacity.terms
    tiny, huge = (
        np.concatenate(
            [noise_after(bob, matrix, full_vector(capacity), 0) for _ in range(ANSWERS // 4)]
        )
        for matrix in tiny_and_huge(capacity, rows)
    )
    p = told_apart(tiny, huge)
    print(f"{capacity}: p = {p:.1e}")
    assert p < FALSE_ALARM**2


def guessed_second(bob: Opened, matrix: IntArray, zero: bool) -> bool:
    """Whether Bob, who knows a and guesses X, finds the second polynomial of the answer."""
    seal, public = bob.key.public.server_ops.seal, bob.key.public
    layout = Layout.for_shape(*matrix.shape)
    encrypted = bob.key.encrypt(full_vector(bob.key.public.capacity), len(matrix), COINS)
    seconds = []
    for with_zero in (zero, False):
        pieces = public._pieces(encrypted, layout)
        total = public._sum_of_products(public.prepare(matrix).content[0], pieces)
        if with_zero:
            total = Bare(bob.key).under_zero(total)
        else:
            seal.evaluator.transform_from_ntt_inplace(total)
        seal.evaluator.mod_switch_to_inplace(total, seal.kept_id)
        seconds.append(seal.polynomials(total, len(kept_primes(bob.key)))[1].tobytes())
    return bool(seconds[0] == seconds[1])


def test_without_the_encryption_of_zero_the_second_polynomial_gives_the_matrix_away():
    bob = opened(CREDIT)
    matrix = np.arange(80).reshape(10, 8) - 40
    assert guessed_second(bob, matrix, zero=False)
    assert not guessed_second(bob, matrix, zero=True)


# A Bob who deviates: s = 1, and a vector whose message lies below the grid

FEATURES, ROWS = 15, 32
DIGITS = 20
"""He shifts products so far above the noise, and all of it stays below the gap of 2^50."""


class Unflooded(BfvPublicKey):
    """Alice's masks as they were before: on the grid of q/t, with nothing between its points."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.server_ops._flood = Still(self._seal.primes[:-1], 1)


class One(KeySeeds):
    """Makes a secret polynomial of 1: its transform is 1 everywhere."""

    def secret_values(self, seal: Seal) -> WordArray:
        return np.ones((len(seal.primes), DEGREE), dtype=np.uint64)


def key_of_one(ring: Wrapping) -> Opened:
    """A key whose secret polynomial is 1."""
    seal = Seal(STANDARD, 1 << ring.modulus_bits)
    bob = Opened.of(BfvSecretKey(seal, ring, One.draw(COINS, None)))
    assert bob.secret.tolist() == [1] + [0] * (DEGREE - 1)
    return bob


def below_the_grid(bob: Opened, row: int) -> EncryptedVector:
    """A vector of noise only, as it were: P 2^DIGITS at one row."""
    zero, primes = bob.key._zero(), first_primes(bob.key)
    for at, (part, prime) in enumerate(zip(zero.parts, primes, strict=True)):
        entry = (int(zero.first[at, row]) + (primes[-1] << DIGITS)) % prime
        part[row] = np.frombuffer(entry.to_bytes(part.shape[1], "little"), np.uint8)
    return EncryptedVector(b"".join([*(part.tobytes() for part in zero.parts), zero.seed]), ROWS)


def readings(kind: type[BfvPublicKey]) -> tuple[FloatArray, FloatArray]:
    """What Bob reads of every row's columns beside the masked steps, and what they are."""
    ring = Wrapping.with_modulus(modulus_bits=50, matrix_bits=16, terms=ROWS)
    bob = key_of_one(ring)
    public = kind(bob.key._seal, ring, bob.key.public._half)
    features = np.random.default_rng(5).integers(-(2**16), 2**16, (ROWS, FEATURES))
    prepared = public.prepare(features.T.copy())
    read = np.empty((ROWS, FEATURES))
    for row in range(ROWS):
        mask = public.draw_mask(FEATURES, COINS)
        answer = public.masked_product(prepared, below_the_grid(bob, row), mask, COINS)
        read[row] = answer_noise(bob, answer, ROWS) / 2.0**DIGITS
    return read.ravel(), features.ravel().astype(np.float64)


def test_masks_on_the_grid_alone_give_a_deviating_bob_every_feature():
    """The control: 15 columns of a row from each masked step, to the last bit."""
    read, features = readings(Unflooded)
    assert np.rint(read).tolist() == features.tolist()


def test_under_the_flood_a_deviating_bob_reads_at_chance():
    """480 features: a rank correlation beyond 5/sqrt(480), and more than 300 right signs, are
    false alarms once in a million runs. Two rows' readings differ by no more than chance."""
    read, features = readings(BfvPublicKey)
    correlation = spearmanr(read, features).statistic
    right = int((np.sign(read) == np.sign(features)).sum())
    print(f"rank correlation {correlation:.3f}, {right} of {len(read)} signs")
    assert abs(correlation) < 5 / len(read) ** 0.5
    assert abs(right - len(read) / 2) < 60
    assert kstest(read * 2.0**DIGITS / 2.0**49, "uniform", (-1, 2)).pvalue > FALSE_ALARM


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("name", WRAPPING)
def test_the_noise_of_answers_does_not_tell_whether_products_wrapped(name):
    """False alarm: ``FALSE_ALARM``. Both samples have the same masks' distribution."""
    ring = WRAPPING[name]
    bob = opened(ring)
    tiny, huge = tiny_and_huge(ring, 32)
    still = noise_of_answers(bob, tiny, np.zeros(ring.terms, dtype=np.int64), 12)
    wrapped = noise_of_answers(bob, huge, ring.draw(ring.terms, COINS), 12)
    assert ks_2samp(still, wrapped).pvalue > FALSE_ALARM
    assert np.abs(wrapped).max() < prod(kept_primes(bob.key)) / (2 * bob.key.public.modulus)
