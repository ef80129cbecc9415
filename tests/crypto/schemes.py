"""The schemes of the contract suite; Paillier with small keys, which protect nothing."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import (
    Capacity,
    EncryptedAnswer,
    EncryptedVector,
    Mask,
    PublicKey,
    Scheme,
    SecretKey,
    Table,
)
from taciturn.crypto.bfv.keys import BfvScheme
from taciturn.crypto.clear import ClearScheme
from taciturn.crypto.paillier import PaillierScheme
from taciturn.rng import Entropy, KeyedEntropy

SMALL = 512
MOST_BITS = {"bfv": 58}
"""The widest products, where that is less than 62."""
SCHEMES: dict[str, Scheme] = {
    "bfv": BfvScheme(),
    "clear": ClearScheme(),
    "paillier-small-key": PaillierScheme(key_bits=(SMALL,)),
}


@lru_cache(maxsize=16)
def key_pair(name: str, capacity: Capacity, seed: int = 0) -> tuple[SecretKey, PublicKey]:
    """Bob's key, and Alice's as she reads it from the wire."""
    scheme = SCHEMES[name]
    bits = scheme.key_bits[0]
    secret = scheme.generate(bits, capacity, KeyedEntropy.from_seed(seed))
    return secret, scheme.read_public(secret.public.to_bytes(), bits, capacity)


def exchange(
    secret: SecretKey, public: PublicKey, matrix: IntArray, vector: IntArray, entropy: Entropy
) -> IntArray:
    """One whole conversation."""
    mask = public.draw_mask(len(matrix), entropy)
    answer = answered(secret, public, matrix, vector, mask, entropy)
    masked = secret.decrypt(answer, len(vector))
    assert all(type(entry) is int and 0 <= entry < public.modulus for entry in masked)
    return public.unmask(masked, mask)


def answered(
    secret: SecretKey,
    public: PublicKey,
    matrix: IntArray,
    vector: IntArray,
    mask: Mask,
    entropy: Entropy,
) -> EncryptedAnswer:
    """What Alice answers to a vector of Bob's."""
    encrypted = secret.encrypt(vector, len(matrix), entropy)
    return public.masked_product(public.prepare(matrix), encrypted, mask, entropy)


def transposed_product(
    table: Table, vector: EncryptedVector, mask: IntArray, entropy: Entropy
) -> EncryptedAnswer:
    """``table.T @ vector + mask``, for a table whose rows are one part."""
    total = table.sum_over_rows(mask, entropy)
    total.add(vector)
    return total.result()


def oracle(matrix: IntArray, vector: IntArray) -> list[int]:
    """The product by Python's integers."""
    entries = vector.tolist()
    return [sum(a * b for a, b in zip(row, entries, strict=True)) for row in matrix.tolist()]


def fits(name: str, capacity: Capacity) -> bool:
    """Whether the scheme takes products that wide."""
    return capacity.product_bits <= MOST_BITS.get(name, 62)


def ints(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)
