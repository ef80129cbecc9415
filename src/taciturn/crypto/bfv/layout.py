"""How a matrix-vector product lies in the coefficients of polynomials.

As Cheetah does it [Huang22, Sec. 4.1]: with ``v(x) = sum_i v_i x^i`` and ``M(x) = sum_ji m_ji x^(jL
+ L-1-i)`` the coefficient ``jL + L-1`` of the product is ``sum_i m_ji v_i``, for as many rows j as
fit below the degree N. No term of the product reaches from one row's coefficient into another's
that is read: the exponents ``jL + L-1-i+k`` with j fixed and i != k miss every ``j'L + L-1``, and
what wraps around N (with a minus sign) lands below ``L-1``.

A vector longer than a *piece* is cut into several ciphertexts, and a matrix with more rows than one
polynomial holds gives several answers. Shorter pieces leave room for more rows per answer: the
layout is the one with the fewest ciphertexts in both directions together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.bfv.parameters import DEGREE, most_pieces


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of one shape.

    >>> Layout.of(rows=81, length=32), Layout.of(rows=81, length=1024)
    (Layout(rows=81, length=32, pieces=1), Layout(rows=81, length=1024, pieces=3))
    >>> Layout.of(rows=81, length=1024).answers
    4
    """

    rows: int
    length: int
    pieces: int

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, rows: int, length: int) -> Layout:
        """The layout with the fewest ciphertexts; the fewer pieces where two tie.

        More pieces than a few beyond what is needed are not tried: they add noise.
        """
        least = -(-length // DEGREE)
        most = min(length, most_pieces(length))
        candidates = (cls(rows, length, pieces) for pieces in range(least, most + 1))
        return min(candidates, key=lambda layout: (layout.pieces + layout.answers, layout.pieces))

    @property
    def span(self) -> int:
        """Length of a piece."""
        return -(-self.length // self.pieces)

    @property
    def rows_per_answer(self) -> int:
        """Number of matrix rows in one polynomial."""
        return DEGREE // self.span

    @property
    def answers(self) -> int:
        """Number of ciphertexts in an answer."""
        return -(-self.rows // self.rows_per_answer)

    def slices(self) -> Iterator[slice]:
        """The entries of each piece of the vector."""
        for start in range(0, self.pieces * self.span, self.span):
            yield slice(start, min(start + self.span, self.length))

    def groups(self) -> Iterator[slice]:
        """The rows of each answer."""
        for start in range(0, self.rows, self.rows_per_answer):
            yield slice(start, min(start + self.rows_per_answer, self.rows))

    def places(self, count: int) -> IntArray:
        """The coefficients of an answer that hold its first ``count`` entries."""
        return np.arange(count, dtype=np.int64) * self.span + self.span - 1

    def polynomial(self, block: IntArray) -> IntArray:
        """The coefficients of the rows of one answer, restricted to one piece."""
        rows, width = block.shape
        coefficients = np.zeros((rows, self.span), dtype=np.int64)
        # Backwards, so that the product of a row and the piece gathers in the row's last place.
        coefficients[:, self.span - width :] = block[:, ::-1]
        return coefficients.ravel()
