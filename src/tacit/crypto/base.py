"""The one job of every scheme: an integer matrix times an encrypted integer vector.

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
anything is computed.

The schemes are malleable: an altered ciphertext decrypts to another number, undetected. Only the
structure is checked (lengths, ranges), and only such failures may be seen by the peer; integrity on
the way is the transport's work.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tacit.arrays import FloatArray, IntArray
from tacit.errors import CryptoError
from tacit.rng import Entropy


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the plaintext space must hold: every entry of a product lies in ±2^product_bits.

    Args:
        vector_bits: Entries of the encrypted vector lie in ±2^vector_bits.
        matrix_bits: Entries of the plain matrix lie in ±2^matrix_bits.
        terms: The longest sum of products, that is the longest vector.
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
                hint="lower the fixed-point bits, clip the features, or use smaller batches",
            )

    @property
    def product_bits(self) -> int:
        """Bits of the largest possible sum: factors plus ceil(log2(terms))."""
        return self.vector_bits + self.matrix_bits + (self.terms - 1).bit_length()

    def check_vector(self, vector: IntArray) -> None:
        """Refuses a vector that is too long or has an entry out of range."""
        if vector.dtype != np.int64:
            raise CryptoError(f"the vector holds {vector.dtype}, not int64")
        _check_range(vector, self.vector_bits, "vector")
        if vector.ndim != 1 or not 1 <= len(vector) <= self.terms:
            raise CryptoError(f"a vector of shape {vector.shape} where 1 to {self.terms} fit")

    def check_matrix(self, matrix: IntArray | FloatArray) -> None:
        """Refuses a matrix that is too wide or has an entry out of range.

        The entries are whole numbers, as integers or as reals.
        """
        if matrix.dtype not in (np.int64, np.float64):
            raise CryptoError(f"the matrix holds {matrix.dtype}, not int64 or whole float64")
        _check_range(matrix, self.matrix_bits, "matrix")
        if matrix.ndim != 2 or matrix.shape[0] < 1 or not 1 <= matrix.shape[1] <= self.terms:
            raise CryptoError(
                f"a matrix of shape {matrix.shape} where rows of 1 to {self.terms} fit"
            )


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
    """Single-use masks, one per entry of an answer; whoever knows them can unmask."""

    values: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class PreparedMatrix:
    """A matrix that was checked and put into the scheme's own form; one key's, for any vector."""

    rows: int
    length: int
    content: Any = field(repr=False)

    @classmethod
    def of(cls, matrix: IntArray | FloatArray, content: object) -> PreparedMatrix:
        """A matrix's shape with its prepared content."""
        rows, length = matrix.shape
        return cls(rows, length, content)

    def check(self, vector: EncryptedVector, mask: Mask) -> None:
        """Refuses a vector or masks of another length."""
        if vector.length != self.length or len(mask.values) != self.rows:
            raise CryptoError(
                f"a matrix of {self.rows} by {self.length} times a vector of {vector.length}, "
                f"with {len(mask.values)} masks"
            )


class PublicKey(Protocol):
    """What Alice needs to answer, and nothing that decrypts."""

    @property
    def capacity(self) -> Capacity:
        """The sizes this key serves."""
        ...

    @property
    def modulus(self) -> int:
        """Masked products lie below this."""
        ...

    def to_bytes(self) -> bytes:
        """The key for the wire."""
        ...

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        """Fresh masks for one answer; may be drawn ahead of time."""
        ...

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        """A matrix of whole numbers in the scheme's own form; may be done ahead of time.

        Raises:
            CryptoError: The matrix does not fit the capacity.
        """
        ...

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        """Makes ahead what masks and re-randomises the next answer."""
        ...

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        """``matrix @ vector + mask``, re-randomised.

        Raises:
            CryptoError: The vector's bytes are not of this key's form, or sizes do not fit.
        """
        ...

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        """The exact signed product.

        Raises:
            CryptoError: An entry lies outside [0, modulus) or the product outside its capacity.
        """
        ...


class SecretKey(Protocol):
    """The owner's key. Its ``repr`` shows no secret."""

    def to_bytes(self) -> bytes:
        """The secret key for a file of its owner, who must keep it encrypted."""
        ...

    @property
    def public(self) -> PublicKey:
        """The half that may be sent."""
        ...

    def stock(self, rows: int, length: int, entropy: Entropy) -> None:
        """Makes ahead what the next vector of this length needs, for an answer of so many rows."""
        ...

    def encrypt(self, vector: IntArray, rows: int, entropy: Entropy) -> EncryptedVector:
        """Encrypts with fresh randomness, for an answer of so many rows.

        Raises:
            CryptoError: The vector does not fit the capacity.
        """
        ...

    def decrypt(self, answer: EncryptedAnswer, length: int) -> tuple[int, ...]:
        """The masked products; ``length`` is that of the vector they were made from.

        Raises:
            CryptoError: The answer's bytes are not of this key's form.
        """
        ...


class Scheme(Protocol):
    """A way to make keys, and to read public ones."""

    @property
    def name(self) -> str:
        """The name used in settings."""
        ...

    @property
    def protects(self) -> bool:
        """False for the scheme that hides nothing."""
        ...

    @property
    def key_bits(self) -> tuple[int, ...]:
        """Accepted key sizes, the default first; ``(0,)`` where there is no key."""
        ...

    def generate(self, bits: int, capacity: Capacity, entropy: Entropy) -> SecretKey:
        """A fresh key pair.

        Raises:
            CryptoError: The size is not offered, or the capacity does not fit it.
        """
        ...

    def read_public(self, data: bytes, bits: int, capacity: Capacity) -> PublicKey:
        """A public key received from the peer, checked.

        Raises:
            CryptoError: The bytes are not a public key of this size.
        """
        ...

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> SecretKey:
        """A secret key that its owner kept.

        Raises:
            CryptoError: The bytes are not a secret key of this size.
        """
        ...
