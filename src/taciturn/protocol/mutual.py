"""Products of shared vectors with one party's columns: what both parties do alike.

Shares live modulo ``t = 2^k``. Who owns the key asks (``VectorRequest``), who owns the columns
answers (``MaskedMatrix``) and draws the masks; the two halves of an exchange are one program,
mirrored.

**The sigmoid.** ``numerics.periodic_sigmoid``: Bob's numbers of his share, under a key of his for
products number by number, times Alice's of hers. A residue is the sum of a row's products. Number j
of a block of rows stands in ciphertext j, so that she sums the products, masks the sum, and answers
once; her share is minus the mask. Of few rows a ciphertext holds several numbers each
(``SlotBlock``), and each side sums what is left. The label, times the step, is Bob's to add.

Those sums are modulo a prime p, and shares live modulo ``2^k``, of which p is ``delta`` less
(``SlotScheme.modulus``). With her share s taken from 0 to p and his likewise, ``s + s'`` is
``r' + p``, but for a chance of ``|r'| / p``, when it is ``r'`` or ``r' + 2 p``: she takes p off,
and what is left modulo ``2^k`` is r', or off by delta, at most two residues with 120,000 rows. That
happens to one of 2^35 residues, of 2^40 with many rows, and needs no correction.

**What is told.** Each side receives ciphertexts of the other's key, and decrypts numbers that the
other's fresh mask makes uniform. Both do the same work for all values, and nothing that either
decrypts changes what it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

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
from taciturn.crypto.bfv.modular import block_sums, lowered
from taciturn.errors import ConfigError, RemoteProtocolError
from taciturn.protocol.keyrings import own_keys, peer_keys
from taciturn.protocol.messages import SharedProduct, SharedVector
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

LEAST_LEAK_BITS = 40
"""What all answers of a training together may tell of a table, as 2^-bits."""
MOST_WAVES = 128
Numbers: TypeAlias = Callable[[slice], IntArray]
"""The numbers of some rows that one side multiplies, a row of them for each."""
_EMPTY = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Columns:
    """What both sides know of one side's table: no value in it exceeds ``2^bits``."""

    count: int
    bits: int


def slots_of(scheme: Scheme) -> SlotScheme:
    """The scheme's products number by number."""
    slots = scheme.number_by_number
    if slots is None:
        raise ConfigError(
            f"{scheme.name} has no products number by number, which the sigmoid needs",
            setting="scheme",
            hint=Hint("use {scheme}", scheme="bfv"),
        )
    return slots


@dataclass(frozen=True, slots=True)
class SlotBlock:
    """Rows whose numbers stand in the same slots of some ciphertexts.

    A ciphertext holds ``groups`` numbers of each row, number after number, so that products of
    several ciphertexts are summed slot by slot, and one answer serves them all.
    """

    rows: slice
    groups: int
    ciphertexts: int

    @property
    def length(self) -> int:
        """How many numbers a ciphertext holds."""
        start, stop = self.rows.start, self.rows.stop
        return self.groups * int(stop - start)

    def vectors(self, numbers: IntArray) -> IntArray:
        """The numbers of each row, in the slots of each ciphertext; what is left is zero."""
        rows, entries = numbers.shape
        slots = np.zeros((self.ciphertexts * self.groups, rows), dtype=np.int64)
        slots[:entries] = numbers.T
        return slots.reshape(self.ciphertexts, self.length)

    def sums(self, slots: WordArray, modulus: int) -> WordArray:
        """The sum of each row's slots, modulo a prime."""
        return block_sums(slots.reshape(self.groups, -1).T, modulus)


