"""Number of shared scores out of range, from the segments of their shares.

A score is shared modulo ``t = 2^k``, and the whole ring is ``[-H, H)``. One side adds t/2 to its
part, so that 0 and t are the ends of the range. Cut the ring into S segments, of which the parts
lie in number ``h_A`` and ``h_B``: with ``j = h_A + h_B`` modulo S the score lies in segment j or in
the next one. So a number that depends on j alone can count every score beyond R, if it counts
those j whose two segments reach beyond R.

**Guarantee.** A score z with ``R < |z| <= H`` is always counted, and one with ``|z| <
counted_from`` never. Between the two it depends on the shares, which are random. S is the least
power of two from 16 on with ``counted_from`` of at least three quarters of R.

**Does not show** a score beyond ``2 H - R``: it has wrapped and looks like one within the range.

No short sum of waves does this. Those of the sigmoid are odd, ``f(z + H) = -f(z)``: whatever they
make of a score near H they make of one near zero, with the opposite sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from taciturn.arrays import BoolArray, IntArray

_LEAST_SEGMENTS, _MOST_SEGMENTS = 16, 1024
_CLOSE = 0.75


@dataclass(frozen=True)
class RangeCount:
    """Count of scores out of range: both sides' numbers, of ``SharedFraction.parts``.

    >>> count = RangeCount(59, 71.2, 64.0)
    >>> count.segments, round(count.counted_from, 1)
    (16, 53.4)
    """

    modulus_bits: int
    half_range: float
    score_range: float

    @cached_property
    def segments(self) -> int:
        """S: numbers per row, on either side."""
        segments = _LEAST_SEGMENTS
        while segments < _MOST_SEGMENTS and self._from(segments) < _CLOSE * self.score_range:
            segments *= 2
        return segments

    @property
    def counted_from(self) -> float:
        """The least size of a score that may be counted."""
        return self._from(self.segments)

    def marks(self, parts: IntArray) -> BoolArray:
        """Per part of one side a one-hot vector that marks its segment."""
        marks: BoolArray = np.equal(self._numbers(parts), np.arange(self.segments))
        return marks

    def table(self, parts: IntArray) -> BoolArray:
        """Per part of the other side, whether a score is counted with each of these segments."""
        sums = self._numbers(parts) + np.arange(self.segments)
        counted: BoolArray = self._counted[np.bitwise_and(sums, self.segments - 1)]
        return counted

    @property
    def _counted(self) -> BoolArray:
        first = self._first(self.segments)
        # The other end mirrors it: segments j and j + 1 there are S - 2 - j and S - 1 - j here.
        numbers = np.arange(self.segments)
        return (numbers >= first) | ((-2 - numbers) % self.segments >= first)

    def _first(self, segments: int) -> int:
        """The least j at the upper end whose two segments reach beyond R."""
        return math.floor(segments * (1 + self.score_range / self.half_range) / 2) - 1

    def _from(self, segments: int) -> float:
        return (2 * self._first(segments) / segments - 1) * self.half_range

    def _numbers(self, parts: IntArray) -> IntArray:
        bits = self.segments.bit_length() - 1
        numbers: IntArray = parts >> np.int64(self.modulus_bits - bits)
        return numbers[:, np.newaxis]
