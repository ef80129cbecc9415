"""Products of shared vectors with a private table, and of shared numbers: both parties' part.

Shares are integers modulo ``t = 2^k``. The owner of the key sends an encrypted vector
(``ask_product``), the owner of the table answers under fresh masks (``answer_product``); the two
serve both directions.

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


def ask_product(
    turn: int, key: SecretKey, vector: IntArray, entries: int, entropy: Entropy
) -> Program[IntArray]:
    """Send an encrypted vector; return its masked product with the peer's table, modulo t.

    ``entries`` is the length of the answer. ``entropy`` serves this exchange alone.
    """
    yield from send(SharedVector(turn, key.encrypt(vector, entries, entropy.fork("vector"))))
    return key.decrypt_shares((yield from receive_product(turn, entries)), len(vector))


def answer_product(
    turn: int, key: PublicKey, values: FloatArray, masks: IntArray, entropy: Entropy
) -> Program[None]:
    """Answer the peer's vector with its product with this side's table, under masks.

    ``masks`` has one for each entry of the answer, uniform modulo t and used once. ``entropy``
    serves this exchange alone.
    """
    stream = entropy.fork("answer")
    # Before waiting, not after: the peer is at work meanwhile.
    prepared, mask = key.prepare(values), key.mask_of(masks, stream.fork("multiples"))
    key.stock(prepared, mask, stream)
    vector = yield from receive_vector(turn, len(values[0]))
    yield from send(SharedProduct(turn, key.masked_product(prepared, vector, mask, stream)))


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
