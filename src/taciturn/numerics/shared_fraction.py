"""A fraction of a number that two parties share modulo ``t = 2^k``.

Sums and whole multiples of shares need no exchange. A fraction does: with the parts a and b as
numbers from 0 to t, ``a + b`` is the number, or the number and t, and halving both parts halves
that t as well. What both sides must know of it, shared in its turn, is the *carry*, 0 or 1.

One side adds t/2 to its part, so that with ``|x| < t/4``

    a + b = x + t/2 + t c        t/4 < x + t/2 < 3t/4

Cut the ring into four segments, of which a lies in ``h_A`` and b in ``h_B``: ``a + b`` is at least
``(h_A + h_B) t/4`` and less than ``(h_A + h_B + 2) t/4``. So ``c = 0`` makes ``h_A + h_B`` at most
2, and ``c = 1`` at least 4; three does not occur. One side has a 1 at its segment among four
numbers, the other has for each of those the carry that would be: the sum of four products is c.

**Guarantee.** For ``|x| < t/4`` the carry is exact, and ``accelerated`` is off by less than six
units, whatever the parts are (a test goes through whole small rings). All is done by additions,
multiplications and shifts, with the same work for all shares.

**Assumes.** ``|x| < t/4``. Beyond, the carry may be wrong, and the result another number: what a
score beyond its range is too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import IntArray

SEGMENTS = 4
UNIT_BITS = 10
"""A momentum is a whole number of ``2^-UNIT_BITS``."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Shares of numbers and of their carries, on one side.

    Parts are from 0 to t, with t/2 added on the side that raises; carries are shares of 0 or 1,
    modulo t.
    """

    parts: IntArray = field(repr=False)
    carries: IntArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class SharedFraction:
    """One side's part of dividing shared numbers by ``2^shift``.

    Shares live modulo ``2^modulus_bits``. The shift is from ``modulus_bits - 52`` to ``modulus_bits
    - UNIT_BITS``. The side that ``raises`` adds t/2.
    """

    modulus_bits: int
    shift: int
    raises: bool

    def parts(self, shares: IntArray) -> IntArray:
        """This side's parts, from 0 to t, of its shares."""
        raised = shares + (np.int64(self.raises) << np.int64(self.modulus_bits - 1))
        parts: IntArray = np.bitwise_and(raised, np.int64((1 << self.modulus_bits) - 1))
        return parts

    def marks(self, parts: IntArray) -> IntArray:
        """One-hot encoding of each part's segment."""
        marks: IntArray = np.equal(self._segments(parts), np.arange(SEGMENTS)).astype(np.int64)
        return marks

    def table(self, parts: IntArray) -> IntArray:
        """Carry of each part with each segment of the other side's part."""
        sums = self._segments(parts) + np.arange(SEGMENTS)
        carries: IntArray = np.greater_equal(sums, SEGMENTS).astype(np.int64)
        return carries

    def _segments(self, parts: IntArray) -> IntArray:
        segments: IntArray = parts >> np.int64(self.modulus_bits - 2)
        return segments[:, np.newaxis]

    def accelerated(self, now: Carried, before: Carried, momentum: int) -> IntArray:
        """This side's share of ``(x + b (x - x')) / 2^shift`` with ``b = momentum / 2^UNIT_BITS``.

        x is ``now`` and x' is ``before``; the result is not reduced modulo t.
        """
        ahead, shift = (1 << UNIT_BITS) + momentum, np.int64(self.shift)
        parts = (now.parts >> shift) * ahead - (before.parts >> shift) * momentum
        # The t that a carry stands for is a whole number of units here: t is a power of two.
        unit = np.int64(1) << np.int64(self.modulus_bits - self.shift - UNIT_BITS)
        carries = (now.carries * ahead - before.carries * momentum) * unit
        raised = np.int64(self.raises) << np.int64(self.modulus_bits - 1 - self.shift)
        return (parts >> np.int64(UNIT_BITS)) - carries - raised


def momentum(number: int) -> int:
    """Nesterov's b of the step after pass ``number``, in units of ``2^-UNIT_BITS``."""
    now = 1.0
    for _ in range(number):
        now = _following(now)
    return math.floor((now - 1.0) / _following(now) * (1 << UNIT_BITS))


def _following(size: float) -> float:
    return (1.0 + math.sqrt(1.0 + 4.0 * size * size)) / 2.0
