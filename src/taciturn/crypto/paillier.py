"""Paillier: the paper's scheme, with packed answers.

[Paillier99] with g = n + 1. A vector is one ciphertext per entry, ``(1 + v_i n) r_i^n
mod n^2``, made by the key's owner with his factors (``trapdoor``). For an answer, d products are
packed into slots of one plaintext (``Packing``), and one packed ciphertext is one product of powers
(``multiexp``)::

    (1 + M n) * prod_i c_i ^ (sum_j x_ij 2^(width j)) * r^n   mod n^2

with M the packed masks and offsets, and r fresh and uniform in Z_n*. Products and packing share
their squarings. The obfuscators ``r^n`` on both sides, and the order of the multiplications, do not
depend on the peer's next message and are made ahead.

There is one public scale for everything, agreed on outside this room: no exponent and no scale
travels with a ciphertext, and every ciphertext of a key has the same number of bytes.

On the wire an element is a big-endian number of exactly ``2 * bits / 8`` bytes, a sequence is their
concatenation. What is read is checked for structure only: the exact length, every element in
[1, n^2), all coprime to n.

Several masked products in one large plaintext.

A slot is ``width`` bits wide. With P the capacity's product bits, it holds

::

    product + 2^P  in [0, 2^(P+1)]        the offset 2^P makes it non-negative
    + mask         in [0, 2^(P+1+64))     so the sum stays below 2^(P+1+64) + 2^(P+1)
                                           < 2^(P+1+64+1) = 2^width

so slots never carry into each other, and as many slots stand in one plaintext as fit below the
modulus without wrapping.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NoReturn

import gmpy2
import numpy as np
from gmpy2 import mpz

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import (
    Capacity,
    EncryptedAnswer,
    EncryptedVector,
    Mask,
    PreparedMatrix,
    wrapping,
)
from taciturn.crypto.multiexp import Ladder, SubsetTables, block_sizes, product_of_powers
from taciturn.crypto.trapdoor import Trapdoor, has_small_factor, looks_prime, on_all_cores
from taciturn.errors import CryptoError
from taciturn.rng import Entropy

MASK_BITS = 64
"""Bits by which a mask exceeds what it hides."""


@dataclass(frozen=True, slots=True)
class Packing:
    """Packing of masked products into a plaintext.

    **Guarantee.** For two products within capacity, a slot's values under a fresh mask have the
    same distribution up to a statistical distance of 2^-64: shifting the uniform distribution on M
    values by at most s moves it by s/M, here 2^(P+1) / 2^(P+1+64). Over a training of T answers of
    d entries each, the masks hide everything but T * d * 2^-64 (union bound): a million answers
    with a hundred entries stay below 2^-37.

    **Assumes.** The vector is honest (within capacity), masks are uniform and used once.
    """

    product_bits: int
    slots: int

    @classmethod
    def within(cls, capacity: Capacity, bits: int) -> Packing:
        """Packing with as many slots as fit below every modulus of ``bits`` bits.

        Raises ``CryptoError`` if not even one fits.
        """
        single = cls(capacity.product_bits, 1)
        slots = (bits - 1) // single.width
        if slots < 1:
            raise CryptoError(
                f"products of {capacity.product_bits} bits need {single.width} bits with their "
                f"mask, and a key of {bits} bits holds {bits - 1}"
            )
        return cls(capacity.product_bits, slots)

    @property
    def width(self) -> int:
        """Bits of a slot: product, sign, mask and carry."""
        return self.product_bits + 1 + MASK_BITS + 1

    @property
    def offset(self) -> int:
        """Offset that makes every product non-negative."""
        return 1 << self.product_bits

    @property
    def mask_bound(self) -> int:
        """Exclusive upper bound of masks."""
        return 1 << (self.product_bits + 1 + MASK_BITS)

    def plaintexts(self, length: int) -> int:
        """Number of plaintexts for the entries: one, or an even number for two cores to share."""
        least = -(-length // self.slots)
        return least + least % 2 if least > 1 else least

    def groups(self, length: int) -> Iterator[range]:
        """The entries of each plaintext, in order."""
        # Nearly equal groups, so that the cores finish together.
        size, larger = divmod(length, self.plaintexts(length))
        start = 0
        for number in range(self.plaintexts(length)):
            stop = start + size + (number < larger)
            yield range(start, stop)
            start = stop

    def pack(self, values: Sequence[int]) -> mpz:
        """The sum of all ``values[j] * 2^(width*j)``; values may be negative."""
        packed = mpz(0)
        for value in reversed(values):
            packed = (packed << self.width) + value
        return packed

    def unpack(self, packed: mpz, count: int) -> list[int]:
        """The lowest slots of any non-negative number; what lies above them is ignored."""
        low = (mpz(1) << self.width) - 1
        return [int((packed >> (self.width * slot)) & low) for slot in range(count)]


OFFERED_BITS = (3072, 2048)
"""128-bit and 112-bit security [NIST57, table 2]."""


def _no_tables(*_: object, **__: object) -> NoReturn:
    raise CryptoError(
        "paillier has no products of whole tables: it would encrypt every row by itself, and take "
        "a power for every number of the table in every pass",
        hint="use bfv, or solver sgd",
    )


@dataclass(frozen=True, slots=True)
class _Exponents:
    sizes: list[int]
    ladders: list[Ladder]


@dataclass(frozen=True, slots=True)
class PaillierPublicKey:
    """The modulus n, which is all that Alice needs.

    **Guarantee.** The holder of this key alone learns nothing from encrypted vectors (IND-CPA). The
    owner learns from an answer the masked products and nothing else about the matrix: an answer is
    distributed as a fresh encryption of the masked products, because r^n is uniform among the n-th
    residues, and the masks hide each product to within 2^-64 (``Packing`` has the bound for a whole
    training).

    **Assumes.** The decisional composite residuosity assumption, for the first. For the second an
    owner who made the key and the vector as prescribed: entries beyond the capacity would stick out
    of their masks, and a modulus of another form may have fewer n-th residues. Timing is not
    hidden: the time of ``masked_product`` depends on the bits of the matrix.
    """

    n: mpz = field(repr=False)
    capacity: Capacity
    square: mpz = field(init=False, repr=False, compare=False)
    packing: Packing = field(init=False, repr=False, compare=False)
    _obfuscators: deque[mpz] = field(default_factory=deque, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "square", self.n * self.n)
        object.__setattr__(self, "packing", Packing.within(self.capacity, self.bits))

    @property
    def bits(self) -> int:
        """Key size in bits."""
        return int(self.n.bit_length())

    @property
    def modulus(self) -> int:
        """Exclusive upper bound of a slot."""
        return 1 << self.packing.width

    def to_bytes(self) -> bytes:
        """The modulus, big-endian, in exactly ``bits / 8`` bytes."""
        return int(self.n).to_bytes(self.bits // 8, "big")

    def draw_mask(self, length: int, entropy: Entropy) -> Mask:
        """Fresh masks, each uniform below 2^(product_bits + 1 + 64)."""
        if length < 1:
            raise CryptoError(f"masks for {length} entries")
        bound = self.packing.mask_bound
        return Mask(tuple(entropy.below(bound) for _ in range(length)))

    def mask_of(self, values: IntArray, entropy: Entropy) -> Mask:
        """The values plus multiples of the modulus, uniform over the whole range of a mask.

        A slot then holds ``product + value`` modulo t exactly, and its quotient by t is hidden to
        within 2^-64: a shift of at most ``2^(product_bits + 1) / t`` steps against
        ``2^(product_bits + 1 + 64) / t`` of them (``Packing``). The offset is a multiple of t.
        """
        ring = wrapping(self.capacity)
        modulus = 1 << ring.modulus_bits
        multiples = self.packing.mask_bound >> ring.modulus_bits
        return Mask(
            tuple(value % modulus + modulus * entropy.below(multiples) for value in values.tolist())
        )

    def prepare(self, matrix: IntArray | FloatArray) -> PreparedMatrix:
        """Convert the matrix to packed exponents, column by column."""
        self.capacity.check_matrix(matrix)
        rows, columns = matrix.shape
        offset_bits = self.capacity.matrix_bits
        sizes = block_sizes(columns, rows * (offset_bits + 1))
        whole = matrix.astype(np.int64)
        ladders = [
            Ladder.from_exponents(
                whole[group.start : group.stop], offset_bits, self.packing.width, sizes
            )
            for group in self.packing.groups(rows)
        ]
        return PreparedMatrix.from_matrix(matrix, _Exponents(sizes, ladders))

    def stock(self, prepared: PreparedMatrix, mask: Mask, entropy: Entropy) -> None:
        """Make obfuscators for the ciphertexts of the next answer."""
        missing = self.packing.plaintexts(prepared.rows) - len(self._obfuscators)
        units = [self._draw_unit(entropy) for _ in range(missing)]
        self._obfuscators.extend(on_all_cores(self._obfuscator_of, units))

    def masked_product(
        self, prepared: PreparedMatrix, vector: EncryptedVector, mask: Mask, entropy: Entropy
    ) -> EncryptedAnswer:
        """``matrix @ vector + offset + mask`` with fresh masks, packed and re-randomised."""
        prepared.check(vector, mask)
        self._check_mask(mask, prepared.rows)
        elements = self.read_elements(vector.data, vector.length)
        exponents: _Exponents = prepared.content
        tables = SubsetTables.from_bases(elements, self.n, exponents.sizes)
        alone = len(exponents.ladders) == 1
        products = on_all_cores(
            lambda ladder: product_of_powers(ladder, tables, self.n, alone=alone),
            exponents.ladders,
        )
        answers = []
        for rows, product in zip(self.packing.groups(prepared.rows), products, strict=True):
            shift = [value + self.packing.offset for value in mask.values[rows.start : rows.stop]]
            # (1 + n)^m is 1 + m n modulo n^2: adding to a plaintext needs no exponentiation.
            answer = (1 + self.packing.pack(shift) * self.n) * product % self.square
            answers.append(answer * self._obfuscator(entropy) % self.square)
        return EncryptedAnswer(self.write_elements(answers), prepared.rows)

    def unmask(self, masked: tuple[int, ...], mask: Mask) -> IntArray:
        """The exact signed product: what was decrypted, minus mask, minus offset."""
        self._check_mask(mask, len(masked))
        offset = self.packing.offset
        if not all(0 <= entry < self.modulus for entry in masked):
            raise CryptoError(f"a masked product lies outside its {self.packing.width} bits")
        products = [r - m - offset for r, m in zip(masked, mask.values, strict=True)]
        # The peer decrypted honestly only if what is left lies where a product can lie.
        if not all(-offset <= product <= offset for product in products):
            raise CryptoError(f"a product exceeds its {self.packing.product_bits} bits")
        return np.array(products, dtype=np.int64)

    table = table_masks = _no_tables

    def read_elements(self, data: bytes, count: int) -> list[mpz]:
        """Read group elements, each in [1, n^2) and coprime to n."""
        width = self._element_bytes
        if count < 1 or len(data) != count * width:
            raise CryptoError(f"{len(data)} bytes where {count} elements of {width} were expected")
        elements = [mpz.from_bytes(data[at : at + width]) for at in range(0, len(data), width)]
        if not all(0 < element < self.square for element in elements):
            raise CryptoError("an element lies outside [1, n^2)")
        # A product is coprime to n exactly when every factor is: one gcd serves all.
        together = mpz(1)
        for element in elements:
            together = together * element % self.n
        if gmpy2.gcd(together, self.n) != 1:
            raise CryptoError("an element is not invertible")
        return elements

    def write_elements(self, elements: Iterable[mpz]) -> bytes:
        """Write group elements as big-endian bytes of fixed length."""
        return b"".join(int(e).to_bytes(self._element_bytes, "big") for e in elements)

    @property
    def _element_bytes(self) -> int:
        return self.bits // 4

    def _check_mask(self, mask: Mask, length: int) -> None:
        if len(mask.values) != length:
            raise CryptoError(f"{len(mask.values)} masks for {length} entries")
        if not all(0 <= value < self.packing.mask_bound for value in mask.values):
            raise CryptoError("a mask is outside this key's range")

    def _obfuscator(self, entropy: Entropy) -> mpz:
        if self._obfuscators:
            return self._obfuscators.popleft()
        return self._obfuscator_of(self._draw_unit(entropy))

    def _obfuscator_of(self, unit: mpz) -> mpz:
        """``r^n``: uniform among the n-th residues for r uniform in Z_n*."""
        return gmpy2.powmod(unit, self.n, self.square)

    def _draw_unit(self, entropy: Entropy) -> mpz:
        while True:
            unit = mpz(entropy.below(int(self.n)))
            # Almost certain: any other number would hand out a factor of n.
            if gmpy2.gcd(unit, self.n) == 1:
                return unit


@dataclass(frozen=True, slots=True, eq=False)
class PaillierSecretKey:
    """The owner's key: the public half and the factors.

    **Guarantee.** ``encrypt`` draws every obfuscator exactly as the scheme asks (``trapdoor`` has
    the argument). ``decrypt`` fails on structure only: any element that is invertible modulo n^2
    decrypts to some values, without an error that would depend on the key or the plaintext.

    **Assumes.** The peer is honest about what it asks to be decrypted: decryptions handed back to
    someone who can choose the answers are a decryption oracle. Timing: see ``Trapdoor``.
    """

    public: PaillierPublicKey
    _trapdoor: Trapdoor = field(repr=False)
    _obfuscators: deque[mpz] = field(default_factory=deque, init=False, repr=False)

    def to_bytes(self) -> bytes:
        """The two factors, each of half the modulus's bytes."""
        return self._trapdoor.to_bytes()

    def stock(self, rows: int, length: int, entropy: Entropy) -> None:
        """Make obfuscators for the ciphertexts of the next vector."""
        missing = length - len(self._obfuscators)
        seeds = [self._trapdoor.draw_seed(entropy) for _ in range(missing)]
        self._obfuscators.extend(on_all_cores(lambda seed: self._trapdoor.obfuscator(*seed), seeds))

    def encrypt(self, vector: IntArray, rows: int, entropy: Entropy) -> EncryptedVector:
        """One ciphertext per entry, each with a fresh obfuscator."""
        self.public.capacity.check_vector(vector)
        elements = [
            self._trapdoor.encrypt(entry, self._obfuscator(entropy)) for entry in vector.tolist()
        ]
        return EncryptedVector(self.public.write_elements(elements), len(elements))

    def _obfuscator(self, entropy: Entropy) -> mpz:
        if self._obfuscators:
            return self._obfuscators.popleft()
        return self._trapdoor.obfuscator(*self._trapdoor.draw_seed(entropy))

    def decrypt(self, answer: EncryptedAnswer, length: int) -> tuple[int, ...]:
        """The slots of the answer, each in [0, 2^width)."""
        packing = self.public.packing
        elements = self.public.read_elements(answer.data, packing.plaintexts(answer.length))
        messages = self._trapdoor.decrypt(elements)
        slots: list[int] = []
        for message, rows in zip(messages, packing.groups(answer.length), strict=True):
            slots += packing.unpack(message, len(rows))
        return tuple(slots)

    def decrypt_shares(self, answer: EncryptedAnswer, length: int) -> IntArray:
        """The slots modulo the key's power of two. The running time depends slightly on them."""
        return wrapping(self.public.capacity).reduced(self.decrypt(answer, length))

    encrypt_rows = encrypt_columns = decrypt_rows = decrypt_columns = _no_tables


