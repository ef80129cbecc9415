"""Products of shared vectors with a private table, and of shared numbers: both parties' part.

Shares are integers modulo ``t = 2^k``. The owner of the key sends an encrypted vector
(``VectorRequest``), the owner of the table answers under fresh masks (``MaskedMatrix``); one
program serves both directions.

**The sigmoid** (``numerics.periodic_sigmoid``). Bob encrypts sines and cosines of his share of a
score, Alice multiplies them slot by slot with those of her share. A residue is the sum of a row's
products. Number j of a block of rows is in ciphertext j, so Alice sums the products, masks the sum
and answers once; her share is minus the mask. With few rows a ciphertext holds several numbers of
each row (``SlotBlock``), and each party adds up its part of the sum. Bob adds the labels.

In most passes these sums are modulo a small prime, and a carry brings the shares to ``2^k``
(``numerics.shared_fraction.Widening``). Carries, and residues where a loss is opened, are modulo a
prime p that is ``delta`` below ``2^k`` (``SlotScheme.modulus``). If Alice's share s and Bob's s'
lie between 0 and p, then ``s + s'`` is ``r' + p``, except with probability ``|r'| / p``, when it is
``r'`` or ``r' + 2 p``. Alice subtracts p; modulo ``2^k`` the result is r', or off by delta, which
is at most two residues with 120,000 rows. That happens to one residue in 2^35 (2^40 with many
rows), and is not corrected.

**Data independence.** Each party receives ciphertexts under the other's key and decrypts numbers
that the other's fresh mask makes uniform. Both do the same work for all values, and nothing that
either decrypts changes what it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    EncryptedAnswer,
    EncryptedVector,
    PublicKey,
    Scheme,
    SecretKey,
    SlotScheme,
    Wrapping,
)
from taciturn.crypto.bfv.modular import lowered
from taciturn.errors import ConfigError
from taciturn.protocol.messages import SharedProduct, SharedVector
from taciturn.protocol.steps import Program, receive_at, require_entries, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

LEAST_LEAK_BITS = 40
"""Bound on what all answers of a training reveal of Alice's shares, as 2^-bits."""
MOST_WAVES = 128
Numbers: TypeAlias = Callable[[slice], IntArray]
"""Function from rows to the numbers that one side multiplies, one row of them each."""
_EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Columns:
    """Public size of one side's table; no value in it exceeds ``2^bits``."""

    count: int
    bits: int


def slots_of(scheme: Scheme) -> SlotScheme:
    """The scheme of products number by number; refuse a scheme without one."""
    slots = scheme.number_by_number
    if slots is None:
        raise ConfigError(
            f"{scheme.name} has no products number by number, which the sigmoid needs",
            setting="scheme",
            hint=Hint("use {scheme}", scheme="bfv"),
        )
    return slots


def shares_modulo_power(sums: WordArray, modulus: int, ring: Wrapping, *, negate: bool) -> IntArray:
    """Convert shares modulo a prime just below ``2^k`` to shares modulo ``2^k``.

    The module's docstring has the error. ``negate`` is true on the side that subtracts the prime.
    """
    return ring.centred(sums.view(np.int64) - np.int64(modulus if negate else 0))


def shares_modulo_prime(
    shares: IntArray, modulus: int, modulus_bits: int, *, negate: bool
) -> WordArray:
    """Convert shares modulo ``2^k`` of a number x to shares modulo a prime just below.

    ``negate`` is true on the side that subtracts ``2^k``. With probability ``|x| / 2^k`` the sum is
    off by the distance of the prime from ``2^k``.
    """
    prime, whole = np.uint64(modulus), 1 << modulus_bits
    parts = lowered(np.bitwise_and(shares, np.int64(whole - 1)).view(np.uint64), prime)
    return lowered(parts + np.uint64(-whole % modulus if negate else 0), prime)


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """Key owner's part of an exchange: a vector, and the length of the answer."""

    key: SecretKey
    vector: IntArray
    entries: int

    def encrypted(self, entropy: Entropy) -> EncryptedVector:
        """Encrypt the vector."""
        return self.key.encrypt(self.vector, self.entries, entropy)

    def decrypted(self, answer: EncryptedAnswer) -> IntArray:
        """Decrypt the answer, modulo t."""
        return self.key.decrypt_shares(answer, len(self.vector))


@dataclass(frozen=True, slots=True)
class MaskedMatrix:
    """Table owner's part of an exchange: the factors, and one mask for each entry of the answer.

    ``masks`` are uniform modulo t and used once.
    """

    key: PublicKey
    values: IntArray | FloatArray
    masks: IntArray

    @property
    def length(self) -> int:
        """Entries of the vector."""
        return len(self.values[0])

    def ready(self, entropy: Entropy) -> Callable[[EncryptedVector], EncryptedAnswer]:
        """Prepare the table and its covers; return the function from a vector to its answer."""
        prepared = self.key.prepare(self.values)
        mask = self.key.mask_of(self.masks, entropy.fork("multiples"))
        self.key.stock(prepared, mask, entropy)
        return lambda vector: self.key.masked_product(prepared, vector, mask, entropy)


def exchange(
    turn: int, question: VectorRequest | None, matrix: MaskedMatrix | None, entropy: Entropy
) -> Program[IntArray]:
    """Run one exchange in one direction or both; return the answer to this side's vector.

    ``question`` is None where this side sends no vector, ``matrix`` where the peer sends none.
    ``entropy`` serves this exchange alone.
    """
    if question is not None:
        yield from send(SharedVector(turn, question.encrypted(entropy.fork("vector"))))
    if matrix is not None:
        # Before waiting, not after: the peer is at work meanwhile.
        product = matrix.ready(entropy.fork("answer"))
        vector = yield from receive_vector(turn, matrix.length)
        yield from send(SharedProduct(turn, product(vector)))
    if question is None:
        return _EMPTY
    return question.decrypted((yield from receive_product(turn, question.entries)))


def receive_vector(turn: int, length: int) -> Program[EncryptedVector]:
    """Waits for the peer's vector of a turn."""
    vector = (yield from receive_at(SharedVector, turn)).vector
    require_entries("vector", vector.length, length)
    return vector


def receive_product(turn: int, entries: int) -> Program[EncryptedAnswer]:
    """Waits for the peer's answer to this side's vector of a turn."""
    answer = (yield from receive_at(SharedProduct, turn)).answer
    require_entries("answer", answer.length, entries)
    return answer


def ring_words(shares: IntArray, bits: int) -> WordArray:
    """Represent shares modulo ``2^bits`` as non-negative words."""
    words: WordArray = np.bitwise_and(shares, np.int64((1 << bits) - 1)).view(np.uint64)
    return words
