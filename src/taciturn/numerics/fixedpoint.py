"""Real numbers as integers at one public scale, with range checks.

A value ``v`` becomes the integer nearest to ``v 2^bits`` (halves to even), so that decoding is
within ``2^-(bits+1)`` of it. Both parties know the scale beforehand. No exponent travels with a
number, which is what would tell its size and with it, for a residue, the label.

Multiplying a 64-bit real by a power of two is exact, and so is rounding it: the only error is the
rounding to the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.errors import ConfigError, DataError, InfiniteValueError, MissingValueError

WORD_BITS = 62
"""The largest encoded integer is 2^62: int64, with a bit to spare for one addition."""

# Values worked on at a time: 256 kB of scratch, small enough to stay in a core's cache.
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """The grid of multiples of ``2^-bits``, for 0 to 62 bits."""

    bits: int

    def __post_init__(self) -> None:
        if not 0 <= self.bits <= WORD_BITS:
            raise ConfigError(
                f"invalid scale 2^{self.bits}",
                where="bits",
                hint=f"use 0 to {WORD_BITS} bits",
            )

    def encode(self, values: FloatArray, magnitude_bits: int) -> IntArray:
        """Nearest grid points; ``DataError`` unless finite and within ``±2^magnitude_bits``."""
        if magnitude_bits < 0 or self.bits + magnitude_bits > WORD_BITS:
            raise ConfigError(
                f"values up to 2^{magnitude_bits} do not fit a scale of 2^{self.bits}",
                hint=f"both exponents are 0 or more, and at most {WORD_BITS} together",
            )
        bound = 2.0**magnitude_bits
        # A NaN makes both extremes NaN, and no comparison with NaN holds.
        if values.size and not (-bound <= values.min() and values.max() <= bound):
            hint = f"at the scale 2^{self.bits} the bound is 2^{magnitude_bits}: clip or rescale"
            if np.isnan(values).any():
                raise MissingValueError("a NaN has no fixed-point form", hint=hint)
            if np.isinf(values).any():
                raise InfiniteValueError("an infinity has no fixed-point form", hint=hint)
            raise DataError("a value is too large for the fixed-point range", hint=hint)
        return self.rounded(values)

    def rounded(self, values: FloatArray) -> IntArray:
        """``encode`` without its range check, for finite values that fit an int64 at this scale."""
        encoded = np.empty(values.shape, dtype=np.int64)
        # Views with at least one dimension, so that a scalar needs no path of its own.
        source, target = np.atleast_1d(values), np.atleast_1d(encoded)
        rows = max(1, _BLOCK // max(1, math.prod(source.shape[1:])))
        scratch = np.empty((min(rows, len(source)), *source.shape[1:]))
        for start in range(0, len(source), rows):
            block = source[start : start + rows]
            scaled = scratch[: len(block)]
            np.multiply(block, 2.0**self.bits, out=scaled)
            np.rint(scaled, out=scaled)
            np.copyto(target[start : start + rows], scaled, casting="unsafe")
        return encoded

    def nearest(self, values: FloatArray) -> FloatArray:
        """``rounded``, as whole-number reals, for a product that runs in reals."""
        scaled = values * 2.0**self.bits
        np.rint(scaled, out=scaled)
        return scaled

    def decode(self, integers: IntArray) -> FloatArray:
        """Decode integers of this grid to reals; exact up to 2^53, beyond that to 53 bits."""
        return np.multiply(integers, 2.0**-self.bits, dtype=np.float64)


def magnitude_bits(largest: float) -> int:
    """The smallest ``b >= 0`` with ``largest <= 2^b``: the range that ``encode`` needs."""
    mantissa, exponent = math.frexp(largest)
    return max(0, exponent - 1 if mantissa == 0.5 else exponent)
