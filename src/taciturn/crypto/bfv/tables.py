"""Products with a whole table: Alice's polynomials in NTT form, summed before they leave it.

A tile's plaintext serves both products (``tiles``) and every pass, so it is made once and kept, as
long as there is memory for it; the rest is made anew whenever it is needed, which takes three times
as long as its product.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray
from taciturn.crypto.base import (
    EncryptedAnswer,
    EncryptedVector,
    TableSize,
    Wrapping,
    check_length,
)
from taciturn.crypto.bfv.answering import Answering
from taciturn.crypto.bfv.parameters import require_fit
from taciturn.crypto.bfv.tiles import Side, Tiling
from taciturn.crypto.bfv.wire import Parts, exactly
from taciturn.errors import CryptoError
from taciturn.rng import Entropy, KeyedEntropy


def check_tables(capacity: Wrapping, size: TableSize, products: int) -> None:
    """Refuses a training whose answers would tell too much of the table, or could be wrong.

    Args:
        capacity: The key's.
        size: The table's.
        products: How many passes, each a product from either side.

    Raises:
        CryptoError: A bound of ``parameters`` is not kept.
    """
    tiling = Tiling.of(size)
    require_fit(capacity).check_table(
        capacity, (size.rows, size.columns), (tiling.height, tiling.width), products
    )


class Sheet:
    """Some row tiles of a table with all of their columns: what one process computes with.

    Args:
        answering: Bob's public key at work.
        ring: The values modulo t.
        tiling: The tiles of the whole table.
        rows: The rows of this sheet, from a tile's first one on.
        memory: Bytes that kept plaintexts may take.
    """

    def __init__(
        self, answering: Answering, ring: Wrapping, tiling: Tiling, rows: IntArray, memory: int
    ) -> None:
        self._answering = answering
        self._ring = ring
        self._tiling = tiling
        self._rows = rows
        self._low = np.uint64(answering.seal.plain_modulus - 1)
        self._most = memory // answering.plain_bytes
        self._kept: dict[tuple[int, int], Any] = {}

    def sums_over_rows(self, parts: Parts) -> list[Any]:
        """For each column tile the sum of its tiles' products with ``r(x)``, in NTT form.

        None where all of them are zero.
        """
        totals: list[Any] = [None] * self._tiling.columns.tiles
        pieces = self._answering.pieces(parts, self._tiles)
        for row, piece in enumerate(pieces):
            for column, total in enumerate(totals):
                totals[column] = self._added(total, piece, row, column)
        return totals

    def answers_to_columns(self, parts: Parts, masks: IntArray, entropy: Entropy) -> bytes:
        """The answers of these rows to ``v(x)``, one for each row tile."""
        side, answers = self._tiling.rows, []
        pieces = list(self._answering.pieces(parts, self._tiling.columns.tiles))
        for row in range(self._tiles):
            total = None
            for column, piece in enumerate(pieces):
                total = self._added(total, piece, row, column)
            mask = masks[row * side.span : (row + 1) * side.span]
            answers.append(self.answer(total, mask, side, entropy.fork(str(row))))
        return b"".join(answers)

    def answer(self, total: Any, mask: IntArray, side: Side, entropy: Entropy) -> bytes:  # noqa: ANN401
        """A sum of products, under a cover of its own."""
        places, evaluator = side.answered(len(mask)), self._answering.seal.evaluator
        cover = self._answering.cover(self._ring.centred(mask), places, entropy)
        # For tiles of zeros the cover alone is the answer.
        if total is not None:
            evaluator.transform_from_ntt_inplace(total)
            evaluator.add_inplace(cover, total)
        return self._answering.written(cover, places)

    @property
    def _tiles(self) -> int:
        return -(-len(self._rows) // self._tiling.height)

    def _added(self, total: Any, piece: Any, row: int, column: int) -> Any:  # noqa: ANN401
        plain = self._plain(row, column)
        if plain is None:
            return total
        product, evaluator = sealapi.Ciphertext(), self._answering.seal.evaluator
        evaluator.multiply_plain(piece, plain, product)
        if total is None:
            return product
        evaluator.add_inplace(total, product)
        return total

    def _plain(self, row: int, column: int) -> Any:  # noqa: ANN401
        """A tile's plaintext in NTT form; None where all of it is zero."""
        try:
            return self._kept[row, column]
        except KeyError:
            plain = self._made(row, column)
        if len(self._kept) < self._most:
            self._kept[row, column] = plain
        return plain

    def _made(self, row: int, column: int) -> Any:  # noqa: ANN401
        high, wide = self._tiling.height, self._tiling.width
        block = self._rows[row * high : (row + 1) * high, column * wide : (column + 1) * wide]
        # SEAL refuses the product with a zero polynomial; the sum does without it.
        if not block.any():
            return None
        # Modulo a power of two a negative number is its low bits.
        coefficients = self._tiling.polynomial(block).view(np.uint64) & self._low
        plain = self._answering.seal.load_plain(coefficients)
        self._answering.seal.evaluator.transform_to_ntt_inplace(
            plain, self._answering.seal.first_id
        )
        return plain


