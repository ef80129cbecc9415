"""Scheme interface: the product of an integer matrix and an encrypted integer vector.

Bob owns the key and encrypts a vector; Alice multiplies it by her matrix, adds a mask and
re-randomises; Bob decrypts what is then a masked product. Nothing else of a homomorphic scheme is
offered, which leaves a scheme free in how it packs: a Paillier answer holds several entries, a
lattice answer holds hundreds. Outside this room a ciphertext is bytes with a length.

::

    Bob   SecretKey.encrypt(v)                        -> EncryptedVector   goes to Alice
    Alice PublicKey.prepare(M)                        -> PreparedMatrix    stays with Alice
    Alice PublicKey.draw_mask(rows)                   -> Mask              stays with Alice
    Alice PublicKey.masked_product(M, <v>, mask)      -> EncryptedAnswer   goes to Bob
    Bob   SecretKey.decrypt(answer)                   -> masked products, non-negative integers
    Alice PublicKey.unmask(masked products, mask)     -> M v, exact signed integers

What does not depend on the peer's next message is done ahead, while waiting for it: ``prepare`` and
``draw_mask`` for the next product, and ``stock`` for encryptions of zero, obfuscators and the like.
Stocking never changes a result; without it the same work is done when it is needed.

``Capacity`` is the public size of a conversation: how many bits an exact product may have. Keys are
made for a capacity, both sides know it, and a product that could exceed it is refused before
anything is computed. ``Wrapping`` is its sister for values that are shared modulo ``2^k``: vectors
are uniform there, products wrap, and nothing is out of range. The masks are then given
(``PublicKey.mask_of``), and Bob keeps what he decrypts (``SecretKey.decrypt_shares``).

A whole table of training rows is multiplied from both sides, many times, under a ``Wrapping`` key::

    Alice PublicKey.table(T)                                  -> Table            stays with Alice
    Bob   SecretKey.encrypt_rows(r)                           -> EncryptedVector  goes to Alice
    Alice Table.sum_over_rows(mask) .add(<r>)   T^T r + mask  -> EncryptedAnswer  goes to Bob
    Bob   SecretKey.encrypt_columns(v)                        -> EncryptedVector  goes to Alice
    Alice Table.product(<v>, mask)              T v + mask    -> EncryptedAnswer  goes to Bob
    Bob   SecretKey.decrypt_columns(answer) / decrypt_rows(answer)   the sums modulo 2^k

What has an entry for each row travels in parts of rows, a public rule of the table's size
(``Scheme.row_parts``): a product over rows is a sum over its parts, one over columns an answer for
each. A table that is not large has one part.

Products with a table that are never opened (``Scheme.for_shares``) stay shared: the masks come from
``PublicKey.table_masks`` with their owner's shares, the others are what is decrypted, and both sum
to the product up to some units.

The schemes are malleable: an altered ciphertext decrypts to another number, undetected. Only the
structure is checked (lengths, ranges), and only such failures may be seen by the peer; integrity on
the way is the transport's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.errors import CryptoError
from taciturn.memmap import row_blocks
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class Capacity:
    """Plaintext space of a key: every entry of a product lies in ±2^product_bits.

    Vector entries lie in ±2^vector_bits and matrix entries in ±2^matrix_bits; a vector has at most
    ``terms`` entries.
    """

    vector_bits: int
    matrix_bits: int
    terms: int

    def __post_init__(self) -> None:
        if min(self.vector_bits, self.matrix_bits) < 0 or self.terms < 1:
            raise CryptoError("a capacity needs bits of at least 0 and at least one term")
        if self.product_bits > 62:
            raise CryptoError(
                f"products of {self.product_bits} bits do not fit 62",
                setting="feature_bits",
                hint="lower the fixed-point bits, clip the features, or use smaller batches",
            )

    @property
    def product_bits(self) -> int:
        """Bits of the largest possible sum: factors plus ceil(log2(terms))."""
        return self.vector_bits + self.matrix_bits + (self.terms - 1).bit_length()

    def check_vector(self, vector: IntArray) -> None:
        """Refuse a vector that is too long or has an entry out of range."""
        if vector.dtype != np.int64:
            raise CryptoError(f"the vector holds {vector.dtype}, not int64")
        _check_range(vector, self.vector_bits, "vector")
        if vector.ndim != 1 or not 1 <= len(vector) <= self.terms:
            raise CryptoError(f"a vector of shape {vector.shape} where 1 to {self.terms} fit")

    def check_matrix(self, matrix: IntArray | FloatArray) -> None:
        """Refuse a matrix, of whole numbers, that is too wide or has an entry out of range."""
        if matrix.dtype not in (np.int64, np.float64):
            raise CryptoError(f"the matrix holds {matrix.dtype}, not int64 or whole float64")
        _check_range(matrix, self.matrix_bits, "matrix")
        if matrix.ndim != 2 or matrix.shape[0] < 1 or not 1 <= matrix.shape[1] <= self.terms:
            raise CryptoError(
                f"a matrix of shape {matrix.shape} where rows of 1 to {self.terms} fit"
            )


MOST_MODULUS_BITS = 62


@dataclass(frozen=True, slots=True)
class Wrapping(Capacity):
    """Sums of products modulo ``t = 2^modulus_bits``, of vectors that may be anything modulo t.

    A value stands as the integer of its class in ``[-t/2, t/2)``; ``vector_bits`` is the size of
    those, and ``product_bits`` that of a product before it is reduced.

    **Guarantee.** All arithmetic is exact modulo t.

    **Assumes.** Nothing about the values: a sum that wraps is right modulo t, and whether the
    number that was meant has wrapped is for the caller that chose t to check.

    >>> ring = Wrapping.with_modulus(modulus_bits=8, matrix_bits=4, terms=3)
    >>> ring.vector_bits, ring.product_bits
    (7, 13)
    >>> ring.centred(np.array([127, 128, -129, 300])).tolist()
    [127, -128, 127, 44]
    """

    def __post_init__(self) -> None:
        if self.matrix_bits < 1 or self.vector_bits < 1 or self.terms < 1:
            raise CryptoError("wrapping products need a bit in either factor and at least one term")
        if self.modulus_bits > MOST_MODULUS_BITS or self.matrix_bits >= self.vector_bits:
            raise CryptoError(
                f"a matrix of {self.matrix_bits} bits does not go with a modulus of "
                f"2^{self.modulus_bits}"
            )

    @classmethod
    def with_modulus(cls, modulus_bits: int, matrix_bits: int, terms: int) -> Wrapping:
        """The sizes of products modulo a power of two."""
        return cls(modulus_bits - 1, matrix_bits, terms)

    @property
    def modulus_bits(self) -> int:
        """Base-2 logarithm of the modulus t."""
        return self.vector_bits + 1

    def centred(self, values: IntArray) -> IntArray:
        """Reduce 64-bit integers modulo t, into ``[-t/2, t/2)``."""
        shift = np.int64(64 - self.modulus_bits)
        reduced: IntArray = (values << shift) >> shift
        return reduced

    def reduced(self, decrypted: tuple[int, ...]) -> IntArray:
        """Reduce integers of any size modulo t, into ``[-t/2, t/2)``."""
        low = (1 << self.modulus_bits) - 1
        return self.centred(np.array([entry & low for entry in decrypted], dtype=np.int64))

    def product(self, matrix: IntArray | FloatArray, vector: IntArray) -> IntArray:
        """``matrix @ vector`` modulo t, for a matrix of whole numbers."""
        summed: IntArray = np.empty(len(matrix), dtype=np.int64)
        # 64-bit integers wrap modulo 2^64, of which t is a divisor.
        for place, block in row_blocks(matrix):
            _products(block, vector, summed[place])
            summed[place] = self.centred(summed[place])
        return summed

    def transposed_product(self, matrix: IntArray, vector: IntArray) -> IntArray:
        """``matrix.T @ vector`` modulo t, block by block of the matrix's rows."""
        total = np.zeros(matrix.shape[1], dtype=np.int64)
        for place, block in row_blocks(matrix):
            total += np.einsum("ij,i->j", block.astype(np.int64, copy=False), vector[place])
        return self.centred(total)

    def draw(self, count: int, entropy: Entropy) -> IntArray:
        """Residues modulo t, each exactly uniform."""
        return self.centred(entropy.words(count).view(np.int64))


