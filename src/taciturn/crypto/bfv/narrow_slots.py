"""Narrow slots: slot-wise products modulo a small prime t, with a modulus q of half the size.

Vectors have all N slots, and travel as values at the roots: with ``w = t e + d``, e a fresh error
and d the message's ``-q m mod t`` or that plus t, the first polynomial is ``w / t - a s``, that is
``e`` plus ``q m / t`` rounded at random; a is what a fresh seed expands to. Masks and flood of the
other side are uniform modulo q together, and nothing is switched away. All else is as in ``slots``.

**Guarantee.** Nothing is told, whatever key and vector the owner made, and a training's answers are
exact but for ``parameters.narrow_right_bits``.

**Assumes.** As in ``keys``. Both sides do the same work for all numbers: what SEAL encodes, decodes
and compresses are numbers that a uniform one was added to, or t times a fresh error (``w``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, check_slots
from taciturn.crypto.bfv.modular import Grid, Multiplier, Multipliers, lowered, reduced
from taciturn.crypto.bfv.operations import ClientOps, ServerOps
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    NARROW,
    narrow_modulus,
)
from taciturn.crypto.bfv.seal import (
    Seal,
    exactly,
    new_seal,
    trimmed,
    widths,
)
from taciturn.crypto.bfv.seeds import (
    KeySeeds,
    PublicHalf,
    centred_binomial,
    expanded,
)
from taciturn.crypto.bfv.transform import transform_of
from taciturn.errors import CryptoError
from taciturn.rng import KEY_BYTES, Entropy, KeyedEntropy

_ALL = slice(None)
# Enough for t times an error, and below all primes.
_WHOLE_BITS = 38


def _narrow_bytes(primes: tuple[int, ...]) -> int:
    return DEGREE * widths(primes) + KEY_BYTES


def _check_narrow(values: IntArray, modulus: int, name: str) -> None:
    check_slots(values, DEGREE, name)
    if np.abs(values).max() > modulus // 2:
        raise CryptoError(f"{name} has a number beyond half of {modulus}")


def _filled(values: IntArray) -> IntArray:
    whole = np.zeros(DEGREE, dtype=np.int64)
    whole[: len(values)] = values
    return whole


class NarrowPublicKey:
    """Public key for elementwise products modulo a small prime."""

    def __init__(self, seal: Seal, half: PublicHalf) -> None:
        self.modulus = seal.plain_modulus
        self._seal, self._half = seal, half
        self._server_ops = ServerOps(seal, half.polynomials(seal))

    def to_bytes(self) -> bytes:
        """One polynomial and the seed of the other."""
        return self._half.to_bytes(self._seal)

    def sum_of(self, length: int) -> NarrowSum:
        """An empty sum."""
        if not 1 <= length <= DEGREE:
            raise CryptoError(f"sums of {length} numbers where 1 to {DEGREE} fit")
        return NarrowSum(self._seal, self._server_ops, length)


class NarrowSum:
    """A running sum of products, in NTT form."""

    def __init__(self, seal: Seal, server_ops: ServerOps, length: int) -> None:
        self._seal, self._server_ops, self._length = seal, server_ops, length
        self._transform = transform_of(seal.plain_modulus)
        self._sum: Any = None

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Add ``table * vector``."""
        _check_narrow(table, self._seal.plain_modulus, "a table")
        if not self._length == vector.length == len(table):
            raise CryptoError(
                f"a table of {len(table)} times a vector of {vector.length}, in a sum of "
                f"{self._length}"
            )
        seal, primes = self._seal, self._seal.primes[:-1]
        parts = exactly(vector.data, _narrow_bytes(primes), "an encrypted vector")
        first = [parts.words(DEGREE, prime) for prime in primes]
        both = np.stack([first, expanded(primes, bytes(parts.bytes(KEY_BYTES)))])
        piece = seal.load_cipher(both, seal.first_id, ntt=True)
        # SEAL refuses a product with nothing but zeros, which adds nothing.
        if not table.any():
            return
        plain = seal.load_plain(self._transform.polynomial(_filled(table)))
        seal.evaluator.transform_to_ntt_inplace(plain, seal.first_id)
        seal.evaluator.multiply_plain_inplace(piece, plain)
        if self._sum is None:
            self._sum = piece
        else:
            seal.evaluator.add_inplace(self._sum, piece)

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """The masked sum."""
        if masks.shape != (self._length,):
            raise CryptoError(f"masks of shape {masks.shape} for a sum of {self._length}")
        # Slots that are left get a mask as well: what is in them is nobody's business.
        whole = entropy.fork("slots").integers(self._seal.plain_modulus, DEGREE).view(np.int64)
        whole[: len(masks)] = masks
        covered = self._transform.polynomial(whole).view(np.int64)
        cover = self._server_ops.cover(covered, _ALL, entropy.fork("flood"))
        answer = self._server_ops.covered(self._sum, cover)
        return EncryptedAnswer(self._server_ops.written(answer, _ALL), self._length)


