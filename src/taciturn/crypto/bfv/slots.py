"""Slot-wise products: up to N numbers in a ciphertext, one per slot.

Modulo a prime t that is 1 modulo 2n a polynomial is the n numbers that it takes at the roots of
``y^n + 1``, and a product of polynomials is the products of these (SEAL's ``BatchEncoder``). n is
the smallest power of two that holds the numbers, and y is ``x^(N/n)``: a polynomial in y has every
``N/n``-th coefficient alone, and so has its product with another. The first half of a ciphertext
need therefore hold no other coefficient: what is multiplied with a polynomial in y, in these
places, depends on these places alone. The second half is whole, as ever.

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
from taciturn.crypto.bfv.operations import ClientOps, ServerOps
from taciturn.crypto.bfv.parameters import (
    DEGREE,
    SLOT_MODULUS,
    SLOTS,
    narrow_modulus,
    slot_leak_bits,
)
from taciturn.crypto.bfv.seal import (
    SEED_BYTES,
    Plaintexts,
    Seal,
    bytes_of,
    exactly,
    new_seal,
    width,
    widths,
)
from taciturn.crypto.bfv.seeds import (
    KeySeeds,
    PublicHalf,
)
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy

LEAST_SLOTS = 64
_ALL = slice(None)
_T = np.uint64(SLOT_MODULUS)


def slots_for(count: int) -> int:
    """Number of slots for ``count`` numbers: a power of two, at least ``LEAST_SLOTS``.

    >>> slots_for(896), slots_for(1025), slots_for(1)
    (1024, 2048, 64)
    """
    return max(LEAST_SLOTS, 1 << (count - 1).bit_length())


class SlotEncoder:
    """Converter of numbers in n slots, a power of two, to polynomials in y; holds no secret."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.places = slice(0, DEGREE, DEGREE // slots)
        self._seal = Plaintexts.for_encoding(slots, SLOT_MODULUS)
        self._encoder = sealapi.BatchEncoder(self._seal.context)

    def plaintext(self, values: WordArray) -> Any:  # noqa: ANN401 - SEAL has no types
        """The polynomial in y of n numbers below t, for SEAL."""
        plain = sealapi.Plaintext()
        self._encoder.encode(values.tolist(), plain)
        return plain

    def polynomial(self, values: WordArray) -> WordArray:
        """Coefficients in y of n numbers below t."""
        return self._seal.coefficients(self.plaintext(values))

    def numbers(self, coefficients: WordArray) -> WordArray:
        """Numbers of coefficients in y."""
        plain = self._seal.load_plain(coefficients)
        return np.array(self._encoder.decode_uint64(plain), dtype=np.uint64)

    def filled(self, values: WordArray) -> WordArray:
        """The numbers, padded with zeros to all slots."""
        whole = np.zeros(self.slots, dtype=np.uint64)
        whole[: len(values)] = values
        return whole

    def uniform(self, entropy: Entropy) -> WordArray:
        """A uniform number for each slot, or for each coefficient."""
        return entropy.integers(SLOT_MODULUS, self.slots)


class SlotEncoders:
    """Encoders of one key: each has its own file, and parties may be threads of one process."""

    def __init__(self) -> None:
        self._made: dict[int, SlotEncoder] = {}

    def for_count(self, count: int) -> SlotEncoder:
        """The encoder for ``count`` numbers."""
        slots = slots_for(count)
        if slots not in self._made:
            self._made[slots] = SlotEncoder(slots)
        return self._made[slots]


class BfvSlotPublicKey:
    """Public key for elementwise products; see the module's guarantee."""

    def __init__(self, seal: Seal, half: PublicHalf) -> None:
        self.modulus = seal.plain_modulus
        self._seal = seal
        self._half = half
        self._server_ops = ServerOps(seal, half.polynomials(seal))
        self._encoders = SlotEncoders()

    def to_bytes(self) -> bytes:
        """One polynomial and the seed of the other."""
        return self._half.to_bytes(self._seal)

    def sum_of(self, length: int) -> BfvSlotSum:
        """An empty sum."""
        if not 1 <= length <= DEGREE:
            raise CryptoError(f"sums of {length} numbers where 1 to {DEGREE} fit")
        return BfvSlotSum(self._seal, self._server_ops, self._encoders.for_count(length), length)