def _products(block: IntArray | FloatArray, vector: IntArray, out: IntArray) -> None:
    """``block @ vector`` modulo 2^64."""
    if block.dtype != np.int32:
        np.einsum("ij,j->i", block.astype(np.int64, copy=False), vector, out=out)
        return
    # A copy of the block in 64 bits would take several times as long as the products.
    out[:] = 0
    for column, factor in zip(block.T, vector, strict=True):
        out += np.multiply(column, factor, dtype=np.int64)


def wrapping(capacity: Capacity) -> Wrapping:
    """Return the capacity if it is a ``Wrapping``; raise ``CryptoError`` otherwise."""
    if not isinstance(capacity, Wrapping):
        raise CryptoError("shares need a key whose products wrap at a power of two")
    return capacity


@dataclass(frozen=True, slots=True)
class TableSize:
    """The public shape of a table, from which both sides know how it lies in ciphertexts."""

    rows: int
    columns: int

    def __post_init__(self) -> None:
        if min(self.rows, self.columns) < 1:
            raise CryptoError(f"a table of {self.rows} rows and {self.columns} columns")


DEFAULT_TABLE_MEMORY = 1 << 30
"""Bytes that a table in the scheme's own form may take, over all processes."""


def check_table(capacity: Capacity, whole: IntArray) -> TableSize:
    """Size of a table of whole numbers that fits the capacity.

    ``Capacity.terms`` does not matter to a table: its sums wrap, and a scheme bounds their noise by
    the table's own size.
    """
    if whole.dtype not in (np.int64, np.int32) or whole.ndim != 2:
        raise CryptoError(
            f"a table of shape {whole.shape} holds {whole.dtype}, not int64 or int32 by rows"
        )
    size, bits = TableSize(*whole.shape), wrapping(capacity).matrix_bits
    for _, block in row_blocks(whole):
        _check_range(block, bits, "table")
    return size


