"""A scheme for replays: answers what Alice need not compute a second time.

What she sent is on record, and what she learnt follows from the masks and from what she received.
The expensive product under encryption is therefore skipped; masks are drawn as they were then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import (
    DEFAULT_TABLE_MEMORY,
    Capacity,
    EncryptedAnswer,
    EncryptedVector,
    Mask,
    PreparedMatrix,
    PublicKey,
    RowSum,
    Scheme,
    SecretKey,
    SlotPublicKey,
    SlotScheme,
    SlotSecretKey,
    SlotSum,
    Table,
    TableMasks,
    TableSize,
    Wrapping,
    check_table,
)
from taciturn.errors import LocalProtocolError
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class RecallSum:
    """A sum over rows that will not be computed."""

    columns: int

    def add(self, vector: EncryptedVector, row_block: slice | None = None) -> None:
        """Do nothing: no product will be computed."""

    def result(self) -> EncryptedAnswer:
        """An empty answer: the true one is on record."""
        return EncryptedAnswer(data=b"", length=self.columns)


@dataclass(frozen=True, slots=True)
class RecallTable:
    """A table's size: no product will be computed."""

    size: TableSize

    def use_key(self, key: PublicKey) -> None:
        """Do nothing: no answer will be made."""

    def sum_over_rows(self, mask: IntArray, entropy: Entropy) -> RowSum:
        """A sum of nothing."""
        return RecallSum(self.size.columns)

    def product(
        self,
        vector: EncryptedVector,
        mask: IntArray,
        entropy: Entropy,
        row_block: slice | None = None,
    ) -> EncryptedAnswer:
        """An empty answer: the true one is on record."""
        return EncryptedAnswer(data=b"", length=len(mask))

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


class RecallKey:
    """A public key that answers with nothing; all else is the real key's work."""

    def __init__(self, key: PublicKey) -> None:
        self._key = key
        self.capacity = key.capacity
        self.modulus = key.modulus

    def to_bytes(self) -> bytes:
        """The real key's bytes."""
        return self._key.to_bytes()

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        """The masks that were drawn then."""
        return self._key.draw_mask(length, entropy)

    def mask_of(self, residues: IntArray, entropy: Entropy) -> Mask:
        """Placeholder masks of 0, one for each residue: no product will be computed."""
        return Mask(tuple([0] * len(residues)))

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        """The matrix's shape: no product will be computed."""
        return PreparedMatrix.from_matrix(matrix, None)

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        """Do nothing: no answer will be made."""

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        """An empty answer: the true one is on record."""
        return EncryptedAnswer(data=b"", length=prepared.rows)

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        """Products that Alice learnt."""
        return self._key.unmask(masked, mask)

    def table(self, whole: IntArray, memory: int = DEFAULT_TABLE_MEMORY) -> Table:
        """The table's size: no product will be computed."""
        return RecallTable(check_table(self.capacity, whole))

    def table_masks(self, length: int, entropy: Entropy) -> TableMasks:
        """The masks that were drawn then."""
        return self._key.table_masks(length, entropy)


