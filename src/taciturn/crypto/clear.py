"""The scheme that hides nothing, for simulation speed.

**This is no protection.** A "ciphertext" is the number itself: anyone who sees the bytes sees the
values. It exists so that a simulation of a training, whose parties share a process anyway, computes
exactly what the protecting schemes compute. ``protects`` is False: whatever connects two real
parties must refuse it.

The vector is its entries as little-endian int64; the answer is product plus mask modulo 2^64 as
little-endian uint64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    DEFAULT_TABLE_MEMORY,
    Capacity,
    EncryptedAnswer,
    EncryptedVector,
    Mask,
    PreparedMatrix,
    PublicKey,
    TableMasks,
    TableSize,
    Wrapping,
    check_length,
    check_slots,
    check_table,
    check_table_vector,
    named_part,
    next_part,
    require_all,
    wrapping,
)
from taciturn.crypto.bfv.layout import PART_TILES, Tiling
from taciturn.crypto.bfv.parameters import DEGREE, SHARED, SLOT_MODULUS, narrow_modulus
from taciturn.crypto.bfv.tables import shared_masks
from taciturn.errors import CryptoError
from taciturn.memmap import row_blocks
from taciturn.rng import Entropy

_EXACT_FLOAT_BITS = 53


def exact_product(matrix: IntArray | FloatArray, vector: IntArray) -> IntArray:
    """Exact product of whole numbers, in float64 where the matrix is.

    Up to 53 bits it runs in float64, where BLAS is. That is exact: the entries are whole numbers,
    every partial sum is a sum of some of a row's terms, in whatever order, block or fused step it
    arises, and so at most terms * max * max <= 2^53 in size; float64 represents every such whole
    number, so no step ever rounds. Above, int64 arithmetic serves, which cannot wrap up to 62 bits,
    and beyond wraps modulo 2^64, of which a ``Wrapping`` capacity's modulus is a divisor.
    """
    if matrix.dtype == np.float64:
        return (matrix @ vector.astype(np.float64)).astype(np.int64)
    # For integers einsum is about twice as fast as matmul, which has no BLAS to call either.
    summed: IntArray = np.einsum("ij,j->i", matrix, vector)
    return summed


class ClearRowSum:
    """Sum over rows in clear."""

    def __init__(self, table: ClearTable, mask: IntArray) -> None:
        self._table, self._mask, self._done = table, mask, 0
        self._total: IntArray = np.zeros(table.size.columns, dtype=np.int64)

    def add(self, vector: EncryptedVector, row_block: slice | None = None) -> None:
        """Add the product of the next part of the rows."""
        due = next_part(row_block, self._table.parts, self._done)
        values = self._table.read(vector, due.stop - due.start)
        for place, block in row_blocks(self._table.whole[due]):
            whole = block.astype(np.int64, copy=False)
            self._total += np.einsum("ij,i->j", whole, values[place])
        self._done += 1

    def result(self) -> EncryptedAnswer:
        """The sum and the mask modulo 2^64."""
        require_all(self._table.parts, self._done)
        return _masked(self._total, self._mask)


@dataclass(frozen=True, slots=True)
class ClearTable:
    """A whole table, unencrypted.

    **Guarantee.** None about secrecy. Products are exact modulo t: 64-bit integers wrap modulo
    2^64, of which t is a divisor. For them einsum is as fast as float64's BLAS: both wait for
    memory.
    """

    ring: Wrapping
    whole: IntArray
    parts: list[slice]

    def use_key(self, key: PublicKey) -> None:
        """Nothing changes: nothing is encrypted."""

    @property
    def size(self) -> TableSize:
        """Shape of the table."""
        return TableSize(*self.whole.shape)

    def sum_over_rows(self, mask: IntArray, entropy: Entropy) -> ClearRowSum:
        """``table.T @ vector + mask`` modulo 2^64, in clear."""
        check_length(mask, self.size.columns, "mask")
        return ClearRowSum(self, mask)

    def product(
        self,
        vector: EncryptedVector,
        mask: IntArray,
        entropy: Entropy,
        row_block: slice | None = None,
    ) -> EncryptedAnswer:
        """``table @ vector + mask`` modulo 2^64, in clear."""
        row_block = named_part(row_block, self.parts)
        values = self.read(vector, self.size.columns)
        return _masked(self.ring.product(self.whole[row_block], values), mask)

    def close(self) -> None:
        """Do nothing: there is nothing to free."""

    def read(self, vector: EncryptedVector, length: int) -> IntArray:
        """Read a vector of this length, in clear."""
        if vector.length != length:
            raise CryptoError(f"a vector of {vector.length} where {length} were expected")
        values = np.frombuffer(_exactly(vector.data, length), dtype="<i8").astype(np.int64)
        check_table_vector(self.ring, values, length)
        return values


@dataclass(frozen=True, slots=True)
class ClearPublicKey:
    """An empty public key.

    **Guarantee.** None about secrecy. Products are exact.

    **Assumes.** The vector is honest; an entry beyond the capacity is refused all the same, since
    exactness rests on it.
    """

    capacity: Capacity
    part_tiles: int = PART_TILES
    degree: int = DEGREE

    modulus: ClassVar[int] = 1 << 64

    def to_bytes(self) -> bytes:
        """Empty bytes."""
        return b""

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        """Masks uniform modulo 2^64."""
        if length < 1:
            raise CryptoError(f"masks for {length} entries")
        return Mask(tuple(entropy.words(length).tolist()))

    def mask_of(self, values: IntArray, entropy: Entropy) -> Mask:
        """The values modulo 2^64: nothing is hidden here."""
        return Mask(tuple(values.view(np.uint64).tolist()))

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        """Convert the matrix to float64 where products are exact in it."""
        self.capacity.check_matrix(matrix)
        # Products of reals are several times faster than products of integers.
        exact = self.capacity.product_bits <= _EXACT_FLOAT_BITS
        kind = np.float64 if exact else np.int64
        return PreparedMatrix.from_matrix(matrix, matrix.astype(kind, copy=False))

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        """Do nothing: there is nothing to make ahead."""

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        """``matrix @ vector + mask`` modulo 2^64, in clear."""
        prepared.check(vector, mask)
        masks = _words(mask.values, "mask")
        plain = np.frombuffer(_exactly(vector.data, vector.length), dtype="<i8").astype(np.int64)
        self.capacity.check_vector(plain)
        masked = exact_product(prepared.content, plain).view(np.uint64) + masks
        return EncryptedAnswer(masked.astype("<u8", copy=False).tobytes(), prepared.rows)

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        """The exact signed product: masked product minus mask modulo 2^64."""
        if len(masked) != len(mask.values):
            raise CryptoError(f"{len(mask.values)} masks for {len(masked)} entries")
        product = (_words(masked, "masked product") - _words(mask.values, "mask")).view(np.int64)
        limit = 1 << self.capacity.product_bits
        if product.size and max(int(product.max()), -int(product.min())) > limit:
            raise CryptoError(f"a product exceeds its {self.capacity.product_bits} bits")
        return product

    def table(self, whole: IntArray, memory: int = DEFAULT_TABLE_MEMORY) -> ClearTable:
        """Wrap the table unchanged."""
        tiling = Tiling.for_size(check_table(self.capacity, whole), self.degree)
        return ClearTable(wrapping(self.capacity), whole, tiling.row_parts(self.part_tiles))

    def table_masks(self, length: int, entropy: Entropy) -> TableMasks:
        """Masks whose shares are those of the default scheme's."""
        ring = wrapping(self.capacity)
        shares = shared_masks(length, ring, entropy).shares
        return TableMasks(ring.centred(-shares), shares)