def check_length(values: IntArray, length: int, name: str) -> None:
    """Refuse a vector or masks that are not ``length`` 64-bit integers."""
    if values.dtype != np.int64 or values.shape != (length,):
        raise CryptoError(
            f"a {name} of shape {values.shape} holds {values.dtype} where {length} int64 fit"
        )


def check_table_vector(capacity: Capacity, vector: IntArray, length: int) -> Wrapping:
    """The ring of a vector that is multiplied with a table."""
    ring = wrapping(capacity)
    check_length(vector, length, "vector")
    _check_range(vector, ring.vector_bits, "vector")
    return ring


def _check_range(values: IntArray | FloatArray, bits: int, name: str) -> None:
    if values.size and not max(values.max().item(), -values.min().item()) <= 1 << bits:
        raise CryptoError(f"a {name} entry exceeds its agreed {bits} bits")


@dataclass(frozen=True, slots=True)
class EncryptedVector:
    """A vector under its owner's key."""

    data: bytes = field(repr=False)
    length: int


@dataclass(frozen=True, slots=True)
class EncryptedAnswer:
    """A masked, re-randomised product: only ``PublicKey.masked_product`` makes one."""

    data: bytes = field(repr=False)
    length: int


@dataclass(frozen=True, slots=True)
class Mask:
    """Single-use masks, one per entry of an answer; anyone who knows them can unmask."""

    values: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PreparedMatrix:
    """A matrix that was checked and put into the scheme's own form; one key's, for any vector."""

    rows: int
    length: int
    content: Any = field(repr=False)

    @classmethod
    def from_matrix(cls, matrix: IntArray | FloatArray, content: object) -> PreparedMatrix:
        """Combine a matrix's shape with its prepared content."""
        rows, length = matrix.shape
        return cls(rows, length, content)

    def check(self, vector: EncryptedVector, mask: Mask) -> None:
        """Refuse a vector or masks of another length."""
        if vector.length != self.length or len(mask.values) != self.rows:
            raise CryptoError(
                f"a matrix of {self.rows} by {self.length} times a vector of {vector.length}, "
                f"with {len(mask.values)} masks"
            )


class TableMasks(NamedTuple):
    """Single-use masks for entries of a table's answer, and this side's shares of the products.

    The other side's shares are what it decrypts from the answer.
    """

    values: IntArray
    shares: IntArray


class RowSum(Protocol):
    """Sum over all rows, accumulated part by part."""

    def add(self, vector: EncryptedVector, row_block: slice | None = None) -> None:
        """Add the product of the next part of ``Scheme.row_parts``; None means all rows."""

    def result(self) -> EncryptedAnswer:
        """The complete sum with its masks, re-randomised; one entry per column."""


class Table(Protocol):
    """Alice's whole table in the scheme's own form: made once, used in every pass."""

    @property
    def size(self) -> TableSize:
        """Shape of the table."""

    def sum_over_rows(self, mask: IntArray, entropy: Entropy) -> RowSum:
        """Start ``table.T @ vector + mask`` modulo t; ``mask`` has one integer per column."""

    def product(
        self,
        vector: EncryptedVector,
        mask: IntArray,
        entropy: Entropy,
        row_block: slice | None = None,
    ) -> EncryptedAnswer:
        """``table @ vector + mask`` modulo t for one part of the rows, re-randomised."""

    def use_key(self, key: PublicKey) -> None:
        """Answer under another key of the same sizes from now on."""

    def close(self) -> None:
        """Free the memory and end the worker processes."""


