"""Products of powers modulo n^2: shared squarings, tabled subsets, factors of half the length.

The product of all ``b_i ^ e_i`` is computed as Straus did [Straus64]: walk the bit positions of all
exponents from the top, square once per position, and multiply by the bases whose exponent has a one
there. However many bases there are, there is one chain of squarings. The bases stand in blocks, and
a table holds the product of every subset of a block: a position then costs one multiplication per
block, not per base.

**Short factors.** Every unit modulo n^2 is ``s (1 + t n)`` with s its residue modulo n, and
``(1 + t n) (1 + u n) = 1 + (t + u) n``. So tables hold pairs (s, t): multiplying by s costs little
more than half of what multiplying by a whole element does, and the t are added up and multiplied in
once, at the end. The arithmetic of the tables is modulo n, too.

**Signs.** Exponents are made non-negative by adding one offset to all of them. What that adds to
the product, the product of all bases to the offset, is taken away with its inverse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import NamedTuple

import gmpy2
import numpy as np
from gmpy2 import mpz

from taciturn.arrays import IntArray

_LARGEST_BLOCK = 10
_TABLE_COST = 1.5  # One entry of a table, in multiplications by a short factor.
_LONG_RUN = 8


class _Unit(NamedTuple):
    """``short * (1 + tail n)`` modulo n^2, and the inverse of ``short`` modulo n."""

    short: mpz
    inverse: mpz
    tail: mpz

    @classmethod
    def from_element(cls, element: mpz, n: mpz) -> _Unit:
        above, short = gmpy2.f_divmod(element, n)
        inverse = gmpy2.invert(short, n)
        return cls(short, inverse, above * inverse % n)

    def times(self, other: _Unit, n: mpz) -> _Unit:
        # The shorts' product is short + carry n = short (1 + carry / short n).
        carry, short = gmpy2.f_divmod(self.short * other.short, n)
        inverse = self.inverse * other.inverse % n
        return _Unit(short, inverse, self.tail + other.tail + carry * inverse)

    def inverted(self, n: mpz) -> _Unit:
        # short * inverse is 1 + carry n.
        carry = self.short * self.inverse // n
        return _Unit(self.inverse, self.short, -self.tail - carry)


def block_sizes(bases: int, positions: int) -> list[int]:
    """Number of bases in each block, for the least work over the bit positions.

    A block of b bases costs a table of 2^b entries, and a multiplication per position.
    """

    def spread(blocks: int) -> list[int]:
        size, larger = divmod(bases, blocks)
        return [size + (number < larger) for number in range(blocks)]

    def work(sizes: list[int]) -> float:
        return sum(_TABLE_COST * (1 << size) + positions for size in sizes)

    fewest = -(-bases // _LARGEST_BLOCK)
    return min((spread(blocks) for blocks in range(fewest, bases + 1)), key=work)


@dataclass(frozen=True, slots=True)
class Ladder:
    """A product of powers as a walk down the bit positions; made without knowing the bases.

    A step is the entries to multiply by, as indices into ``SubsetTables``, and how often to square
    after it.
    """

    steps: list[tuple[list[int], int]]

    @classmethod
    def from_exponents(
        cls, exponents: IntArray, offset_bits: int, width: int, sizes: Sequence[int]
    ) -> Ladder:
        """The walk for exponents in slots.

        ``exponents`` has one row per slot and one column per base, in ±2^offset_bits; the exponent
        of a base is the sum of all ``exponents[j] * 2^(width*j)``. The offset is 2^offset_bits, and
        ``width``, the bits from slot to slot, is more than ``offset_bits + 1``.
        """
        shifted = exponents + (1 << offset_bits)
        top = max(int(shifted.max()).bit_length() - 1, offset_bits)
        inverse = sum(1 << size for size in sizes)
        steps = []
        for slot in _subsets(shifted, top, sizes)[::-1].tolist():
            # The offset is in every exponent: the inverse of all bases, at its bit, takes it off.
            slot[top - offset_bits].append(inverse)
            steps += [(entries, 1) for entries in slot[:-1]] + [(slot[-1], width - top)]
        # Below the lowest slot there is nothing to square for.
        last, _ = steps.pop()
        return cls([*steps, (last, 0)])


def _subsets(exponents: IntArray, top: int, sizes: Sequence[int]) -> IntArray:
    """Per row, bit from the top, and block: index of the product of the bases with that bit set."""
    bits = exponents[:, np.newaxis, :] >> np.arange(top, -1, -1)[:, np.newaxis] & 1
    ends = list(accumulate(sizes, initial=0))
    weights = np.concatenate([1 << np.arange(size) for size in sizes])
    tables = list(accumulate((1 << size for size in sizes), initial=0))
    numbers: IntArray = np.add.reduceat(bits * weights, ends[:-1], axis=2)
    numbers += np.array(tables[:-1])
    return numbers


@dataclass(frozen=True, slots=True)
class SubsetTables:
    """The products of all subsets of each block, end to end, and the inverse of all bases' product.

    Entry k of a block is the product of the bases that the bits of k name.
    """

    shorts: list[mpz]
    tails: list[mpz]

    @classmethod
    def from_bases(cls, bases: Sequence[mpz], n: mpz, sizes: Iterable[int]) -> SubsetTables:
        """Tables of ``bases``, units modulo n^2, in blocks of ``sizes``."""
        entries: list[_Unit] = []
        everything = one = _Unit(mpz(1), mpz(1), mpz(0))
        start = 0
        for size in sizes:
            table = [one]
            for base in bases[start : start + size]:
                unit = _Unit.from_element(base, n)
                table += [entry.times(unit, n) for entry in table]
            everything = everything.times(table[-1], n)
            entries += table
            start += size
        entries.append(everything.inverted(n))
        return cls([entry.short for entry in entries], [entry.tail for entry in entries])


def product_of_powers(ladder: Ladder, tables: SubsetTables, n: mpz, *, alone: bool) -> mpz:
    """Exact product modulo n^2 that a ladder represents.

    **Assumes.** The tables were made for this modulus and the ladder's blocks.

    ``alone``: no other thread does the same meanwhile.
    """
    square = n * n
    product, tail = mpz(1), mpz(0)
    for entries, squarings in ladder.steps:
        shorts = map(tables.shorts.__getitem__, entries)
        # Two shorts are as long as an element: fewer, longer operations.
        for one, other in zip_longest(shorts, shorts, fillvalue=1):
            product = product * (one * other) % square
        tail = tail + sum(map(tables.tails.__getitem__, entries)) << squarings
        if squarings < _LONG_RUN:
            for _ in range(squarings):
                product = product * product % square
        else:
            product = _squared(product, squarings, n, alone=alone)
    return product * (1 + tail % n * n) % square


def _squared(element: mpz, times: int, n: mpz, *, alone: bool) -> mpz:
    if not alone:
        # One call for the whole run: it leaves the other threads alone meanwhile.
        return gmpy2.powmod(element, mpz(1) << times, n * n)
    # (low + high n)^2 = low^2 + 2 low high n: quicker by the halves.
    high, low = gmpy2.f_divmod(element, n)
    for _ in range(times):
        cross = low * high
        carry, low = gmpy2.f_divmod(low * low, n)
        high = (cross + cross + carry) % n
    return low + high * n