class RecallSecretKey:
    """A key of Alice's own: encrypts and decrypts nothing, since the true messages are on record.

    Its answers are zeros in place of uniform numbers.
    """

    def __init__(self, key: SecretKey) -> None:
        self._key = key
        self.public = key.public

    def to_bytes(self) -> bytes:
        """Some key's bytes."""
        return self._key.to_bytes()

    def stock(self, rows: int, length: int, entropy: Entropy) -> None:
        """Do nothing: nothing will be encrypted."""

    def encrypt(self, vector: IntArray, rows: int, entropy: Entropy) -> EncryptedVector:
        """An empty vector: the true one is on record."""
        return EncryptedVector(data=b"", length=len(vector))

    def decrypt(self, answer: EncryptedAnswer, length: int) -> tuple[int, ...]:
        """Zeros."""
        return (0,) * answer.length

    def decrypt_shares(self, answer: EncryptedAnswer, length: int) -> IntArray:
        """Zeros."""
        return np.zeros(answer.length, dtype=np.int64)

    def encrypt_rows(
        self, vector: IntArray, size: TableSize, entropy: Entropy, row_block: slice | None = None
    ) -> EncryptedVector:
        """An empty vector: the true one is on record."""
        return EncryptedVector(data=b"", length=len(vector))

    def encrypt_columns(
        self, vector: IntArray, size: TableSize, entropy: Entropy
    ) -> EncryptedVector:
        """An empty vector: the true one is on record."""
        return EncryptedVector(data=b"", length=size.columns)

    def decrypt_columns(self, answer: EncryptedAnswer, size: TableSize) -> IntArray:
        """Zeros."""
        return np.zeros(size.columns, dtype=np.int64)

    def decrypt_rows(
        self, answer: EncryptedAnswer, size: TableSize, row_block: slice | None = None
    ) -> IntArray:
        """Zeros."""
        return np.zeros(answer.length, dtype=np.int64)


class RecallSlotKey:
    """A public key for products number by number that answers with nothing."""

    def __init__(self, key: SlotPublicKey) -> None:
        self._key = key

    def to_bytes(self) -> bytes:
        """The real key's bytes."""
        return self._key.to_bytes()

    def sum_of(self, length: int) -> SlotSum:
        """A sum that answers with nothing."""
        return RecallSlotSum(length)


class RecallSlotSum:
    """A sum of products that skips the work."""

    def __init__(self, length: int) -> None:
        self._length = length

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Do nothing."""

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """An empty answer: the true one is on record."""
        return EncryptedAnswer(data=b"", length=self._length)


class RecallSlots:
    """Reads public keys as the real scheme does, and skips their work."""

    def __init__(self, scheme: SlotScheme) -> None:
        self._scheme = scheme
        self.slots, self.modulus = scheme.slots, scheme.modulus

    def leak_bits(self, products: int) -> float:
        """The real scheme's: it decides whether the parties talked."""
        return self._scheme.leak_bits(products)

    def narrow(self, answers: Sequence[int]) -> RecallSlots:
        """The real scheme's small prime."""
        return RecallSlots(self._scheme.narrow(answers))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> SlotPublicKey:
        """The recorded public key."""
        return RecallSlotKey(self._scheme.read_public(data, bits, seed))

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> SlotSecretKey:
        """Refuse: Alice has no key of this kind."""
        raise LocalProtocolError("Alice's view makes no keys")

    def read_secret(self, data: bytes, bits: int) -> SlotSecretKey:
        """Refuse: a view holds no secret key."""
        raise LocalProtocolError("Alice's view holds no secret key")


class RecallScheme:
    """Reads public keys as the real scheme does, and skips their work."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self.name = scheme.name
        self.protects = scheme.protects
        self.whole_tables = scheme.whole_tables
        slots = scheme.number_by_number
        self.number_by_number = None if slots is None else RecallSlots(slots)
        self.key_bits = scheme.key_bits

    @property
    def for_shares(self) -> RecallScheme:
        """The same of the real scheme's."""
        return RecallScheme(self._scheme.for_shares)

    def row_parts(self, size: TableSize) -> list[slice]:
        """The real scheme's: they decide how the parties talked."""
        return self._scheme.row_parts(size)

    def check_tables(self, capacity: Wrapping, size: TableSize, products: int) -> float:
        """Apply the real scheme's checks, and return its bound."""
        return self._scheme.check_tables(capacity, size, products)

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> PublicKey:
        """The recorded public key."""
        return RecallKey(self._scheme.read_public(data, bits, capacity, seed))

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> SecretKey:
        """Placeholder for Alice's own key, in trainings where she has one.

        What she decrypted with it was uniform, by Bob's masks: nothing that she saw hangs on it.
        """
        return RecallSecretKey(self._scheme.generate(bits, capacity, entropy, seed))

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> SecretKey:
        """Refuse: a view holds no secret key."""
        raise LocalProtocolError("Alice's view holds no secret key")