class BfvSlotSum:
    """A running sum of products under one public key: re-randomised, masked and flooded once."""

    def __init__(
        self, seal: Seal, server_ops: ServerOps, encoder: SlotEncoder, length: int
    ) -> None:
        self._seal, self._server_ops = seal, server_ops
        self._encoder, self._length = encoder, length
        self._sum: Any = None

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Add ``table * vector``."""
        check_slots(table, DEGREE, "a table")
        if not self._length == vector.length == len(table):
            raise CryptoError(
                f"a table of {len(table)} times a vector of {vector.length}, in a sum of "
                f"{self._length}"
            )
        piece = self._piece(vector)
        # SEAL refuses a product with nothing but zeros, which adds nothing.
        if not table.any():
            return
        product = self._times(piece, table)
        if self._sum is None:
            self._sum = product
        else:
            self._seal.evaluator.add_inplace(self._sum, product)

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """The masked sum, switched to the kept primes."""
        if masks.shape != (self._length,):
            raise CryptoError(f"masks of shape {masks.shape} for a sum of {self._length}")
        encoder = self._encoder
        # Slots that are left get a mask as well: what is in them is nobody's business.
        whole = encoder.uniform(entropy.fork("slots"))
        whole[: len(masks)] = masks.astype(np.uint64)
        covered = encoder.polynomial(whole).view(np.int64)
        cover = self._server_ops.cover(covered, encoder.places, entropy.fork("flood"))
        answer = self._server_ops.covered(self._sum, cover)
        return EncryptedAnswer(self._server_ops.written(answer, encoder.places), self._length)

    def _piece(self, vector: EncryptedVector) -> Any:  # noqa: ANN401
        encoder, primes = self._encoder, self._seal.primes[:-1]
        size = encoder.slots * widths(primes) + SEED_BYTES
        parts = exactly(vector.data, size, "an encrypted vector")
        first = np.zeros((len(primes), DEGREE), dtype=np.uint64)
        for at, prime in enumerate(primes):
            first[at, encoder.places] = parts.words(encoder.slots, prime)
        piece = self._seal.load_seeded(first, bytes(parts.bytes(SEED_BYTES)))
        self._seal.evaluator.transform_to_ntt_inplace(piece)
        return piece

    def _times(self, piece: Any, table: IntArray) -> Any:  # noqa: ANN401
        encoder, evaluator = self._encoder, self._seal.evaluator
        numbers = encoder.filled(reduced(table, SLOT_MODULUS))
        if encoder.slots == DEGREE:
            # y is x: the polynomial need not leave SEAL.
            plain = encoder.plaintext(numbers)
        else:
            whole = np.zeros(DEGREE, dtype=np.uint64)
            whole[encoder.places] = encoder.polynomial(numbers)
            plain = self._seal.load_plain(whole)
        evaluator.transform_to_ntt_inplace(plain, self._seal.first_id)
        evaluator.multiply_plain_inplace(piece, plain)
        return piece


class BfvSlotSecretKey:
    """The owner's key. Its ``repr`` shows nothing."""

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        values = seeds.secret_values(seal)
        secret = seal.load_secret(values)
        self._seal, self._seeds = seal, seeds
        self._encryptor = sealapi.Encryptor(seal.context, secret)
        self._grid = Grid(seal.primes[:-1], SLOT_MODULUS)
        self._blinds = Grid(seal.primes[: len(SLOTS.kept)], SLOT_MODULUS)
        # For blinds and roundings; like SEAL's own draws they change no result.
        self._entropy = KeyedEntropy.from_system()
        self._client_ops = ClientOps(seal, secret, self._entropy)
        self._encoders = SlotEncoders()
        self.public = BfvSlotPublicKey(seal, seeds.public_half(seal, values))

    def to_bytes(self) -> bytes:
        """The seeds of both halves."""
        return self._seeds.to_bytes()

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt: a fresh encryption of zero plus the numbers' polynomial on the grid of q/t."""
        check_slots(values, DEGREE, "a vector")
        encoder = self._encoders.for_count(len(values))
        polynomial = self._blinded(encoder, encoder.filled(reduced(values, SLOT_MODULUS)))
        points = self._grid.at_random(polynomial, encoder.uniform(self._entropy))
        first, seed = self._seal.seeded(self._encryptor.encrypt_zero_symmetric())
        parts = []
        for at, prime in enumerate(self._seal.primes[:-1]):
            words = lowered(first[at, encoder.places] + points[at], np.uint64(prime))
            parts.append(bytes_of(words)[:, : width(prime)].tobytes())
        return EncryptedVector(b"".join([*parts, seed]), len(values))

    def _blinded(self, encoder: SlotEncoder, values: WordArray) -> WordArray:
        """The polynomial of numbers, of which SEAL sees uniform ones only."""
        blinds = encoder.uniform(self._entropy)
        summed = encoder.polynomial(lowered(values + blinds, _T))
        return lowered(summed + _T - encoder.polynomial(blinds), _T)

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums modulo t; the same work for all of them."""
        if not 1 <= answer.length <= DEGREE:
            raise CryptoError(f"an answer of {answer.length} entries where 1 to {DEGREE} fit")
        encoder, primes = self._encoders.for_count(answer.length), self._blinds.primes
        size = (encoder.slots + DEGREE) * widths(primes)
        parts = exactly(answer.data, size, "an answer")
        blinds = encoder.uniform(self._entropy)
        shifts = self._blinds(encoder.polynomial(blinds).view(np.int64))
        words = self._client_ops.entries(parts, encoder.places, shifts)
        return lowered(encoder.numbers(words) + _T - blinds, _T)[: answer.length]

    def __repr__(self) -> str:
        return "BfvSlotSecretKey(<hidden>)"


@dataclass(frozen=True, slots=True)
class BfvSlots:
    """Slots under BFV, with keys of 128-bit security.

    >>> BfvSlots().slots
    8192
    """

    slots: ClassVar[int] = DEGREE
    modulus: ClassVar[int] = SLOT_MODULUS

    def leak_bits(self, products: int) -> float:
        """The bound of ``parameters``."""
        return slot_leak_bits(products)

    def narrow(self, answers: Sequence[int]) -> NarrowSlots:
        """The largest of the small primes of ``parameters`` that is right."""
        return NarrowSlots(narrow_modulus(answers))

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> BfvSlotSecretKey:
        """Generate a key pair."""
        return BfvSlotSecretKey(self._seal(bits), KeySeeds.draw(entropy, seed))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> BfvSlotPublicKey:
        """Read a public key received from the peer and check it, its uniform half included."""
        seal = self._seal(bits)
        return BfvSlotPublicKey(seal, PublicHalf.from_bytes(data, seal, seed))

    def read_secret(self, data: bytes, bits: int) -> BfvSlotSecretKey:
        """Read the owner's stored secret key."""
        return BfvSlotSecretKey(self._seal(bits), KeySeeds.from_bytes(data))

    def _seal(self, bits: int) -> Seal:
        return new_seal(SLOTS, SLOT_MODULUS, bits)
