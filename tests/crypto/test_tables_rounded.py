"""Tables whose products stay shared: uniform masks modulo q, and shares that both sides round.

False alarms of the statistical tests: once in a million runs.
"""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from scipy.stats import kstest, spearmanr

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, TableSize, Wrapping
from taciturn.crypto.bfv.keys import BfvPublicKey, BfvScheme, BfvSecretKey
from taciturn.crypto.bfv.layout import Tiling
from taciturn.crypto.bfv.modular import rounded_fractions
from taciturn.crypto.bfv.parameters import MOST_SHARE_ERROR, SHARED
from taciturn.crypto.bfv.seal import ByteReader, Seal
from taciturn.crypto.bfv.seeds import KeySeeds, PublicHalf, ternary
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy, SystemEntropy
from tests.crypto.bfv_noise import Opened, kept_primes
from tests.crypto.schemes import transposed_product
from tests.expected import refused

COINS = SystemEntropy()
DEGREE = SHARED.degree
RING = Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=DEGREE)
SCHEME = BfvScheme().for_shares
Q = Seal(SHARED, 1 << 59).primes[0]
FALSE_ALARM = 1e-6


def key(ring: Wrapping = RING) -> BfvSecretKey:
    return SCHEME.generate(128, ring, COINS)


def nearest(value: int, modulus: int, bits: int) -> int:
    return ((value << bits) + modulus // 2) // modulus


# --- the rounding, exhaustively -------------------------------------------------------------------


@pytest.mark.parametrize(("modulus", "bits"), [(11, 2), (37, 5), (97, 4), (257, 8), (1021, 3)])
def test_every_number_of_a_small_modulus_is_rounded_to_the_nearest(modulus, bits):
    rounded = rounded_fractions(np.arange(modulus, dtype=np.uint64), modulus, bits)
    assert rounded.tolist() == [nearest(value, modulus, bits) for value in range(modulus)]


@pytest.mark.parametrize(("q", "bits"), [(37, 5), (97, 4), (193, 6)])
def test_whatever_the_mask_the_message_and_the_error_shares_sum_to_the_message(q, bits):
    """All of them, in a whole toy ring; every phase is as likely, as each mask gives another."""
    t, masks = 1 << bits, np.arange(q)
    hers = -rounded_fractions(masks.astype(np.uint64), q, bits).astype(np.int64)
    for message in range(t):
        for error in range(-(q // 4), q // 4 + 1):
            phases = (masks + (message * q + t // 2) // t + error) % q
            assert sorted(phases.tolist()) == masks.tolist()
            his = rounded_fractions(phases.astype(np.uint64), q, bits).astype(np.int64)
            missed = (hers + his - message + t // 2) % t - t // 2
            assert np.abs(missed).max() <= 1 + t / q * (abs(error) + 0.5)


# --- known answers --------------------------------------------------------------------------------


def test_known_masks_have_known_shares():
    """By Python's integers, for the prime that is in use."""
    masks = np.array([0, 1, 2, Q // 2, Q // 3, Q - 1, 0x123456789ABCDEF], dtype=np.uint64)
    assert Q == 1_152_921_504_606_830_593
    assert rounded_fractions(masks, Q, 59).tolist() == [
        0,
        1,
        1,
        288_230_376_151_711_744,
        192_153_584_101_141_162,
        576_460_752_303_423_487,
        40992764608244030,
    ]
    drawn = key().public.table_masks(3, KeyedEntropy.from_seed(7).fork("masks 0"))
    expected = [nearest(mask, Q, 59) for mask in drawn.values.tolist()]
    assert drawn.shares.tolist() == RING.centred(-np.array(expected, dtype=np.int64)).tolist()
    assert drawn.values.tolist() == [912565011090968163, 1098185090779377096, 748524243253038861]


def phase_answer(phases: WordArray) -> EncryptedAnswer:
    """An answer of one row tile whose phases are given: the second polynomial is zero."""
    return EncryptedAnswer(phases.astype("<u8").tobytes() + bytes(8 * DEGREE), len(phases))


def test_what_is_decrypted_is_the_phase_rounded_to_the_ring_and_the_same_again():
    secret, size = key(), TableSize(1000, 1)
    phases = COINS.integers(Q, 1000)
    phases[:4] = 0, Q - 1, Q // 2, 1
    read = secret.decrypt_rows(phase_answer(phases), size)
    missed = RING.centred(read - rounded_fractions(phases, Q, 59).astype(np.int64))
    # The blind is rounded by up to half of what two numbers are apart: it moves one in eight.
    assert np.abs(missed).max() <= 1
    assert 0.8 < (missed == 0).mean() < 0.95
    again = SCHEME.read_secret(secret.to_bytes(), 128, RING)
    assert np.array_equal(again.decrypt_rows(phase_answer(phases), size), read)
    assert not np.array_equal(key().decrypt_rows(phase_answer(phases), size), read)


# --- the error ------------------------------------------------------------------------------------

SIZES = {
    "one tile": TableSize(100, 40),
    "tall": TableSize(3 * DEGREE + 800, 2),
    "wide": TableSize(40, 700),
}


def products(secret: BfvSecretKey, whole: IntArray) -> tuple[IntArray, IntArray]:
    """What shares of both products miss them by."""
    size, public = TableSize(*whole.shape), secret.public
    table, ring = public.table(whole), RING
    rows, columns = ring.draw(size.rows, COINS), ring.draw(size.columns, COINS)
    masks = public.table_masks(size.columns, COINS)
    sent = secret.encrypt_rows(rows, size, COINS)
    answer = transposed_product(table, sent, masks.values, COINS)
    summed = secret.decrypt_columns(answer, size) + masks.shares
    over_rows = ring.centred(summed - ring.transposed_product(whole, rows))
    masks = public.table_masks(size.rows, COINS)
    answer = table.product(secret.encrypt_columns(columns, size, COINS), masks.values, COINS)
    summed = secret.decrypt_rows(answer, size) + masks.shares
    table.close()
    return over_rows, ring.centred(summed - ring.product(whole, columns))


@pytest.mark.parametrize("bits", [12, 20])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_shares_miss_a_product_by_no_more_than_the_formula(size, bits):
    """Entries of the largest size. The mean is that of the switch: 2/3 of s are not zero."""
    signs = 2 * COINS.integers(2, size.rows * size.columns).astype(np.int64) - 1
    tiling = Tiling.for_size(size, DEGREE)
    ring = Wrapping.with_modulus(59, bits, DEGREE)
    bound = SHARED.share_error(ring, (size.rows, size.columns), (tiling.height, tiling.width))
    over_rows, over_columns = products(key(), signs.reshape(size.rows, -1) << bits)
    missed = np.concatenate([over_rows, over_columns]).astype(np.float64)
    root = float(np.sqrt((missed**2).mean()))
    print(f"{size}, {bits} bits: at most {np.abs(missed).max():.0f}, {root:.1f} in the mean square")
    assert np.abs(missed).max() <= bound <= MOST_SHARE_ERROR
    switch = (DEGREE * 2 / 3 / 12) ** 0.5 / 2
    assert switch / 2 < root < 4 * switch


def test_a_table_whose_products_would_be_missed_by_more_is_refused():
    size = TableSize(10_000_000, 50)
    SCHEME.check_tables(Wrapping.with_modulus(59, 20, size.rows), size, products=28)
    with refused(CryptoError, names=10_000_000):
        SCHEME.check_tables(Wrapping.with_modulus(59, 26, size.rows), size, products=28)


# --- what is told ---------------------------------------------------------------------------------

ROWS, FEATURES = 40, 15


class Bare(BfvPublicKey):
    """Without masks: the control."""

    def table_masks(self, length, entropy):
        masks = super().table_masks(length, entropy)
        return masks._replace(values=np.zeros(length, dtype=np.int64))


def readings(kind: type[BfvPublicKey]) -> tuple[FloatArray, FloatArray]:
    """What Bob reads in the first polynomials, and the features.

    His public key has zeros for its first half, and his vectors have P in one row's place and
    nothing else: what is sent of the first polynomial is a feature, an error and the mask.
    """
    ring, secret = Wrapping.with_modulus(59, 16, ROWS), key()
    seal, seed = secret._seal, secret.public._half.seed
    first = np.zeros((2, DEGREE), dtype=np.uint64)
    public = kind(seal, ring, PublicHalf(first, seed))
    features = np.random.default_rng(5).integers(-(2**16), 2**16, (ROWS, FEATURES))
    table, size = public.table(features), TableSize(ROWS, FEATURES)
    side, read = Tiling.for_size(size, DEGREE).rows, np.empty((ROWS, FEATURES))
    for row in range(ROWS):
        words = np.zeros((2, DEGREE), dtype=np.uint64)
        words[0, side.sent_from - row] = seal.primes[1]
        data = words[0].astype("<u8").tobytes() + words[1].astype("<u4").tobytes()
        masks = public.table_masks(FEATURES, COINS)
        sent = EncryptedVector(data + bytes(64), ROWS)
        answer = transposed_product(table, sent, masks.values, COINS)
        read[row] = np.frombuffer(answer.data, "<u8", FEATURES)
    table.close()
    return read.ravel(), features.ravel().astype(np.float64)


def test_without_masks_a_key_and_vectors_of_his_choice_give_bob_every_feature():
    read, features = readings(Bare)
    assert np.where(read > Q / 2, read - Q, read).tolist() == pytest.approx(features, abs=256)


def test_with_them_what_he_reads_is_uniform_whatever_he_chose():
    read, features = readings(BfvPublicKey)
    correlation = spearmanr(read, features).statistic
    print(f"rank correlation {correlation:.3f} of {len(read)} readings")
    assert abs(correlation) < 5 / len(read) ** 0.5
    assert kstest(read / Q, "uniform").pvalue > FALSE_ALARM


def test_second_polynomials_are_fresh_and_uniform():
    """The same vector and masks twice: no coefficient tells which table was multiplied."""
    secret, size = key(), TableSize(2 * DEGREE, 1)
    table = secret.public.table(np.ones((size.rows, 1), dtype=np.int64))
    sent = secret.encrypt_columns(np.zeros(1, dtype=np.int64), size, COINS)
    masks = secret.public.table_masks(size.rows, COINS)
    answers = [table.product(sent, masks.values, COINS).data for _ in range(2)]
    halves = np.array([np.frombuffer(data, "<u8").reshape(4, DEGREE) for data in answers])
    seconds = halves[:, 1::2].reshape(4, DEGREE)
    for at, one in enumerate(seconds):
        assert kstest(one / Q, "uniform").pvalue > FALSE_ALARM
        assert all((one != two).mean() > 0.99 for two in seconds[:at])
    table.close()


def test_the_phase_of_an_honest_answer_is_the_mask_the_product_and_a_small_error():
    """By exact arithmetic: what Bob could read beside his share is a function of a uniform mask."""
    secret, size = key(), TableSize(DEGREE, 1)
    bob, whole = Opened.of(secret), np.full((size.rows, 1), 1 << 16)
    table = secret.public.table(whole)
    sent = secret.encrypt_columns(np.array([12345]), size, COINS)
    masks = secret.public.table_masks(size.rows, COINS)
    answer = table.product(sent, masks.values, COINS)
    parts, cipher = ByteReader(answer.data), np.empty((2, 1, DEGREE), dtype=np.uint64)
    cipher[0, 0], cipher[1, 0] = parts.words(DEGREE, Q), parts.words(DEGREE, Q)
    assert prod(kept_primes(secret)) == Q
    phases = bob.phase(cipher, (Q,)) - masks.values.astype(object)
    error = (phases - (12345 << 16) * Q // (1 << 59)) % Q
    assert np.minimum(error, Q - error).max() < 250
    table.close()


# --- a crafted answer, and the key that decrypts it -----------------------------------------------

DIGITS = 30
UNIT = 64
"""Above the sum of the roundings of the answer's coefficients."""


def crafted_answer(size: TableSize) -> EncryptedAnswer:
    """First polynomial zero, second a sum of powers of 3: entries are digits of the secret."""
    second = np.zeros(DEGREE, dtype=np.uint64)
    second[:DIGITS] = [(UNIT * 3**power * Q) >> 59 for power in range(DIGITS)]
    return EncryptedAnswer(bytes(8 * size.columns) + second.tobytes(), size.columns)


def digits_read(shares: IntArray) -> list[list[int]]:
    """Balanced ternary digits of each entry, the lowest first."""
    read = list[list[int]]()
    for value in np.rint(shares / UNIT).astype(np.int64).tolist():
        digits, rest = list[int](), value
        for _ in range(DIGITS):
            digits.append((rest + 1) % 3 - 1)
            rest = (rest - digits[-1]) // 3
        read.append(digits)
    return read


def test_a_crafted_answer_reads_coefficients_of_the_key_that_decrypts_it():
    """The attack for which Alice has a new key for each vector of ``mutual`` (docs/mutual.md)."""
    size = TableSize(40, 3)
    places = range(DEGREE)[Tiling.for_size(size, DEGREE).columns.answered(size.columns)]
    secret = key()
    read = digits_read(secret.decrypt_columns(crafted_answer(size), size))
    coefficients = ternary(KeySeeds.from_bytes(secret.to_bytes())._entropy.fork("secret"), DEGREE)
    expected = [coefficients[place - np.arange(DIGITS)].tolist() for place in places]
    assert read == expected
    # 90 of 90 coefficients; of another key they are right as often as by chance.
    other = digits_read(key().decrypt_columns(crafted_answer(size), size))
    assert np.mean(np.array(other) == np.array(expected)) < 0.6


def test_under_a_new_key_a_table_answers_that_key_alone():
    first, second = key(), key()
    whole = COINS.integers(2001, 50 * 3).astype(np.int64).reshape(50, 3) - 1000
    size, vector = TableSize(50, 3), RING.draw(50, COINS)
    table, other_table = first.public.table(whole), first.public.table(whole)
    products = RING.transposed_product(whole, vector)
    for secret in (first, second):
        table.use_key(secret.public)
        masks = secret.public.table_masks(3, COINS)
        total = table.sum_over_rows(masks.values, COINS)
        total.add(secret.encrypt_rows(vector, size, COINS))
        answer = total.result()
        missed = RING.centred(secret.decrypt_columns(answer, size) + masks.shares - products)
        assert np.abs(missed).max() < MOST_SHARE_ERROR
        other = second if secret is first else first
        wrong = RING.centred(other.decrypt_columns(answer, size) + masks.shares - products)
        assert np.abs(wrong).max() > 1 << 40
    # Another table of the first key still answers under it.
    masks = first.public.table_masks(3, COINS)
    total = other_table.sum_over_rows(masks.values, COINS)
    total.add(first.encrypt_rows(vector, size, COINS))
    missed = RING.centred(first.decrypt_columns(total.result(), size) + masks.shares - products)
    assert np.abs(missed).max() < MOST_SHARE_ERROR
    with refused(CryptoError):
        table.use_key(key(Wrapping.with_modulus(59, 10, DEGREE)).public)
    table.close()