@dataclass(frozen=True, slots=True)
class ClearSecretKey:
    """An empty secret key, for simulations. It hides nothing."""

    public: ClearPublicKey

    def to_bytes(self) -> bytes:
        """Empty bytes: there is no key."""
        return b""

    def stock(self, rows: int, length: int, entropy: Entropy) -> None:
        """Do nothing: there is nothing to make ahead."""

    def encrypt(self, vector: IntArray, rows: int, entropy: Entropy) -> EncryptedVector:
        """The entries as little-endian bytes."""
        self.public.capacity.check_vector(vector)
        return EncryptedVector(vector.astype("<i8", copy=False).tobytes(), len(vector))

    def decrypt(self, answer: EncryptedAnswer, length: int) -> tuple[int, ...]:
        """The values modulo 2^64."""
        return tuple(np.frombuffer(_exactly(answer.data, answer.length), dtype="<u8").tolist())

    def decrypt_shares(self, answer: EncryptedAnswer, length: int) -> IntArray:
        """The values modulo the key's power of two."""
        words = np.frombuffer(_exactly(answer.data, answer.length), dtype="<i8")
        return wrapping(self.public.capacity).centred(words.astype(np.int64))

    def encrypt_rows(
        self, vector: IntArray, size: TableSize, entropy: Entropy, row_block: slice | None = None
    ) -> EncryptedVector:
        """The entries as little-endian bytes."""
        return self._table_vector(vector, _count(size, row_block))

    def encrypt_columns(
        self, vector: IntArray, size: TableSize, entropy: Entropy
    ) -> EncryptedVector:
        """The entries as little-endian bytes."""
        return self._table_vector(vector, size.columns)

    def decrypt_columns(self, answer: EncryptedAnswer, size: TableSize) -> IntArray:
        """The values modulo the key's power of two."""
        return self._table_sums(answer, size.columns)

    def decrypt_rows(
        self, answer: EncryptedAnswer, size: TableSize, row_block: slice | None = None
    ) -> IntArray:
        """The values modulo the key's power of two."""
        return self._table_sums(answer, _count(size, row_block))

    def _table_vector(self, vector: IntArray, length: int) -> EncryptedVector:
        check_table_vector(self.public.capacity, vector, length)
        return EncryptedVector(vector.astype("<i8", copy=False).tobytes(), length)

    def _table_sums(self, answer: EncryptedAnswer, length: int) -> IntArray:
        if answer.length != length:
            raise CryptoError(f"an answer of {answer.length} entries where {length} were expected")
        return self.decrypt_shares(answer, length)


