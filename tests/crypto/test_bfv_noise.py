"""What the noise of real answers tells Bob, who knows his key: measured exactly.

``bfv_noise`` has how. Statistical tests draw from the operating system, as SEAL does; each states
its false-alarm rate, and each has a twin that leaves out a step and must be caught.
"""

from __future__ import annotations

from math import log, prod
from typing import Any

import numpy as np
import pytest
import tenseal.sealapi as sealapi
from scipy.stats import ks_2samp

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Capacity, Mask, Wrapping
from taciturn.crypto.bfv import parameters
from taciturn.crypto.bfv.keys import BfvSecretKey
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.parameters import DEGREE, parameters_for
from taciturn.protocol.look_ahead import Turns
from taciturn.rng import SystemEntropy
from tests.crypto.bfv_noise import (
    Opened,
    answer_noise,
    first_primes,
    kept_primes,
    scaled,
    unpacked,
)
from tests.crypto.schemes import key_pair

COINS = SystemEntropy()
FALSE_ALARM = 1e-4
CREDIT = Capacity(20, 24, 8)
CENSUS = Capacity(20, 23, 32)
STEEP = Capacity(0, 56, 4)
"""Huge matrix entries: noise that one dropped prime would not drown."""
ANSWERS = 60
# What the noise tells is the same question for two primes as for one: the second is asked seldom.
NARROW_AND_WIDE = [
    pytest.param(CREDIT, id="narrow"),
    pytest.param(STEEP, id="wide", marks=pytest.mark.slow),
]


@pytest.fixture(autouse=True)
def noise_that_no_conversation_has(monkeypatch):
    """``STEEP`` is refused otherwise: its answers hide their matrix to within 2^-38 only."""
    monkeypatch.setattr(parameters, "LEAST_LEAK_BITS", 30)


def opened(capacity: Capacity) -> Opened:
    secret, _ = key_pair("bfv", capacity)
    assert isinstance(secret, BfvSecretKey)
    return Opened.of(secret)


def encrypted_zero(bob: Opened) -> Any:
    zero = sealapi.Ciphertext()
    bob.key.public._encryptor.encrypt_zero(zero)
    return zero


def product(bob: Opened, matrix: IntArray, vector: IntArray) -> Any:
    """The steps of an answer up to the switch: the sum of products, and Alice's zero."""
    public = bob.key.public
    layout = Layout.of(*matrix.shape)
    assert layout.pieces == layout.answers == 1
    pieces = public._pieces(bob.key.encrypt(vector, len(matrix), COINS), layout)
    total = public._sum_of_products(public.prepare(matrix).content[0], pieces)
    bob.key._seal.evaluator.add_inplace(total, encrypted_zero(bob))
    return total


def noise_after(bob: Opened, matrix: IntArray, vector: IntArray, dropped: int) -> FloatArray:
    """The noise of the entries where only so many primes were switched away."""
    seal, total = bob.key._seal, product(bob, matrix, vector)
    for _ in range(dropped):
        seal.evaluator.mod_switch_to_next_inplace(total)
    primes = first_primes(bob.key)[: len(first_primes(bob.key)) - dropped]
    places = Layout.of(*matrix.shape).places(len(matrix))
    messages, noise = bob.noise(seal.polynomials(total, len(primes)), primes, places)
    assert messages == [int(each) % bob.key.public.modulus for each in matrix @ vector]
    return noise


def noise_of_answers(bob: Opened, matrix: IntArray, vector: IntArray, count: int) -> FloatArray:
    """The noise of real answers, with fresh vectors' encryptions and masks."""
    public, prepared = bob.key.public, bob.key.public.prepare(matrix)
    found = []
    for _ in range(count):
        encrypted = bob.key.encrypt(vector, len(matrix), COINS)
        mask = public.draw_mask(len(matrix), COINS)
        answer = public.masked_product(prepared, encrypted, mask, COINS)
        found.append(answer_noise(bob, answer, len(vector)))
    return np.concatenate(found)


