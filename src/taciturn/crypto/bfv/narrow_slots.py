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
from typing import Any

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, check_slots
from taciturn.crypto.bfv.modular import Grid, Multiplier, lowered, reduced
from taciturn.crypto.bfv.parameters import DEGREE, NARROW, narrow_modulus
from taciturn.crypto.bfv.seal import Seal, exactly, trimmed, widths
from taciturn.crypto.bfv.seeds import KeySeeds, centred_binomial, expanded
from taciturn.crypto.bfv.slot_keys import SlotKeys, SlotPublicKey, SlotSecretKey
from taciturn.crypto.bfv.transform import Transform, transform_of
from taciturn.errors import CryptoError
from taciturn.rng import KEY_BYTES, Entropy

# Enough for t times an error, and below all primes.
_WHOLE_BITS = 38


def _check_narrow(values: IntArray, modulus: int, name: str) -> None:
    check_slots(values, DEGREE, name)
    if np.abs(values).max() > modulus // 2:
        raise CryptoError(f"{name} has a number beyond half of {modulus}")


def _filled(values: IntArray) -> IntArray:
    whole = np.zeros(DEGREE, dtype=np.int64)
    whole[: len(values)] = values
    return whole


class NarrowPublicKey(SlotPublicKey):
    """Public key of narrow slots, whose vectors are values at the roots."""

    def encoder(self, count: int) -> Transform:
        """The transform of the prime."""
        return transform_of(self.modulus)

    def check_table(self, table: IntArray) -> None:
        """Refuse numbers beyond half of the prime."""
        _check_narrow(table, self.modulus, "a table")

    def piece(self, vector: EncryptedVector) -> Any:  # noqa: ANN401 - SEAL has no types
        """Read a vector's ciphertext, whose second half a seed expands to."""
        seal, primes = self.seal, self.seal.primes[:-1]
        size = DEGREE * widths(primes) + KEY_BYTES
        parts = exactly(vector.data, size, "an encrypted vector")
        first = [parts.words(DEGREE, prime) for prime in primes]
        both = np.stack([first, expanded(primes, bytes(parts.bytes(KEY_BYTES)))])
        return seal.load_cipher(both, seal.first_id, ntt=True)

    def plaintext(self, table: IntArray) -> Any:  # noqa: ANN401
        """The polynomial of numbers that are not all zero."""
        return self.seal.load_plain(transform_of(self.modulus).polynomial(_filled(table)))


class NarrowSecretKey(SlotSecretKey):
    """The owner's key of narrow slots."""

    public_type = NarrowPublicKey

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        super().__init__(seal, seeds)
        self._modulus, self._primes = modulus, primes = seal.plain_modulus, seal.primes[:-1]
        # Errors times t are beyond t: they become polynomials as numbers modulo a power of two.
        self._whole = Seal(seal.parameters, 1 << _WHOLE_BITS)
        self._factors = [
            Multiplier(part, prime) for part, prime in zip(self._values, primes, strict=False)
        ]
        self._scaled = [Multiplier(pow(modulus, -1, prime), prime) for prime in primes]
        self._message = Multiplier(math.prod(primes) % modulus, modulus)
        self._blinds, self._transform = Grid(primes, modulus), transform_of(modulus)

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt, as values at the roots."""
        _check_narrow(values, self._modulus, "a vector")
        rounded = self._at_roots(self._transform.polynomial(_filled(values)))
        seed = self._entropy.token(KEY_BYTES)
        uniform, parts = expanded(self._primes, seed), list[bytes]()
        for at, prime in enumerate(self._primes):
            taken = np.uint64(prime) - self._factors[at](uniform[at])
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
        (parts, _), modulus = self._opened(answer), np.uint64(self._modulus)
        blinds = self._entropy.integers(self._modulus, DEGREE)
        words = self._client_ops.entries(
            parts, self._transform.places, self._blinds(blinds.view(np.int64))
        )
        numbers = self._transform.numbers(lowered(words + modulus - blinds, modulus))
        return numbers[: answer.length]


@dataclass(frozen=True, slots=True)
class NarrowSlots(SlotKeys):
    """Slots modulo a small prime, with keys of 128-bit security.

    >>> NarrowSlots(65_537).leak_bits(42)
    inf
    """

    parameters, secret_type = NARROW, NarrowSecretKey
    modulus: int

    def leak_bits(self, products: int) -> float:
        """Infinite: masks are uniform modulo q."""
        return math.inf

    def narrow(self, answers: Sequence[int]) -> NarrowSlots:
        """Another prime for other answers."""
        return NarrowSlots(narrow_modulus(answers))