@dataclass(frozen=True, slots=True)
class ClearSlotPublicKey:
    """Empty public key for elementwise products."""

    modulus: int

    def to_bytes(self) -> bytes:
        """Empty bytes."""
        return b""

    def sum_of(self, length: int) -> ClearSlotSum:
        """An empty sum."""
        return ClearSlotSum(length, self.modulus)


class ClearSlotSum:
    """A sum of elementwise products modulo the prime of the default scheme, in clear."""

    def __init__(self, length: int, modulus: int) -> None:
        self._sum, self._modulus = np.zeros(length, dtype=np.int64), modulus

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Add ``table * vector``."""
        check_slots(table, DEGREE, "a table")
        check_length(table, len(self._sum), "factor")
        if vector.length != len(table):
            raise CryptoError(f"a table of {len(table)} times a vector of {vector.length}")
        values = np.frombuffer(_exactly(vector.data, vector.length), dtype="<i8").astype(np.int64)
        check_slots(values, DEGREE, "a vector")
        # Factors of 31 bits: the product is exact, and so is the sum of two numbers below 2^59.
        self._sum = (table * values % self._modulus + self._sum) % self._modulus

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """The sum plus ``masks``."""
        check_length(masks, len(self._sum), "mask")
        summed = (self._sum + masks) % self._modulus
        return EncryptedAnswer(summed.astype("<i8", copy=False).tobytes(), len(summed))


@dataclass(frozen=True, slots=True)
class ClearSlotSecretKey:
    """Empty secret key for elementwise products."""

    public: ClearSlotPublicKey

    def to_bytes(self) -> bytes:
        """Empty bytes: there is no key."""
        return b""

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """The values as little-endian bytes."""
        check_slots(values, DEGREE, "a vector")
        return EncryptedVector(values.astype("<i8", copy=False).tobytes(), len(values))

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums."""
        words = np.frombuffer(_exactly(answer.data, answer.length), dtype="<u8")
        return words.astype(np.uint64)


