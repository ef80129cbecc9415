"""Layout of matrices and whole tables in polynomial coefficients.

**A matrix-vector product** (``Layout``), as in Cheetah [Huang22, Sec. 4.1]: with ``v(x) = sum_i v_i
x^i`` and ``M(x) = sum_ji m_ji x^(jL + L-1-i)`` the coefficient ``jL + L-1`` of the product is
``sum_i m_ji v_i``, for as many rows j as fit below the degree N. No term of the product reaches
from one row's coefficient into another's that is read: the exponents ``jL + L-1-i+k`` with j fixed
and i != k miss every ``j'L + L-1``; what wraps around N (with a minus sign) lands below ``L-1``.

A vector longer than a *piece* is cut into several ciphertexts, and a matrix with more rows than one
polynomial holds gives several answers. Shorter pieces leave room for more rows per answer: the
layout is the one with the fewest ciphertexts in both directions together.

**A whole table** (``Tiling``), so that one plaintext serves both of its products. A tile has ``a``
rows and ``b`` columns with ``a b <= N``. Its plaintext is ``T(x) = sum_ij t_ij x^(i + a j)``, and
with a vector of either side

- ``r(x) = sum_i r_i x^(a-1-i)``: the coefficient ``a j + a-1`` of ``T r`` is ``sum_i t_ij r_i``;
- ``v(x) = sum_j v_j x^(a (b-1-j))``: the coefficient ``a (b-1) + i`` of ``T v`` is
  ``sum_j t_ij v_j``.

Proof: a term of either product that is not one of these has an exponent that differs from that of
the wanted coefficient by ``i'-i + a (j'-j)``, not zero, and of size at most ``a b - 1 < N``: it is
no multiple of N, so the term does not land there, whether or not it wraps around ``x^N = -1``. The
wanted exponents themselves lie below ``a b``.

A product from the left sums over the tiles of a column, one from the right over those of a row,
before anything is decrypted: of ``n`` rows and ``d`` columns, a pass sends ``ceil(n/a)`` and
``ceil(d/b)`` ciphertexts either way. The tile is the one with the fewest bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import TableSize
from taciturn.crypto.bfv.parameters import DEGREE, most_pieces
from taciturn.errors import CryptoError


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of the product of one matrix shape with a vector."""

    rows: int
    length: int
    pieces: int

    @classmethod
    @lru_cache(maxsize=64)
    def for_shape(cls, rows: int, length: int) -> Layout:
        """The layout with the fewest ciphertexts; many extra pieces would add noise."""
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
        """Entries of each piece of the vector."""
        for start in range(0, self.pieces * self.span, self.span):
            yield slice(start, min(start + self.span, self.length))

    def groups(self) -> Iterator[slice]:
        """Rows of each answer."""
        for start in range(0, self.rows, self.rows_per_answer):
            yield slice(start, min(start + self.rows_per_answer, self.rows))

    def places(self, count: int) -> IntArray:
        """Coefficients of an answer that hold its first ``count`` entries."""
        return np.arange(count, dtype=np.int64) * self.span + self.span - 1

    def polynomial(self, block: IntArray) -> IntArray:
        """Coefficients of the rows of one answer, restricted to one piece."""
        rows, width = block.shape
        coefficients = np.zeros((rows, self.span), dtype=np.int64)
        # Backwards, so that the product of a row and the piece gathers in the row's last place.
        coefficients[:, self.span - width :] = block[:, ::-1]
        return coefficients.ravel()


PART_TILES = 128
"""Row tiles whose ciphertexts travel in one message: a million rows, in at most 32 MiB."""


