"""The schemes that the contract suite runs for; Paillier with small keys, which protect nothing."""

from __future__ import annotations

from functools import cache

import numpy as np

from tacit.arrays import IntArray
from tacit.crypto.base import Capacity, PublicKey, Scheme, SecretKey
from tacit.crypto.clear import ClearScheme
from tacit.crypto.paillier import PaillierScheme
from tacit.rng import Entropy, KeyedEntropy

SMALL = 512
SCHEMES: dict[str, Scheme] = {
    "clear": ClearScheme(),
    "paillier-small-key": PaillierScheme(key_bits=(SMALL,)),
}


@cache
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
    answer = public.masked_product(matrix, secret.encrypt(vector, entropy), mask, entropy)
    residues = secret.decrypt(answer)
    assert all(type(residue) is int and 0 <= residue < public.modulus for residue in residues)
    return public.unmask(residues, mask)


def oracle(matrix: IntArray, vector: IntArray) -> list[int]:
    """The product by Python's integers."""
    entries = vector.tolist()
    return [sum(a * b for a, b in zip(row, entries, strict=True)) for row in matrix.tolist()]


def ints(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)