def tiny_and_huge(capacity: Capacity, rows: int) -> tuple[IntArray, IntArray]:
    tiny = np.zeros((rows, capacity.terms), dtype=np.int64)
    tiny[:, 0] = 1
    return tiny, np.full((rows, capacity.terms), 1 << capacity.matrix_bits)


def full_vector(capacity: Capacity) -> IntArray:
    return np.full(capacity.terms, (1 << capacity.vector_bits) - (capacity.vector_bits > 1))


# The measure itself


@pytest.mark.parametrize("capacity", [CREDIT, STEEP], ids=["narrow", "wide"])
def test_the_measured_messages_are_those_that_seal_decrypts(capacity):
    bob = opened(capacity)
    public, rows = bob.key.public, 40
    matrix = np.arange(rows * capacity.terms).reshape(rows, capacity.terms) - 50
    mask = public.draw_mask(rows, COINS)
    encrypted = bob.key.encrypt(full_vector(capacity), rows, COINS)
    answer = public.masked_product(public.prepare(matrix), encrypted, mask, COINS)
    (cipher,) = unpacked(bob.key, answer, capacity.terms)
    places = Layout.of(*matrix.shape).places(rows)
    messages, noise = bob.noise(cipher, kept_primes(bob.key), places)
    assert tuple(messages) == bob.key.decrypt(answer, capacity.terms)
    # c0 has its entries only: with the whole of it SEAL's own measure agrees.
    total = product(bob, matrix, full_vector(capacity))
    seal, primes = bob.key._seal, kept_primes(bob.key)
    seal.evaluator.mod_switch_to_inplace(total, seal.kept_id)
    whole = np.array(seal.polynomials(total, len(primes)))
    _, everywhere = bob.noise(whole, primes, np.arange(DEGREE))
    budget = np.log2(prod(primes) / (2 * public.modulus * np.abs(everywhere).max()))
    assert bob.key._decryptor.invariant_noise_budget(total) == pytest.approx(budget, abs=1.01)
    assert bob.key._decryptor.invariant_noise_budget(total) > 0
    assert np.abs(noise).max() < prod(primes) / (2 * public.modulus)


# Within the bounds


@pytest.mark.parametrize("capacity", [CENSUS, Capacity(24, 21, 16), STEEP])
def test_the_noise_of_answers_stays_within_the_bound(capacity):
    """By the same tail that bounds failures: one false alarm in 10^9 runs.

    The bound is tight enough to mean something: the spread is that of the roundings.
    """
    bob = opened(capacity)
    rows = DEGREE // capacity.terms
    _, huge = tiny_and_huge(capacity, rows)
    found = noise_of_answers(bob, huge, full_vector(capacity), 20)
    bound = (DEGREE / 6 * log(2 * len(found) * 1e9)) ** 0.5 + 2
    assert np.abs(found).max() < bound
    weight = int(np.abs(bob.secret).sum())
    assert 0.93 < found.std() / ((weight + 1) / 12) ** 0.5 < 1.07
    limit = prod(kept_primes(bob.key)) / (2 * bob.key.public.modulus)
    assert bound < limit


