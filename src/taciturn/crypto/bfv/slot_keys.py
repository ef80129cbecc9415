"""Keys and sums of slot-wise products, as wide slots (``slots``) and narrow ones have them.

The owner of a key encrypts numbers, one per slot. The other side multiplies each by a number of its
own, sums the products of several ciphertexts, and adds masks. The two kinds differ in the modulus,
in how numbers become polynomials, and in what a ciphertext looks like.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeAlias

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, check_slots
from taciturn.crypto.bfv.operations import ClientOps, ServerOps
from taciturn.crypto.bfv.parameters import DEGREE, BfvParameters
from taciturn.crypto.bfv.seal import ByteReader, Seal, exactly, new_seal, widths
from taciturn.crypto.bfv.seeds import KeySeeds, PublicHalf
from taciturn.crypto.bfv.slot_encoder import SlotEncoder
from taciturn.crypto.bfv.transform import Transform
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy

Encoder: TypeAlias = SlotEncoder | Transform


class SlotPublicKey(ABC):
    """Public key for elementwise products."""

    def __init__(self, seal: Seal, half: PublicHalf) -> None:
        self.modulus = seal.plain_modulus
        self.seal, self._half = seal, half
        self.server_ops = ServerOps(seal, half.polynomials(seal))

    def to_bytes(self) -> bytes:
        """One polynomial and the seed of the other."""
        return self._half.to_bytes(self.seal)

    def sum_of(self, length: int) -> SlotSum:
        """An empty sum."""
        if not 1 <= length <= DEGREE:
            raise CryptoError(f"sums of {length} numbers where 1 to {DEGREE} fit")
        return SlotSum(self, length)

    @abstractmethod
    def encoder(self, count: int) -> Encoder:
        """The encoder for ``count`` numbers."""

    @abstractmethod
    def piece(self, vector: EncryptedVector) -> Any:  # noqa: ANN401 - SEAL has no types
        """Read a vector's ciphertext, in NTT form."""

    @abstractmethod
    def plaintext(self, table: IntArray) -> Any:  # noqa: ANN401
        """The polynomial of numbers that are not all zero."""

    def check_table(self, table: IntArray) -> None:
        """Refuse numbers that do not fit."""
        check_slots(table, DEGREE, "a table")


class SlotSum:
    """A running sum of products under one public key: re-randomised, masked and flooded once."""

    def __init__(self, key: SlotPublicKey, length: int) -> None:
        self._key, self._length = key, length
        self._sum: Any = None

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Add ``table * vector``."""
        self._key.check_table(table)
        if not self._length == vector.length == len(table):
            raise CryptoError(
                f"a table of {len(table)} times a vector of {vector.length}, in a sum of "
                f"{self._length}"
            )
        product, seal = self._key.piece(vector), self._key.seal
        # SEAL refuses a product with nothing but zeros, which adds nothing.
        if not table.any():
            return
        plain = self._key.plaintext(table)
        seal.evaluator.transform_to_ntt_inplace(plain, seal.first_id)
        seal.evaluator.multiply_plain_inplace(product, plain)
        if self._sum is None:
            self._sum = product
        else:
            seal.evaluator.add_inplace(self._sum, product)

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """The masked sum, switched to the kept primes."""
        if masks.shape != (self._length,):
            raise CryptoError(f"masks of shape {masks.shape} for a sum of {self._length}")
        encoder, operations = self._key.encoder(self._length), self._key.server_ops
        # Slots that are left get a mask as well: what is in them is nobody's business.
        whole = entropy.fork("slots").integers(self._key.modulus, encoder.slots)
        whole[: len(masks)] = masks.astype(np.uint64)
        hidden = encoder.polynomial(whole).view(np.int64)
        cover = operations.cover(hidden, encoder.places, entropy.fork("flood"))
        answer = operations.covered(self._sum, cover)
        return EncryptedAnswer(operations.written(answer, encoder.places), self._length)


class SlotSecretKey(ABC):
    """The owner's key. Its ``repr`` shows nothing."""

    public_type: ClassVar[type[SlotPublicKey]]

    def __init__(self, seal: Seal, seeds: KeySeeds) -> None:
        self._values = seeds.secret_values(seal)
        self._seal, self._seeds, self._secret = seal, seeds, seal.load_secret(self._values)
        # For seeds, errors, blinds and roundings; like SEAL's own draws they change no result.
        self._entropy = KeyedEntropy.from_system()
        self._client_ops = ClientOps(seal, self._secret, self._entropy)
        self.public = self.public_type(seal, seeds.public_half(seal, self._values))

    def to_bytes(self) -> bytes:
        """The seeds of both halves."""
        return self._seeds.to_bytes()

    @abstractmethod
    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt, with fresh randomness."""

    @abstractmethod
    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums modulo t; the same work for all of them."""

    def _opened(self, answer: EncryptedAnswer) -> tuple[ByteReader, Encoder]:
        """An answer of the right size, and the encoder of its numbers."""
        if not 1 <= answer.length <= DEGREE:
            raise CryptoError(f"an answer of {answer.length} entries where 1 to {DEGREE} fit")
        encoder = self.public.encoder(answer.length)
        primes = self._seal.primes[: len(self._seal.parameters.kept)]
        size = (encoder.slots + DEGREE) * widths(primes)
        return exactly(answer.data, size, "an answer"), encoder

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<hidden>)"


class SlotKeys:
    """Key pairs of one kind of slots, of 128-bit security."""

    parameters: ClassVar[BfvParameters]
    secret_type: ClassVar[type[SlotSecretKey]]
    slots: ClassVar[int] = DEGREE

    @property
    def modulus(self) -> int:
        """The prime modulus."""
        raise NotImplementedError

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> SlotSecretKey:
        """Generate a key pair."""
        return self.secret_type(self._seal(bits), KeySeeds.draw(entropy, seed))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> SlotPublicKey:
        """Read a public key received from the peer and check it, its uniform half included."""
        seal = self._seal(bits)
        return self.secret_type.public_type(seal, PublicHalf.from_bytes(data, seal, seed))

    def read_secret(self, data: bytes, bits: int) -> SlotSecretKey:
        """Read the owner's stored secret key."""
        return self.secret_type(self._seal(bits), KeySeeds.from_bytes(data))

    def _seal(self, bits: int) -> Seal:
        return new_seal(self.parameters, self.modulus, bits)