def even_shares(count: int, parts: int) -> list[range]:
    """``range(count)`` in even parts, in order.

    >>> even_shares(5, 2)
    [range(0, 3), range(3, 5)]
    """
    bounds = [-(-count * part // parts) for part in range(parts + 1)]
    return [range(*pair) for pair in pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class Side:
    """Rows or columns of a table, cut into tiles of ``span``: a ciphertext each.

    Coefficients lie ``stride`` apart. The first value sent is at ``sent_from`` and the others lie
    below it; the first sum is at ``answered_from`` and the others lie above.
    """

    length: int
    span: int
    stride: int
    sent_from: int
    answered_from: int

    @property
    def tiles(self) -> int:
        """Number of tiles, and so of ciphertexts."""
        return -(-self.length // self.span)

    def slices(self) -> list[slice]:
        """Entries of each tile."""
        starts = range(0, self.length, self.span)
        return [slice(start, min(start + self.span, self.length)) for start in starts]

    def entries(self, tiles: range) -> slice:
        """Entries of some consecutive tiles."""
        return slice(tiles.start * self.span, min(tiles.stop * self.span, self.length))

    def part(self, tiles: range) -> Side:
        """A side of some of the tiles only."""
        entries = self.entries(tiles)
        return replace(self, length=entries.stop - entries.start)

    def sent(self, count: int) -> slice:
        """Coefficients of a tile's first ``count`` values, the last one first."""
        return slice(self.sent_from - self.stride * (count - 1), self.sent_from + 1, self.stride)

    def answered(self, count: int) -> slice:
        """Coefficients of a tile's first ``count`` sums."""
        last = self.answered_from + self.stride * (count - 1)
        return slice(self.answered_from, last + 1, self.stride)


@dataclass(frozen=True, slots=True)
class Tiling:
    """Tiles of ``height`` rows and ``width`` columns for one size of table."""

    size: TableSize
    height: int
    width: int

    @classmethod
    @lru_cache(maxsize=64)
    def for_size(cls, size: TableSize, degree: int = DEGREE) -> Tiling:
        """The tiling whose pass has the fewest bytes; where several have, the narrowest.

        A pass has one ciphertext each way for every row tile and every column tile, and an entry
        for every row and column: only their number depends on the tile. Within it tiles are made as
        even as they can be, which keeps their noise low.
        """
        widths = np.arange(1, min(size.columns, degree) + 1)
        ciphertexts = -(-size.rows // (degree // widths)) - (-size.columns // widths)
        width = int(widths[ciphertexts.argmin()])
        columns, rows = -(-size.columns // width), -(-size.rows // (degree // width))
        return cls(size, height=-(-size.rows // rows), width=-(-size.columns // columns))

    @property
    def rows(self) -> Side:
        """The rows: their values are sent in ``r(x)``, and their sums answered in ``T v``."""
        start, end = self.height - 1, self.height * (self.width - 1)
        return Side(self.size.rows, self.height, stride=1, sent_from=start, answered_from=end)

    @property
    def columns(self) -> Side:
        """The columns: their values are sent in ``v(x)``, and their sums answered in ``T r``."""
        start, end = self.height * (self.width - 1), self.height - 1
        return Side(
            self.size.columns, self.width, stride=self.height, sent_from=start, answered_from=end
        )

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return self.rows.tiles * self.columns.tiles

    def row_parts(self, most: int) -> list[slice]:
        """The rows in parts of at most ``most`` tiles, as even as possible."""
        count = -(-self.rows.tiles // most)
        return [self.rows.entries(tiles) for tiles in even_shares(self.rows.tiles, count)]

    def row_tiles(self, row_block: slice | None) -> range:
        """The tiles of a part of the rows; of all rows for None."""
        if row_block is None:
            return range(self.rows.tiles)
        tiles = range(row_block.start // self.height, -(-row_block.stop // self.height))
        if not tiles or self.rows.entries(tiles) != row_block:
            raise CryptoError(f"{row_block} is not a row block of a table of {self.size.rows} rows")
        return tiles

    def polynomial(self, block: IntArray) -> IntArray:
        """Coefficients of one tile or of adjacent ones; one at the table's end may be smaller."""
        rows, columns = block.shape
        coefficients = np.zeros((columns, self.height), dtype=np.int64)
        coefficients[:, :rows] = block.T
        return coefficients.ravel()