class BfvTable:
    """Alice's table.

    **Guarantee.** Products are exact modulo t. Each answer has its own masks, flood and encryption
    of zero; over a whole training Bob learns of the table no more than
    ``parameters.table_leak_bits`` states, as a statistical distance.

    **Assumes.** What ``BfvPublicKey`` assumes, and that whoever trains asked ``check_tables``.
    """

    def __init__(self, answering: Answering, ring: Wrapping, whole: IntArray, memory: int) -> None:
        self.size = TableSize(*whole.shape)
        self._answering = answering
        self._tiling = Tiling.of(self.size)
        self._sheet: Sheet | None = Sheet(answering, ring, self._tiling, whole, memory)
        # For floods; like SEAL's own draws they change no result, and two answers never share one,
        # whatever entropy a caller hands in.
        self._coins = KeyedEntropy.from_system()
        self._answered = 0

    def transposed_product(
        self, vector: EncryptedVector, mask: IntArray, entropy: Entropy
    ) -> EncryptedAnswer:
        """``table.T @ vector + mask``; SEAL and the flood draw from the operating system.

        Raises:
            CryptoError: The vector's bytes are not of this key's form, or sizes do not fit.
        """
        side = self._tiling.columns
        sheet, parts = self._open(vector, self._tiling.rows, mask, side)
        totals, coins = sheet.sums_over_rows(parts), self._fresh()
        answers = [
            sheet.answer(total, mask[tile], side, coins.fork(str(tile.start)))
            for total, tile in zip(totals, side.slices(), strict=True)
        ]
        return EncryptedAnswer(b"".join(answers), side.length)

    def product(self, vector: EncryptedVector, mask: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """``table @ vector + mask``; SEAL and the flood draw from the operating system.

        Raises:
            CryptoError: The vector's bytes are not of this key's form, or sizes do not fit.
        """
        side = self._tiling.rows
        sheet, parts = self._open(vector, self._tiling.columns, mask, side)
        return EncryptedAnswer(sheet.answers_to_columns(parts, mask, self._fresh()), side.length)

    def close(self) -> None:
        """Frees the plaintexts."""
        self._sheet = None

    def _open(
        self, vector: EncryptedVector, sent: Side, mask: IntArray, answered: Side
    ) -> tuple[Sheet, Parts]:
        if self._sheet is None:
            raise CryptoError("the table was closed")
        if vector.length != sent.length:
            raise CryptoError(f"a vector of {vector.length} where {sent.length} were expected")
        check_length(mask, answered.length, "mask")
        size = sent.tiles * self._answering.piece_bytes
        return self._sheet, exactly(vector.data, size, "an encrypted vector")

    def _fresh(self) -> Entropy:
        self._answered += 1
        return self._coins.fork(f"flood {self._answered}")