def next_part(row_block: slice | None, parts: list[slice], done: int) -> slice:
    """Return the next part; raise ``CryptoError`` if ``row_block`` names another."""
    if (
        done >= len(parts)
        or (row_block is None and len(parts) > 1)
        or row_block not in (None, parts[done])
    ):
        raise CryptoError(f"{row_block} is not the expected row block")
    return parts[done]


def require_all(parts: list[slice], done: int) -> None:
    """Raise ``CryptoError`` unless every part was added to a sum."""
    if done < len(parts):
        raise CryptoError("row blocks are missing from the sum")


def named_part(row_block: slice | None, parts: list[slice]) -> slice:
    """Return the named part; raise ``CryptoError`` if the table has no such part."""
    if row_block is None and len(parts) == 1:
        return parts[0]
    if row_block is None or row_block not in parts:
        raise CryptoError(f"{row_block} is not a row block of the table")
    return row_block


class PublicKey(Protocol):
    """Public key: Alice answers with it, and it cannot decrypt."""

    @property
    def capacity(self) -> Capacity:
        """Sizes that this key serves."""

    @property
    def modulus(self) -> int:
        """Exclusive upper bound of masked products."""

    def to_bytes(self) -> bytes:
        """The key for the wire."""

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        """Fresh masks for one answer; may be drawn ahead of time."""

    def mask_of(self, values: IntArray, entropy: Entropy) -> Mask:
        """Masks that add given values modulo t: for a key whose capacity is ``Wrapping``.

        Where the plaintexts are wider than the modulus, multiples of it that hide the product's own
        are drawn and added.
        """

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        """A matrix of whole numbers in the scheme's own form; may be done ahead of time."""

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        """Makes ahead what masks and re-randomises the next answer."""

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        """``matrix @ vector + mask``, re-randomised."""

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        """The exact signed product."""

    def table(self, whole: IntArray, memory: int = DEFAULT_TABLE_MEMORY) -> Table:
        """Convert a whole table to the scheme's own form, for a key whose capacity is ``Wrapping``.

        The caller must not change ``whole`` while the table is in use. ``memory`` is in bytes; with
        less of it a product takes longer.
        """

    def table_masks(self, length: int, entropy: Entropy) -> TableMasks:
        """Fresh masks for ``length`` entries of a table's answer, of ``Scheme.for_shares``."""


class SecretKey(Protocol):
    """The owner's key. Its ``repr`` shows no secret."""

    def to_bytes(self) -> bytes:
        """Serialise the secret key; the owner must store it encrypted."""

    @property
    def public(self) -> PublicKey:
        """The public key."""

    def stock(self, rows: int, length: int, entropy: Entropy) -> None:
        """Makes ahead what the next vector of this length needs, for an answer of ``rows`` rows."""

    def encrypt(self, vector: IntArray, rows: int, entropy: Entropy) -> EncryptedVector:
        """Encrypt with fresh randomness, for an answer of ``rows`` rows."""

    def decrypt(self, answer: EncryptedAnswer, length: int) -> tuple[int, ...]:
        """The masked products; ``length`` is that of the vector they were made from."""

    def decrypt_shares(self, answer: EncryptedAnswer, length: int) -> IntArray:
        """The products modulo ``2^k``: for a key whose capacity is ``Wrapping``."""

    def encrypt_rows(
        self, vector: IntArray, size: TableSize, entropy: Entropy, row_block: slice | None = None
    ) -> EncryptedVector:
        """Encrypt one value modulo t per row of ``row_block`` (None: all), for ``RowSum.add``."""

    def encrypt_columns(
        self, vector: IntArray, size: TableSize, entropy: Entropy
    ) -> EncryptedVector:
        """Encrypt one value modulo t per column of a table, for ``Table.product``."""

    def decrypt_columns(self, answer: EncryptedAnswer, size: TableSize) -> IntArray:
        """The entries of a ``RowSum``, centred modulo t."""

    def decrypt_rows(
        self, answer: EncryptedAnswer, size: TableSize, row_block: slice | None = None
    ) -> IntArray:
        """The entries of a ``Table.product`` for ``row_block`` (None: all), centred modulo t."""


class SlotPublicKey(Protocol):
    """Public key for elementwise products."""

    def to_bytes(self) -> bytes:
        """The key for the wire."""

    def sum_of(self, length: int) -> SlotSum:
        """An empty sum of products of ``length`` numbers each."""