@dataclass(frozen=True, slots=True)
class ClearSlots:
    """Elementwise products without protection, in the default scheme's layout."""

    slots: ClassVar[int] = DEGREE
    modulus: int = SLOT_MODULUS

    def leak_bits(self, products: int) -> float:
        """Infinite: there is nothing to hide."""
        return math.inf

    def narrow(self, answers: Sequence[int]) -> ClearSlots:
        """The default scheme's small prime."""
        return ClearSlots(narrow_modulus(answers))

    def generate(
        self, bits: int, entropy: Entropy, seed: bytes | None = None
    ) -> ClearSlotSecretKey:
        """An empty key pair."""
        return ClearSlotSecretKey(ClearSlotPublicKey(self.modulus))

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> ClearSlotPublicKey:
        """The empty key."""
        if data:
            raise CryptoError(f"a public key of {len(data)} bytes where none is expected")
        return ClearSlotPublicKey(self.modulus)

    def read_secret(self, data: bytes, bits: int) -> ClearSlotSecretKey:
        """An empty key pair."""
        return ClearSlotSecretKey(self.read_public(data, bits))


@dataclass(frozen=True, slots=True)
class ClearScheme:
    """Unencrypted scheme; ``part_tiles`` row tiles of the default scheme per message."""

    part_tiles: int = PART_TILES
    degree: int = DEGREE

    name: ClassVar[str] = "clear"
    protects: ClassVar[bool] = False
    whole_tables: ClassVar[bool] = True
    number_by_number: ClassVar[ClearSlots] = ClearSlots()
    key_bits: ClassVar[tuple[int, ...]] = (0,)

    @property
    def for_shares(self) -> ClearScheme:
        """The same with the default scheme's parts and masks; products in clear are exact."""
        return replace(self, degree=SHARED.degree)

    def row_parts(self, size: TableSize) -> list[slice]:
        """The parts of the default scheme, for which this one stands in."""
        return Tiling.for_size(size, self.degree).row_parts(self.part_tiles)

    def check_tables(self, capacity: Wrapping, size: TableSize, products: int) -> float:
        """Refuse only products that do not wrap: there is nothing to hide."""
        wrapping(capacity)
        return math.inf

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> ClearSecretKey:
        """An empty key pair."""
        self._check_bits(bits)
        return ClearSecretKey(ClearPublicKey(capacity, self.part_tiles, self.degree))

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> ClearPublicKey:
        """The empty key."""
        self._check_bits(bits)
        if data:
            raise CryptoError(f"a public key of {len(data)} bytes where none is expected")
        return ClearPublicKey(capacity, self.part_tiles, self.degree)

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> ClearSecretKey:
        """An empty key pair."""
        return ClearSecretKey(self.read_public(data, bits, capacity))

    def _check_bits(self, bits: int) -> None:
        if bits != 0:
            raise CryptoError(f"{bits}-bit keys are not offered", hint="clear has no key: 0 bits")


def _exactly(data: bytes, length: int) -> bytes:
    if length < 1 or len(data) != 8 * length:
        raise CryptoError(f"{len(data)} bytes where {length} entries of 8 were expected")
    return data


def _count(size: TableSize, row_block: slice | None) -> int:
    return size.rows if row_block is None else row_block.stop - row_block.start


def _masked(sums: IntArray, mask: IntArray) -> EncryptedAnswer:
    check_length(mask, len(sums), "mask")
    return EncryptedAnswer((sums + mask).astype("<i8", copy=False).tobytes(), len(sums))


def _words(values: tuple[int, ...], name: str) -> WordArray:
    try:
        return np.array(values, dtype=np.uint64)
    except OverflowError:
        raise CryptoError(f"a {name} lies outside [0, 2^64)") from None