@pytest.mark.parametrize("capacity", [CENSUS, STEEP, Capacity(20, 10, 4096)])
def test_the_noise_before_switching_stays_within_its_bound(capacity):
    """All factors at their largest, of one sign; wrong with a probability below 2^-85."""
    bob = opened(capacity)
    _, huge = tiny_and_huge(capacity, DEGREE // capacity.terms)
    bound = bob.key._seal.parameters.noise(capacity)
    found = np.concatenate([noise_after(bob, huge, full_vector(capacity), 0) for _ in range(3)])
    assert np.abs(found).max() < bound
    # And the bound is no more than some bits beyond what there is.
    assert np.abs(found).max() > bound / 2**9


# What Bob can tell


def told_apart(one: FloatArray, two: FloatArray) -> float:
    """The p-value of the two-sample Kolmogorov-Smirnov test.

    Coefficients of one answer are correlated by the autocorrelation of s only, about 1/70 with
    random signs: too little to matter beside the test's own caution.
    """
    return float(ks_2samp(one, two, method="asymp").pvalue)


@pytest.mark.parametrize("capacity", NARROW_AND_WIDE)
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


@pytest.mark.parametrize(
    ("capacity", "dropped"),
    [
        pytest.param(CREDIT, 0, id="no-prime-dropped"),
        pytest.param(STEEP, 0, id="no-prime-dropped-wide", marks=pytest.mark.slow),
        pytest.param(STEEP, 1, id="one-prime-of-two"),
    ],
)
def test_without_the_whole_switch_the_same_test_tells_them_apart(capacity, dropped):
    bob, rows = opened(capacity), 2000 // capacity.terms
    tiny, huge = (
        np.concatenate(
            [noise_after(bob, matrix, full_vector(capacity), dropped) for _ in range(ANSWERS // 4)]
        )
        for matrix in tiny_and_huge(capacity, rows)
    )
    p = told_apart(tiny, huge)
    print(f"{capacity}, {dropped} dropped: p = {p:.1e}")
    assert p < FALSE_ALARM**2


def guessed_second(bob: Opened, matrix: IntArray, zero: bool) -> bool:
    """Whether Bob, who knows a and guesses X, finds the second polynomial of the answer."""
    seal, public = bob.key._seal, bob.key.public
    layout = Layout.of(*matrix.shape)
    encrypted = bob.key.encrypt(full_vector(bob.key.public.capacity), len(matrix), COINS)
    seconds = []
    for with_zero in (zero, False):
        pieces = public._pieces(encrypted, layout)
        total = public._sum_of_products(public.prepare(matrix).content[0], pieces)
        if with_zero:
            seal.evaluator.add_inplace(total, encrypted_zero(bob))
        seal.evaluator.mod_switch_to_inplace(total, seal.kept_id)
        seconds.append(seal.polynomials(total, len(kept_primes(bob.key)))[1].tobytes())
    return bool(seconds[0] == seconds[1])


def test_without_the_encryption_of_zero_the_second_polynomial_gives_the_matrix_away():
    bob = opened(CREDIT)
    matrix = np.arange(80).reshape(10, 8) - 40
    assert guessed_second(bob, matrix, zero=False)
    assert not guessed_second(bob, matrix, zero=True)


# The mask's own rounding


def slope_on_the_masks_rounding(bob: Opened, answers: int, *, late: bool | None) -> float:
    """How the noise follows the error of rounding the mask to the grid, in standard errors.

    Bob knows the masked product M and not the mask. Noise that holds ``round(q'k/t) - q'k/t`` of
    the mask k = M - Xv shifts by up to a whole unit with Xv, beside a spread of 21: far more than
    what the switch leaves of E. A slope of one is the leak, zero is none.

    Args:
        bob: Whose key.
        answers: How many, of 8192 entries each.
        late: Masks after the switch, before it, or as ``masked_product`` does it (None).
    """
    key, public, seal = bob.key, bob.key.public, bob.key._seal
    primes, t = kept_primes(key), bob.key.public.modulus
    q, places = prod(primes), np.arange(DEGREE)
    draw = np.random.default_rng(7)
    limit = 1 << min(20, public.capacity.matrix_bits)
    matrix = draw.integers(-limit, limit, (DEGREE, 1))
    prepared, vector = public.prepare(matrix), np.ones(1, dtype=np.int64)
    noises, errors = [], []
    for _ in range(answers):
        mask: Mask = public.draw_mask(DEGREE, COINS)
        if late is None:
            encrypted = key.encrypt(vector, DEGREE, COINS)
            answer = public.masked_product(prepared, encrypted, mask, COINS)
            noises.append(answer_noise(bob, answer, 1))
        else:
            total = product(bob, matrix, vector)
            if not late:
                plain = seal.load_plain(np.array(mask.values, dtype=np.uint64))
                seal.evaluator.add_plain_inplace(total, plain)
            seal.evaluator.mod_switch_to_inplace(total, seal.kept_id)
            cipher = np.array(seal.polynomials(total, len(primes)))
            if late:
                shift = np.array(scaled(list(mask.values), q, t), dtype=object)
                for at, prime in enumerate(primes):
                    cipher[0, at] = (cipher[0, at].astype(object) + shift) % prime
            noises.append(bob.noise(cipher, primes, places)[1])
        values = np.array(mask.values, dtype=object)
        rounded = np.array(scaled(list(mask.values), q, t), dtype=object)
        errors.append((t * rounded - q * values).astype(np.float64) / t)
    noise, error = np.concatenate(noises), np.concatenate(errors)
    slope = (noise * error).mean() / (error**2).mean()
    deviation = noise.std() / error.std() / len(noise) ** 0.5
    print(f"slope {slope:.3f} ± {deviation:.3f}")
    return float(slope / deviation)


@pytest.mark.parametrize(
    "capacity",
    [
        pytest.param(CREDIT, id="narrow"),
        pytest.param(Capacity(20, 30, 16), id="wide", marks=pytest.mark.slow),
    ],
)
def test_the_noise_does_not_follow_the_rounding_of_the_mask(capacity):
    """A leak shows as nine standard errors; five are a false alarm once in two million runs."""
    assert abs(slope_on_the_masks_rounding(opened(capacity), 60, late=None)) < 5


def test_a_mask_that_is_added_after_the_switch_is_caught():
    assert slope_on_the_masks_rounding(opened(CREDIT), 60, late=True) > 5


@pytest.mark.slow  # what masked_product does, once more by hand
def test_a_mask_that_is_added_before_the_switch_is_not():
    assert abs(slope_on_the_masks_rounding(opened(CREDIT), 60, late=False)) < 5


# Vectors of full range, and products that wrap

WRAPPING = {
    "narrow": Wrapping.of(modulus_bits=50, matrix_bits=16, terms=30),
    "wide": Wrapping.of(modulus_bits=59, matrix_bits=20, terms=30),
}


@pytest.mark.parametrize("name", WRAPPING)
def test_noise_before_the_switch_is_within_its_bound_for_messages_of_full_range(name):
    ring = WRAPPING[name]
    bob = opened(ring)
    matrix = np.full((32, ring.terms), 1 << ring.matrix_bits)
    matrix[:, ::2] *= -1
    bound = parameters_for(ring).noise(ring)
    for vector in (ring.draw(ring.terms, COINS), np.full(ring.terms, -(1 << ring.vector_bits))):
        assert np.abs(noise_after(bob, matrix, vector, dropped=0)).max() <= bound


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


# The block matrix that brings the next scores with a step

TURNS = Turns(Wrapping.of(modulus_bits=50, matrix_bits=18, terms=79), low_bits=18)
"""Breast-cancer, 15 columns, batches of 32: features of up to 16 bits."""


def block(largest: float) -> IntArray:
    """Features of the largest size, with signs that make the largest sums of products."""
    rows = np.full((32, 15), largest)
    rows[::2] *= -1
    return TURNS.matrix(rows, np.full((32, 15), largest))


def test_the_noise_of_a_block_product_is_within_the_bound_for_its_layout():
    bob, matrix = opened(TURNS.ring), block(2.0**16)
    layout = Layout.of(*matrix.shape)
    assert (layout.pieces, layout.answers) == (1, 1)
    bound = bob.key._seal.parameters.noise(TURNS.ring, layout.pieces)
    ring = TURNS.ring
    vector = TURNS.vector(ring.draw(32, COINS), ring.draw(15, COINS))
    found = np.abs(noise_after(bob, matrix, vector, dropped=0)).max()
    assert bound / 2**9 < found <= bound


def test_the_noise_of_block_answers_does_not_tell_how_large_features_are():
    """False alarm: ``FALSE_ALARM``."""
    bob, ring = opened(TURNS.ring), TURNS.ring
    samples = []
    for largest in (1.0, 2.0**16):
        vector = TURNS.vector(ring.draw(32, COINS), ring.draw(15, COINS))
        samples.append(noise_of_answers(bob, block(largest), vector, 12))
    assert told_apart(samples[0], samples[1]) > FALSE_ALARM
