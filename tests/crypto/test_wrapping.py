"""Products modulo a power of two: exact whatever the vector is, under every scheme."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.arrays import IntArray
from taciturn.crypto.base import Capacity, Wrapping
from taciturn.crypto.bfv.parameters import (
    LEAST_FAILURE_BITS,
    LEAST_LEAK_BITS,
    STANDARD,
    require_fit,
)
from taciturn.crypto.paillier import PaillierPublicKey
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy, SystemEntropy
from tests.crypto.schemes import SCHEMES, key_pair
from tests.expected import refused

NAMES = list(SCHEMES)
RING = Wrapping.with_modulus(modulus_bits=50, matrix_bits=16, terms=40)
WIDE_RING = Wrapping.with_modulus(modulus_bits=59, matrix_bits=20, terms=40)


def oracle(matrix: IntArray, vector: IntArray, term: IntArray, bits: int) -> list[int]:
    half = 1 << (bits - 1)
    return [
        (sum(int(a) * int(b) for a, b in zip(row, vector, strict=True)) + int(c) + half)
        % (1 << bits)
        - half
        for row, c in zip(matrix.tolist(), term.tolist(), strict=True)
    ]


def exchanged(
    name: str,
    ring: Wrapping,
    matrix: IntArray,
    vector: IntArray,
    term: IntArray,
    entropy: Entropy,
    *,
    ahead: bool = False,
) -> IntArray:
    secret, public = key_pair(name, ring)
    mask, prepared = public.mask_of(term, entropy), public.prepare(matrix)
    if ahead:
        public.stock(prepared, mask, entropy)
    sent = secret.encrypt(vector, len(matrix), entropy)
    answer = public.masked_product(prepared, sent, mask, entropy)
    return secret.decrypt_shares(answer, len(vector))


@pytest.mark.parametrize("ring", [RING, WIDE_RING], ids=["narrow", "wide"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12)
@given(
    rows=st.integers(1, 33),
    length=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    ahead=st.booleans(),
)
def test_products_of_uniform_vectors_are_exact_modulo_the_power(
    name, ring, rows, length, seed, ahead
):
    entropy = KeyedEntropy.from_seed(seed)
    limit = 1 << ring.matrix_bits
    matrix = entropy.integers(2 * limit + 1, rows * length).astype(np.int64) - limit
    matrix = matrix.reshape(rows, length)
    vector, term = ring.draw(length, entropy), ring.draw(rows, entropy)
    product = exchanged(name, ring, matrix, vector, term, entropy, ahead=ahead)
    assert product.tolist() == oracle(matrix, vector, term, ring.modulus_bits)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_of_everything_is_exact(name, sign):
    matrix = np.full((5, RING.terms), sign << RING.matrix_bits)
    vector = np.full(RING.terms, -(1 << RING.vector_bits))
    term = np.array([0, -1, 1, (1 << 49) - 1, -(1 << 49)])
    product = exchanged(name, RING, matrix, vector, term, SystemEntropy())
    assert product.tolist() == oracle(matrix, vector, term, 50)


def test_draws_cover_the_ring_evenly():
    """The chance that a fair draw fails this is below 1e-9 (a deviation of 6 sigma)."""
    drawn = Wrapping.with_modulus(8, 1, 1).draw(25_600, KeyedEntropy.from_seed(1))
    counts = np.bincount(drawn + 128, minlength=256)
    assert counts.sum() == 25_600
    assert np.abs(counts - 100).max() < 60


@pytest.mark.parametrize("bits", [50, 59])
def test_pailliers_masks_are_the_residue_plus_a_multiple_of_the_modulus(bits):
    """The multiples have 64 bits more than the products they hide."""
    ring = Wrapping.with_modulus(bits, 16, 40)
    _, public = key_pair("paillier-small-key", ring)
    residues = ring.draw(200, KeyedEntropy.from_seed(2))
    assert isinstance(public, PaillierPublicKey)
    masks = public.mask_of(residues, KeyedEntropy.from_seed(3)).values
    assert ring.reduced(masks).tolist() == residues.tolist()
    multiples = [mask >> bits for mask in masks]
    hidden = 1 << (ring.product_bits + 1 - bits)
    assert max(multiples) > (hidden << 64) * 0.9
    assert len(set(multiples)) == 200
    assert public.packing.offset % (1 << bits) == 0


@pytest.mark.parametrize(("bits", "matrix_bits"), [(50, 12), (50, 24), (51, 20), (59, 20)])
def test_the_bounds_hold_for_messages_of_full_range(bits, matrix_bits):
    ring = Wrapping.with_modulus(bits, matrix_bits, 81)
    assert require_fit(ring).plain_modulus(ring) == 1 << bits
    assert STANDARD.failure_bits(ring) >= LEAST_FAILURE_BITS
    assert STANDARD.leak_bits(ring, entries=32) >= LEAST_LEAK_BITS + 20


@pytest.mark.parametrize("name", NAMES)
def test_shares_need_a_key_that_wraps(name):
    secret, public = key_pair(name, Capacity(8, 8, 4))
    entropy = SystemEntropy()
    prepared, mask = public.prepare(np.ones((1, 2), dtype=np.int64)), public.draw_mask(1, entropy)
    sent = secret.encrypt(np.ones(2, dtype=np.int64), 1, entropy)
    answer = public.masked_product(prepared, sent, mask, entropy)
    with refused(CryptoError):
        secret.decrypt_shares(answer, 2)


@pytest.mark.parametrize(
    "sizes", [(63, 16, 4), (20, 19, 4), (50, 0, 4), (50, 16, 0)], ids=lambda sizes: str(sizes)
)
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(CryptoError):
        Wrapping.with_modulus(*sizes)