class NarrowSecretKey:
    """The owner's key. Its ``repr`` shows nothing."""

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        values, modulus, primes = seeds.secret_values(seal), seal.plain_modulus, seal.primes[:-1]
        self._modulus, self._primes, self._seeds = modulus, primes, seeds
        # Errors times t are beyond t: they become polynomials as numbers modulo a power of two.
        self._seal, self._whole = seal, Seal(seal.parameters, 1 << _WHOLE_BITS)
        self._secret = [
            Multipliers(part, prime) for part, prime in zip(values, primes, strict=False)
        ]
        self._scaled = [Multiplier(pow(modulus, -1, prime), prime) for prime in primes]
        self._message = Multiplier(math.prod(primes) % modulus, modulus)
        self._blinds, self._transform = Grid(primes, modulus), transform_of(modulus)
        # For seeds, errors, blinds and roundings: they change no result.
        self._entropy = KeyedEntropy.from_system()
        self._client_ops = ClientOps(seal, seal.load_secret(values), self._entropy)
        self.public = NarrowPublicKey(seal, seeds.public_half(seal, values))

    def to_bytes(self) -> bytes:
        """The seeds of both halves."""
        return self._seeds.to_bytes()

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt, as values at the roots."""
        _check_narrow(values, self._modulus, "a vector")
        rounded = self._at_roots(self._transform.polynomial(_filled(values)))
        seed = self._entropy.token(KEY_BYTES)
        uniform, parts = expanded(self._primes, seed), list[bytes]()
        for at, prime in enumerate(self._primes):
            taken = np.uint64(prime) - self._secret[at](uniform[at])
            words = lowered(self._scaled[at](rounded[at]) + taken, np.uint64(prime))
            parts.append(trimmed(words, prime))
        return EncryptedVector(b"".join([*parts, seed]), len(values))

    def _at_roots(self, polynomial: WordArray) -> WordArray:
        """The module's w: primes by N."""
        modulus, seal = np.uint64(self._modulus), self._whole
        offsets = self._entropy.integers(self._modulus, DEGREE)
        rest = lowered(self._message(polynomial) + offsets, modulus)
        errors = centred_binomial(self._entropy) * np.int64(self._modulus)
        whole = errors + offsets.view(np.int64) - rest.view(np.int64)
        plain = seal.load_plain(reduced(whole, seal.plain_modulus))
        seal.evaluator.transform_to_ntt_inplace(plain, seal.first_id)
        return seal.root_values(plain).reshape(len(self._primes), DEGREE)

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums modulo t; the same work for all of them."""
        if not 1 <= answer.length <= DEGREE:
            raise CryptoError(f"an answer of {answer.length} entries where 1 to {DEGREE} fit")
        size, modulus = 2 * DEGREE * widths(self._primes), np.uint64(self._modulus)
        parts = exactly(answer.data, size, "an answer")
        blinds = self._entropy.integers(self._modulus, DEGREE)
        words = self._client_ops.entries(parts, _ALL, self._blinds(blinds.view(np.int64)))
        numbers = self._transform.numbers(lowered(words + modulus - blinds, modulus))
        return numbers[: answer.length]

    def __repr__(self) -> str:
        return "NarrowSecretKey(<hidden>)"


@dataclass(frozen=True, slots=True)
class NarrowSlots:
    """Slots modulo a small prime, with keys of 128-bit security.

    >>> NarrowSlots(65_537).leak_bits(42)
    inf
    """

    modulus: int

    slots: ClassVar[int] = DEGREE

    def leak_bits(self, products: int) -> float:
        """Infinite: masks are uniform modulo q."""
        return math.inf

    def narrow(self, answers: Sequence[int]) -> NarrowSlots:
        """Another prime for other answers."""
        return NarrowSlots(narrow_modulus(answers))

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> NarrowSecretKey:
        """Generate a key pair."""
        return NarrowSecretKey(self._seal(bits), KeySeeds.draw(entropy, seed))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> NarrowPublicKey:
        """Read a public key received from the peer and check it, its uniform half included."""
        seal = self._seal(bits)
        return NarrowPublicKey(seal, PublicHalf.from_bytes(data, seal, seed))

    def read_secret(self, data: bytes, bits: int) -> NarrowSecretKey:
        """Read the owner's stored secret key."""
        return NarrowSecretKey(self._seal(bits), KeySeeds.from_bytes(data))

    def _seal(self, bits: int) -> Seal:
        return new_seal(NARROW, self.modulus, bits)
