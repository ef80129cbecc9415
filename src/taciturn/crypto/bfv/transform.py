"""Numbers in slots as polynomials modulo a small prime, by products of matrices.

Modulo a prime p that is 1 modulo 2N a polynomial of N coefficients is the N numbers that it takes
at the odd powers of a root r of order 2N. With ``N = A B``, coefficient ``i + A j`` and number
``B k + l`` the power splits,

    r^((i + A j) (2 (B k + l) + 1)) = r^(A j (2 l + 1)) r^(i (2 l + 1)) r^(2 B i k)

so that all numbers are a product with a B by B matrix, one elementwise, and one with an A by A
matrix; and backwards.

**Guarantee.** Exact: factors are at most p/2 in size, so that sums of A products stay below 2^53,
which doubles hold. Additions, multiplications and roundings alone, the same for all numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.bfv.parameters import DEGREE

_ROWS, _COLUMNS = 128, DEGREE // 128
# Products this small are made by the calling thread: others would wait for work, and burn time.
_PIECES = 4


class Transform:
    """Converter of N numbers to N coefficients modulo ``modulus``, and back."""

    slots, places = DEGREE, slice(None)

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        root, inverse = _root(modulus), pow(DEGREE, -1, modulus)
        high, low = np.arange(_ROWS), np.arange(_COLUMNS)
        outer = 2 * _COLUMNS * np.outer(high, high)
        inner = _ROWS * np.outer(low, 2 * low + 1)
        middle = np.outer(high, 2 * low + 1)
        self._forth = tuple(_powers(root, part, modulus) for part in (inner, middle, outer))
        scaled = _powers(root, -middle, modulus) * inverse
        self._back = (
            _powers(root, -outer, modulus),
            self._lowered(scaled),
            _powers(root, -inner.T, modulus),
        )

    def polynomial(self, numbers: IntArray | WordArray) -> WordArray:
        """The coefficients of N numbers of less than half of the modulus in size, or below it."""
        outer, middle, inner = self._back
        parts = self._product(outer, self._centred(numbers).reshape(_ROWS, _COLUMNS))
        whole = self._product((self._lowered(parts * middle)), inner)
        return self._words(whole.T)

    def numbers(self, coefficients: WordArray) -> WordArray:
        """The numbers of N coefficients."""
        inner, middle, outer = self._forth
        whole = self._centred(coefficients.view(np.int64)).reshape(_COLUMNS, _ROWS).T
        parts = self._lowered(self._product(whole, inner) * middle)
        return self._words(self._product(outer, parts))

    def _product(self, left: FloatArray, right: FloatArray) -> FloatArray:
        parts = np.split(right, _PIECES, axis=1)
        return self._lowered(np.concatenate([left @ part for part in parts], axis=1))

    def _centred(self, numbers: IntArray | WordArray) -> FloatArray:
        return self._lowered(numbers.astype(np.float64))

    def _lowered(self, values: FloatArray) -> FloatArray:
        """Whole numbers, brought to half of the modulus in size."""
        lowered: FloatArray = values - self.modulus * np.rint(values * (1.0 / self.modulus))
        return lowered

    def _words(self, values: FloatArray) -> WordArray:
        whole = np.ascontiguousarray(values).reshape(-1).astype(np.int64)
        # The sign is what is below zero by one, shifted to all bits.
        whole += np.int64(self.modulus) & (whole >> np.int64(63))
        return whole.view(np.uint64)


@lru_cache(maxsize=8)
def transform_of(modulus: int) -> Transform:
    """The transform of a prime; it holds no secret, and is made once."""
    return Transform(modulus)


def _root(modulus: int) -> int:
    """A number of order 2N."""
    exponent = (modulus - 1) // (2 * DEGREE)
    candidates = (pow(base, exponent, modulus) for base in range(2, modulus))
    return next(root for root in candidates if pow(root, DEGREE, modulus) == modulus - 1)


def _powers(root: int, exponents: IntArray, modulus: int) -> FloatArray:
    powers = np.empty(2 * DEGREE, dtype=np.int64)
    power = 1
    for at in range(2 * DEGREE):
        powers[at], power = power, power * root % modulus
    whole = powers[exponents % (2 * DEGREE)].astype(np.float64)
    centred: FloatArray = whole - modulus * (whole > modulus // 2)
    return centred