def slot_blocks(slots: SlotScheme, rows: int, entries: int) -> list[SlotBlock]:
    """How the numbers of all rows, ``entries`` a row, lie in ciphertexts.

    >>> from taciturn.crypto.bfv.slots import BfvSlots
    >>> for block in slot_blocks(BfvSlots(), 9000, 42):
    ...     print(block.rows.start, block.rows.stop, block.groups, block.ciphertexts)
    0 8192 1 42
    8192 9000 9 5
    """
    most, blocks = slots.slots, []
    rest = _few_ciphertexts(rows % most, entries, most) if rows % most else []
    start = 0
    for count in [most] * (rows // most) + rest:
        ciphertexts = _ciphertexts(count, entries, most)
        place = slice(start, start + count)
        blocks.append(SlotBlock(place, -(-entries // ciphertexts), ciphertexts))
        start += count
    return blocks


def _ciphertexts(rows: int, entries: int, most: int) -> int:
    return -(-entries // min(most // rows, entries))


def _few_ciphertexts(rows: int, entries: int, most: int) -> list[int]:
    """Sizes of blocks: one for all rows, or a smaller one that leaves no slot empty, and the rest.

    Whichever has fewer ciphertexts, the answers included.
    """

    def cost(sizes: list[int]) -> int:
        return sum(_ciphertexts(size, entries, most) + 1 for size in sizes)

    groups = most // rows
    if groups >= entries:
        return [rows]
    first = most // (groups + 1)
    return min([rows], [first, *_few_ciphertexts(rows - first, entries, most)], key=cost)


def shares_modulo_power(sums: WordArray, modulus: int, ring: Wrapping, *, less: bool) -> IntArray:
    """Shares modulo a prime just below ``2^k``, as shares modulo ``2^k``; see the file's text.

    ``less`` says whether this side takes the prime off: one of the two does.
    """
    return ring.centred(sums.view(np.int64) - np.int64(modulus if less else 0))


def shares_modulo_prime(
    shares: IntArray, modulus: int, modulus_bits: int, *, less: bool
) -> WordArray:
    """The other way: shares modulo ``2^k`` of a number x, as shares modulo a prime just below.

    ``less`` says whether this side takes ``2^k`` off. That is right but for a chance of ``|x| /
    2^k``, when the sum is off by the distance of the prime from ``2^k``.
    """
    prime, whole = np.uint64(modulus), 1 << modulus_bits
    parts = lowered(np.bitwise_and(shares, np.int64(whole - 1)).view(np.uint64), prime)
    return lowered(parts + np.uint64(-whole % modulus if less else 0), prime)


def offer_key(terms: Terms, ring: Wrapping, entropy: Entropy, seed: bytes) -> Program[SecretKey]:
    """A new key, with its public half on its way to the peer.

    ``seed`` is that of its uniform half: ``batch_seed.key_seed`` of the joint seed and the owner's
    role.
    """
    return (yield from own_keys(terms, ring, seed).offer(entropy))


def receive_key(terms: Terms, ring: Wrapping, seed: bytes) -> Program[PublicKey]:
    """The peer's public key, whose uniform half must be that of the seed."""
    return (yield from peer_keys(terms, ring, seed).receive())


class Requester(Protocol):
    """What one side of an exchange asks: a vector under its own key."""

    @property
    def entries(self) -> int:
        """How many entries the answer has."""

    def encrypted(self, entropy: Entropy) -> EncryptedVector:
        """The vector for the peer."""

    def decrypted(self, answer: EncryptedAnswer) -> IntArray:
        """What the answer holds, modulo t."""


class Multiplier(Protocol):
    """What the other side multiplies it with."""

    @property
    def length(self) -> int:
        """How many entries the vector has."""

    def ready(self, entropy: Entropy) -> Callable[[EncryptedVector], EncryptedAnswer]:
        """The product, with all done that can be done before the vector is there."""


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """A vector under its owner's key, for an answer of ``entries`` entries."""

    key: SecretKey
    vector: IntArray
    entries: int

    def encrypted(self, entropy: Entropy) -> EncryptedVector:
        """The vector for the peer."""
        return self.key.encrypt(self.vector, self.entries, entropy)

    def decrypted(self, answer: EncryptedAnswer) -> IntArray:
        """What the answer holds, modulo t."""
        return self.key.decrypt_shares(answer, len(self.vector))


@dataclass(frozen=True, slots=True)
class MaskedMatrix:
    """What a question of the peer's is multiplied with.

    ``masks`` has one for each entry of the answer; uniform modulo t, and used once.
    """

    key: PublicKey
    values: IntArray | FloatArray
    masks: IntArray

    @property
    def length(self) -> int:
        """How many entries the vector has."""
        return len(self.values[0])

    def ready(self, entropy: Entropy) -> Callable[[EncryptedVector], EncryptedAnswer]:
        """The product; covers are made ahead."""
        prepared = self.key.prepare(self.values)
        mask = self.key.mask_of(self.masks, entropy.fork("multiples"))
        self.key.stock(prepared, mask, entropy)
        return lambda vector: self.key.masked_product(prepared, vector, mask, entropy)


def exchange(
    turn: int, question: Requester | None, matrix: Multiplier | None, entropy: Entropy
) -> Program[IntArray]:
    """Asks the peer, answers it, or both; returns the answer to this side's question.

    ``question`` is None where this side does not ask, ``matrix`` where the peer does not. ``coins``
    are for this exchange alone.
    """
    if question is not None:
        yield from send(SharedVector(turn, question.encrypted(entropy.fork("vector"))))
    if matrix is not None:
        yield from _answer(turn, matrix, entropy.fork("answer"))
    if question is None:
        return _EMPTY
    message = yield from receive(SharedProduct)
    require_turn("SharedProduct", message.turn, turn)
    return question.decrypted(sized_answer(message.answer, question.entries))


def _answer(turn: int, matrix: Multiplier, entropy: Entropy) -> Program[None]:
    # Before waiting, not after: the peer is at work meanwhile.
    product = matrix.ready(entropy)
    message = yield from receive(SharedVector)
    require_turn("SharedVector", message.turn, turn)
    answer = product(sized_vector(message.vector, matrix.length))
    yield from send(SharedProduct(turn, answer))


def sized_vector(vector: EncryptedVector, length: int) -> EncryptedVector:
    """The vector, if it has as many entries as are due: a matter of structure, not of content."""
    if vector.length != length:
        raise RemoteProtocolError(
            f"the peer's vector has {vector.length} entries where {length} are expected"
        )
    return vector


def sized_answer(answer: EncryptedAnswer, entries: int) -> EncryptedAnswer:
    """The answer, if it has as many entries as are due: a matter of structure, not of content."""
    if answer.length != entries:
        raise RemoteProtocolError(
            f"the peer answers with {answer.length} entries where {entries} are expected"
        )
    return answer
