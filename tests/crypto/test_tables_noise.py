"""The noise of products with whole tables, measured exactly, beside its bounds."""

from __future__ import annotations

from math import log2, prod
from typing import Any

import numpy as np
import pytest

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.crypto.bfv.keys import BfvScheme, BfvSecretKey
from taciturn.crypto.bfv.layout import Tiling
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    LEAST_FAILURE_BITS,
    LEAST_LEAK_BITS,
    STANDARD,
    flood_half,
)
from taciturn.crypto.bfv.seal import ByteReader, Seal
from taciturn.crypto.bfv.tables import TableWorker, TileRows
from taciturn.errors import CryptoError
from taciturn.rng import SystemEntropy
from tests.crypto.bfv_noise import Opened, first_primes
from tests.crypto.schemes import key_pair
from tests.expected import refused

COINS = SystemEntropy()
RING = Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=DEGREE)
NONE = np.zeros(0, dtype=np.int64)
SIZES = {
    "one tile": TableSize(100, 50),
    "tall": TableSize(DEGREE + 800, 2),
    "wide": TableSize(40, 700),
}
TAIL = 12.0


def opened() -> Opened:
    secret, _ = key_pair("bfv", RING)
    assert isinstance(secret, BfvSecretKey)
    return Opened.of(secret)


def noise(bob: Opened, total: Any, places: slice, sums: IntArray) -> FloatArray:
    """That of a sum of products before it is covered."""
    seal, primes = bob.key.public.server_ops.seal, first_primes(bob.key)
    seal.evaluator.transform_from_ntt_inplace(total)
    words = seal.polynomials(total, len(primes))
    messages, distance = bob.noise(words, primes, np.arange(DEGREE)[places])
    assert messages == (RING.centred(sums) % (1 << RING.modulus_bits)).tolist()
    return distance


class OneAnswer(TableWorker):
    """A worker that stops at its first sum over columns."""

    def first_sum(self, parts: ByteReader) -> Any:
        total = None
        for column, piece in enumerate(self._server_ops.pieces(parts, self._tiling.columns.tiles)):
            total = self._added(total, piece, 0, column)
        return total


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_the_noise_of_both_products_is_within_its_bounds(size):
    """Entries of the largest size; the tail is wrong with a probability below 2^-85.

    With random signs the entries of an answer have nearly independent noise, at least 40 of them
    where the rounding is not the larger part: their mean beyond twice its bound, 2.5 times what it
    is for Gaussians, is a false alarm once in 10^9.
    """
    bob, tiling = opened(), Tiling.for_size(size)
    signs = 2 * COINS.integers(2, size.rows * size.columns).astype(np.int64) - 1
    whole = signs.reshape(size.rows, size.columns) << RING.matrix_bits
    held = TileRows.from_table(whole, tiling.rows)
    public = bob.key.public
    worker = OneAnswer(public.server_ops, public.to_bytes(), RING, tiling, held, 0)
    rows, columns = RING.draw(size.rows, COINS), RING.draw(size.columns, COINS)
    sent = bob.key.encrypt_rows(rows, size, COINS)
    tiles = range(tiling.rows.tiles)
    first, *_ = worker._sums_over_rows(tiles, ByteReader(sent.data), range(0), NONE, COINS)
    wide = tiling.columns.slices()[0].stop
    sums = np.einsum("ij,i->j", whole[:, :wide], rows)
    over_rows = noise(bob, first, tiling.columns.answered(wide), sums)
    sent = bob.key.encrypt_columns(columns, size, COINS)
    high = tiling.rows.slices()[0].stop
    sums = np.einsum("ij,j->i", whole[:high], columns)
    over_columns = noise(
        bob, worker.first_sum(ByteReader(sent.data)), tiling.rows.answered(high), sums
    )
    for measured, terms, beside in (
        (over_rows, size.rows, tiling.width),
        (over_columns, size.columns, tiling.height),
    ):
        mean, tail = (STANDARD.table_noise(RING, terms, beside, k) for k in (1.0, TAIL))
        largest = np.abs(measured).max()
        print(f"{size}: mean 2^{log2(np.abs(measured).mean()):.1f} <= 2^{log2(mean):.1f}")
        assert largest <= tail
        assert np.abs(measured).mean() <= 2 * mean
        # And the bound is no more than some bits beyond what there is; a few entries may be small.
        assert len(measured) < 40 or largest > tail / 2**9


@pytest.mark.parametrize("bits", [50, 59])
@pytest.mark.parametrize("matrix_bits", [12, 16, 20])
@pytest.mark.parametrize("size", [(569, 30), (39_073, 81), (1_000_000, 100), (10_000_000, 50)])
def test_leak_by_hand_from_the_real_primes(bits, matrix_bits, size):
    """Mean sizes: a standard deviation of the errors, half of every factor, Alice's zero."""
    ring, (rows, columns) = Wrapping.with_modulus(bits, matrix_bits, 1), size
    tiling = Tiling.for_size(TableSize(*size))
    high, wide = tiling.height, tiling.width
    largest, zero = 2.0**matrix_bits, 21 * (2 * DEGREE + 1)
    over_rows = largest * ((10.5 * rows * wide) ** 0.5 + rows / 2) + zero
    over_columns = largest * ((10.5 * columns * high) ** 0.5 + columns / 2) + zero
    primes = Seal(STANDARD, 1 << bits).primes[:3]
    drawn = 2 * flood_half(primes, 1 << bits)
    leak = 20 * (columns * over_rows + rows * over_columns) / drawn
    stated = STANDARD.table_leak_bits(ring, size, (high, wide), products=20)
    assert stated == pytest.approx(-log2(leak), abs=0.02)
    assert stated <= -log2(leak)
    assert stated >= LEAST_LEAK_BITS
    assert STANDARD.table_failure_bits(ring, size, (high, wide)) >= LEAST_FAILURE_BITS + 150
    assert prod(primes) > drawn << bits


def test_a_training_that_would_tell_too_much_is_refused():
    """Ten million rows fit with entries of up to 22 bits; fewer passes or rows with one more."""
    size, scheme = TableSize(10_000_000, 50), BfvScheme()
    for matrix_bits in (16, 20, 22):
        scheme.check_tables(Wrapping.with_modulus(59, matrix_bits, size.rows), size, products=20)
    ring = Wrapping.with_modulus(59, 23, size.rows)
    with refused(CryptoError, names=(20, "2^-39")):
        scheme.check_tables(ring, size, products=20)
    scheme.check_tables(ring, size, products=10)
    scheme.check_tables(ring, TableSize(10_000, 50), products=20)


def test_every_answer_has_an_encryption_of_zero_of_its_own():
    """Two equal row tiles, and the same product twice: four different second polynomials."""
    secret, public = key_pair("bfv", RING)
    size = TableSize(2 * DEGREE, 1)
    table = public.table(np.ones((size.rows, 1), dtype=np.int64))
    sent = secret.encrypt_columns(np.ones(1, dtype=np.int64), size, COINS)
    mask = np.zeros(size.rows, dtype=np.int64)
    # Of the first prime: c0's entries, then all of c1.
    answers = [table.product(sent, mask, COINS).data for _ in range(2)]
    one = 13 * 2 * DEGREE
    parts = [data[at : at + one] for data in answers for at in (0, one)]
    assert len({part[8 * DEGREE : 16 * DEGREE] for part in parts}) == 4
    # And a flood of its own: what stands beside the message differs in every entry.
    firsts = [np.frombuffer(part[: 8 * DEGREE], "<u8") for part in parts]
    assert all((one != two).mean() > 0.99 for at, one in enumerate(firsts) for two in firsts[:at])