class SlotSum(Protocol):
    """A sum of elementwise products, modulo ``SlotScheme.modulus``."""

    def add(self, table: IntArray, vector: EncryptedVector) -> None:
        """Add ``table * vector``, elementwise; table entries are below 2^31 in size."""

    def masked(self, masks: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """The sum plus ``masks``, which are uniform from 0 to the modulus and used once."""


class SlotSecretKey(Protocol):
    """Secret key for elementwise products. Its ``repr`` shows no secret."""

    @property
    def public(self) -> SlotPublicKey:
        """The public key."""

    def to_bytes(self) -> bytes:
        """Serialise the secret key; the owner must store it encrypted."""

    def encrypt(self, values: IntArray, entropy: Entropy) -> EncryptedVector:
        """Encrypt at most ``SlotScheme.slots`` values below 2^31 in size, with fresh randomness."""

    def decrypt(self, answer: EncryptedAnswer) -> WordArray:
        """The masked sums, from 0 to the modulus."""


class SlotScheme(Protocol):
    """Products number by number, modulo a prime: just below 2^59, or a *narrow* one.

    What one side encrypts, another multiplies, each number by one of its own, and masks. The former
    is so near ``2^59`` that a share modulo it is one modulo ``2^59``: see ``protocol.mutual``.
    Modulo a narrow prime ciphertexts are half as large.
    """

    @property
    def slots(self) -> int:
        """Number of values that a ciphertext holds."""

    @property
    def modulus(self) -> int:
        """The prime modulus."""

    def leak_bits(self, products: int) -> float:
        """-log2 of the statistical distance of an answer from one independent of the table.

        ``products`` is the number of products that the answer sums.
        """

    def narrow(self, answers: Sequence[int]) -> SlotScheme:
        """The same modulo a small prime, as large as the answers of a training allow.

        ``answers`` has for each how many products it sums. Refuses a training with so many that
        one of them could be wrong.
        """

    def generate(self, bits: int, entropy: Entropy, seed: bytes | None = None) -> SlotSecretKey:
        """Generate a key pair.

        Anyone who can repeat ``entropy`` has the key. ``seed`` is that of the key's uniform half,
        where it has one: the seed on which both sides agreed, or None for one of the owner's.
        """

    def read_public(self, data: bytes, bits: int, seed: bytes | None = None) -> SlotPublicKey:
        """Read a public key received from the peer and check it against the agreed ``seed``."""

    def read_secret(self, data: bytes, bits: int) -> SlotSecretKey:
        """Read the owner's stored secret key."""


MOST_SLOT_BITS = 31


def check_slots(values: IntArray, slots: int, name: str) -> None:
    """Refuse values that do not fit one ciphertext: too many, none, or one above 2^31 in size."""
    if values.dtype != np.int64 or values.ndim != 1 or not 1 <= len(values) <= slots:
        raise CryptoError(f"{name} of shape {values.shape} where 1 to {slots} int64 fit")
    _check_range(values, MOST_SLOT_BITS, name)


class Scheme(Protocol):
    """Encryption scheme: generates keys and reads them."""

    @property
    def name(self) -> str:
        """The name used in settings."""

    @property
    def protects(self) -> bool:
        """False for the scheme that hides nothing."""

    @property
    def whole_tables(self) -> bool:
        """Whether it has products of whole tables (``PublicKey.table``)."""

    @property
    def number_by_number(self) -> SlotScheme | None:
        """Slot-wise products of the scheme; None if it has none."""

    @property
    def key_bits(self) -> tuple[int, ...]:
        """Accepted key sizes, the default first; ``(0,)`` where there is no key."""

    @property
    def for_shares(self) -> Scheme:
        """The scheme of whole tables whose products are never opened.

        What both sides hold of a product may miss it by some units of the last place.
        """

    def row_parts(self, size: TableSize) -> list[slice]:
        """The parts of a table's rows whose ciphertexts travel together: a public rule."""

    def check_tables(self, capacity: Wrapping, size: TableSize, products: int) -> float:
        """Refuse a training that would leak too much of the table, or whose sums could be wrong.

        ``products`` counts the passes, each with one product from either side. Returns -log2 of the
        statistical distance of what they all reveal of the table beyond what is decrypted from
        them; infinite where nothing is hidden.
        """

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> SecretKey:
        """Generate a key pair.

        Anyone who can repeat ``entropy`` has the key. ``seed`` is that of the key's uniform half,
        where it has one: the seed on which both sides agreed, or None for one of the owner's.
        """

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> PublicKey:
        """Read a public key received from the peer and check it against the agreed ``seed``."""

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> SecretKey:
        """Read the owner's stored secret key."""
