"""Slot-wise products: up to N numbers in a ciphertext, one per slot.

Numbers become polynomials in y (``slot_encoder``); a ciphertext's first half holds no other
coefficient.

The owner encrypts with its secret key, as in ``keys``; the other multiplies by polynomials of its
own numbers, sums the products of several ciphertexts, adds an encryption of its masks and a flood
on *every* coefficient that is sent, and switches the dropped primes away. ``parameters`` has the
bounds on failures and on what an answer tells.

**Guarantee.** As in ``keys``: exact but for a probability below 2^-100; of a table no more than
``parameters.slot_leak_bits`` is told.

**Assumes.** As in ``keys``. Both sides do the same work for all numbers: what SEAL encodes, decodes
and compresses are numbers that a uniform one was added to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, check_slots
from taciturn.crypto.bfv.modular import Grid, lowered, reduced
from taciturn.crypto.bfv.narrow_slots import NarrowSlots
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    SLOT_MODULUS,
    SLOTS,
    narrow_modulus,
    slot_leak_bits,
)
from taciturn.crypto.bfv.seal import SEED_BYTES, Seal, exactly, trimmed, widths
from taciturn.crypto.bfv.seeds import KeySeeds, PublicHalf
from taciturn.crypto.bfv.slot_encoder import SlotEncoder, slots_for
from taciturn.crypto.bfv.slot_keys import Encoder, SlotKeys, SlotPublicKey, SlotSecretKey
from taciturn.rng import Entropy

_T = np.uint64(SLOT_MODULUS)


class BfvSlotPublicKey(SlotPublicKey):
    """Public key of wide slots; see the module's guarantee."""

    def __init__(self, seal: Seal, half: PublicHalf) -> None:
        super().__init__(seal, half)
        # This key's own: each has its file, and parties may be threads of one process.
        self._encoders: dict[int, SlotEncoder] = {}

    def encoder(self, count: int) -> SlotEncoder:
        """The encoder of the fewest slots that hold the numbers."""
        slots = slots_for(count)
        if slots not in self._encoders:
            self._encoders[slots] = SlotEncoder(slots)
        return self._encoders[slots]

    def piece(self, vector: EncryptedVector) -> Any:  # noqa: ANN401 - SEAL has no types
        """Read a vector's ciphertext, of whose first half the coefficients in y were sent."""
        encoder, primes = self.encoder(vector.length), self.seal.primes[:-1]
        size = encoder.slots * widths(primes) + SEED_BYTES
        parts = exactly(vector.data, size, "an encrypted vector")
        first = np.zeros((len(primes), DEGREE), dtype=np.uint64)
        for at, prime in enumerate(primes):
            first[at, encoder.places] = parts.words(encoder.slots, prime)
        piece = self.seal.load_seeded(first, bytes(parts.bytes(SEED_BYTES)))
        self.seal.evaluator.transform_to_ntt_inplace(piece)
        return piece

    def plaintext(self, table: IntArray) -> Any:  # noqa: ANN401
        """The polynomial in y of numbers that are not all zero."""
        encoder = self.encoder(len(table))
        numbers = encoder.filled(reduced(table, SLOT_MODULUS))
        if encoder.slots == DEGREE:
            # y is x: the polynomial need not leave SEAL.
            return encoder.plaintext(numbers)
        whole = np.zeros(DEGREE, dtype=np.uint64)
        whole[encoder.places] = encoder.polynomial(numbers)
        return self.seal.load_plain(whole)


class BfvSlotSecretKey(SlotSecretKey):
    """The owner's key of wide slots."""

    public: BfvSlotPublicKey
    public_type = BfvSlotPublicKey

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        super().__init__(seal, seeds)
        self._encryptor = sealapi.Encryptor(seal.context, self._secret)
        self._grid = Grid(seal.primes[:-1], SLOT_MODULUS)
        self._blinds = Grid(seal.primes[: len(SLOTS.kept)], SLOT_MODULUS)

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt: a fresh encryption of zero plus the numbers' polynomial on the grid of q/t."""
        check_slots(values, DEGREE, "a vector")
        encoder = self.public.encoder(len(values))
        polynomial = self._blinded(encoder, encoder.filled(reduced(values, SLOT_MODULUS)))
        points = self._grid.at_random(polynomial, self._uniform(encoder))
        first, seed = self._seal.seeded(self._encryptor.encrypt_zero_symmetric())
        parts = [
            trimmed(lowered(words[encoder.places] + points[at], np.uint64(prime)), prime)
            for at, (words, prime) in enumerate(zip(first, self._seal.primes[:-1], strict=True))
        ]
        return EncryptedVector(b"".join([*parts, seed]), len(values))

    def _blinded(self, encoder: SlotEncoder, values: WordArray) -> WordArray:
        """The polynomial of numbers, of which SEAL sees uniform ones only."""
        blinds = self._uniform(encoder)
        summed = encoder.polynomial(lowered(values + blinds, _T))
        return lowered(summed + _T - encoder.polynomial(blinds), _T)

    def _uniform(self, encoder: Encoder) -> WordArray:
        """A uniform number for each slot, or for each coefficient."""
        return self._entropy.integers(SLOT_MODULUS, encoder.slots)

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums modulo t; the same work for all of them."""
        parts, encoder = self._opened(answer)
        blinds = self._uniform(encoder)
        shifts = self._blinds(encoder.polynomial(blinds).view(np.int64))
        words = self._client_ops.entries(parts, encoder.places, shifts)
        return lowered(encoder.numbers(words) + _T - blinds, _T)[: answer.length]


@dataclass(frozen=True, slots=True)
class BfvSlots(SlotKeys):
    """Slots under BFV, with keys of 128-bit security.

    >>> BfvSlots().slots
    8192
    """

    parameters, secret_type = SLOTS, BfvSlotSecretKey
    modulus: ClassVar[int] = SLOT_MODULUS

    def leak_bits(self, products: int) -> float:
        """The bound of ``parameters``."""
        return slot_leak_bits(products)

    def narrow(self, answers: Sequence[int]) -> NarrowSlots:
        """The largest of the small primes of ``parameters`` that is right."""
        return NarrowSlots(narrow_modulus(answers))
