"""Several masked products in one large plaintext.

A slot is ``width`` bits wide. With P the capacity's product bits, it holds

::

    product + 2^P  in [0, 2^(P+1)]        the offset 2^P makes it non-negative
    + mask         in [0, 2^(P+1+64))     so the sum stays below 2^(P+1+64) + 2^(P+1)
                                           < 2^(P+1+64+1) = 2^width

so slots never carry into each other, and as many slots stand in one plaintext as fit below the
modulus without wrapping.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gmpy2 import mpz

from taciturn.crypto.base import Capacity
from taciturn.errors import CryptoError

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
        """Packing with as many slots as fit below every modulus of ``bits`` bits."""
        one = cls(capacity.product_bits, 1)
        slots = (bits - 1) // one.width
        if slots < 1:
            raise CryptoError(
                f"products of {capacity.product_bits} bits need {one.width} bits with their mask, "
                f"and a key of {bits} bits holds {bits - 1}"
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