@dataclass(frozen=True, slots=True)
class PaillierScheme:
    """Paillier with keys of the given sizes.

    The registered instance is ``PaillierScheme()``. One with any size below 2048 is for tests only:
    it has another name and says that it does not protect.

    ``key_bits`` are the accepted sizes, the default first; multiples of 16.
    """

    key_bits: tuple[int, ...] = OFFERED_BITS
    whole_tables: ClassVar[bool] = False
    number_by_number: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not self.key_bits or any(bits < 64 or bits % 16 for bits in self.key_bits):
            raise CryptoError(f"key sizes {self.key_bits} are not multiples of 16, 64 or more")

    @property
    def name(self) -> str:
        """The name used in settings."""
        return "paillier" if self.protects else "paillier-for-tests"

    @property
    def protects(self) -> bool:
        """True unless a size is accepted that is for tests only."""
        return min(self.key_bits) >= min(OFFERED_BITS)

    @property
    def for_shares(self) -> PaillierScheme:
        """Always raises ``CryptoError``."""
        _no_tables()

    row_parts = check_tables = _no_tables

    def generate(
        self, bits: int, capacity: Capacity, entropy: Entropy, seed: bytes | None = None
    ) -> PaillierSecretKey:
        """A fresh key pair.

        **Guarantee.** n is the product of two primes drawn independently, of half the bits each
        (``draw_prime``), that are far apart, with gcd(n, (p-1)(q-1)) = 1.

        **Assumes.** The entropy is private: anyone who can repeat it has the key.
        """
        self._check_bits(bits)
        Packing.within(capacity, bits)  # Before the search for primes, not after it.
        trapdoor = Trapdoor.draw(bits, entropy)
        return PaillierSecretKey(PaillierPublicKey(trapdoor.n, capacity), trapdoor)

    def read_public(
        self, data: bytes, bits: int, capacity: Capacity, seed: bytes | None = None
    ) -> PaillierPublicKey:
        """A public key received from the peer.

        **Guarantee.** The modulus has exactly the agreed bits and is odd, and is neither a prime
        nor a perfect power nor divisible by a prime below 4096.

        **Assumes.** Beyond that the peer is believed: that n is a product of two large primes is
        not proven here.
        """
        self._check_bits(bits)
        if len(data) != bits // 8:
            raise CryptoError(f"a public key of {len(data)} bytes where {bits // 8} are expected")
        n = mpz.from_bytes(data)
        if n.bit_length() != bits or n % 2 == 0:
            raise CryptoError(f"the public key is not an odd number of exactly {bits} bits")
        if has_small_factor(n) or gmpy2.is_power(n) or looks_prime(n):
            raise CryptoError("the public key is not a product of two large primes")
        return PaillierPublicKey(n, capacity)

    def read_secret(self, data: bytes, bits: int, capacity: Capacity) -> PaillierSecretKey:
        """Read the owner's stored secret key."""
        self._check_bits(bits)
        trapdoor = Trapdoor.from_bytes(data)
        if trapdoor.n.bit_length() != bits:
            raise CryptoError(f"the secret key is not one of {bits} bits")
        return PaillierSecretKey(PaillierPublicKey(trapdoor.n, capacity), trapdoor)

    def _check_bits(self, bits: int) -> None:
        if bits not in self.key_bits:
            offered = ", ".join(map(str, self.key_bits))
            raise CryptoError(f"{bits}-bit keys are not offered", hint=f"{self.name}: {offered}")
