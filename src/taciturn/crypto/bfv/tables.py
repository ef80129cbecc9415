"""Products with a whole table: Alice's polynomials in NTT form, summed before they leave it.

A tile's plaintext serves both products (``tiles``) and every pass, so it is made once and kept, as
long as there is memory for it; the rest is made anew whenever it is needed, which takes three times
as long as its product. A large table is shared by several processes (``crew``): each has some of
its row tiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import (
    EncryptedAnswer,
    EncryptedVector,
    TableSize,
    Wrapping,
    check_length,
)
from taciturn.crypto.bfv.answering import Answering
from taciturn.crypto.bfv.crew import Crew, Job, processes, shares
from taciturn.crypto.bfv.parameters import require_fit
from taciturn.crypto.bfv.tiles import Side, Tiling
from taciturn.crypto.bfv.wire import Parts, exactly
from taciturn.errors import CryptoError
from taciturn.rng import KEY_BYTES, Entropy, KeyedEntropy

LEAST_SHARED_TILES = 512
"""Below, starting a helper costs about what it saves in a training."""


def check_tables(capacity: Wrapping, size: TableSize, products: int) -> float:
    """Refuses a training whose answers would tell too much of the table, or could be wrong.

    Args:
        capacity: The key's.
        size: The table's.
        products: How many passes, each a product from either side.

    Returns:
        -log2 of the statistical distance of what they tell of the table.

    Raises:
        CryptoError: A bound of ``parameters`` is not kept.
    """
    tiling = Tiling.of(size)
    return require_fit(capacity).check_table(
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
        self._evaluator = answering.seal.evaluator
        self._ring = ring
        self._tiling = tiling
        self._rows = rows
        self._tiles = -(-len(rows) // tiling.height)
        self._low = np.uint64(answering.seal.plain_modulus - 1)
        self._most = memory // answering.plain_bytes
        self._kept: dict[tuple[int, int], Any] = {}
        self._turned: tuple[int, WordArray] | None = None
        self._product = sealapi.Ciphertext()

    def sums_over_rows(
        self, parts: Parts, covered: range, masks: IntArray, entropy: Entropy
    ) -> list[Any]:
        """For each column tile the sum of its tiles' products with ``r(x)``.

        Args:
            parts: The ciphertexts of the vector for these rows.
            covered: Which column tiles get their covers here, and leave NTT form; the others stay
                in it, or are None where all of their tiles are zero.
            masks: For the columns of the covered ones.
            entropy: For their floods.
        """
        side, totals = self._tiling.columns, [None] * self._tiling.columns.tiles
        for row, piece in enumerate(self._answering.pieces(parts, self._tiles)):
            for column, total in enumerate(totals):
                totals[column] = self._added(total, piece, row, column)
        for at, column in enumerate(covered):
            mask = masks[at * side.span : (at + 1) * side.span]
            totals[column] = self._covered(totals[column], mask, side, entropy.fork(str(column)))
        return totals

    def sums_over_columns(self, parts: Parts, masks: IntArray, entropy: Entropy) -> bytes:
        """The answers of these rows to ``v(x)``, one for each row tile."""
        side, answers = self._tiling.rows, []
        pieces = list(self._answering.pieces(parts, self._tiling.columns.tiles))
        for row in range(self._tiles):
            total = None
            for column, piece in enumerate(pieces):
                total = self._added(total, piece, row, column)
            mask = masks[row * side.span : (row + 1) * side.span]
            answer = self._covered(total, mask, side, entropy.fork(str(row)))
            answers.append(self._answering.written(answer, side.answered(len(mask))))
        return b"".join(answers)

    def _covered(self, total: Any, mask: IntArray, side: Side, entropy: Entropy) -> Any:  # noqa: ANN401
        """A sum of products under a cover of its own, out of NTT form."""
        places = side.answered(len(mask))
        cover = self._answering.cover(self._ring.centred(mask), places, entropy)
        # For tiles of zeros the cover alone is the answer.
        return self._answering.covered(total, cover)

    def _added(self, total: Any, piece: Any, row: int, column: int) -> Any:  # noqa: ANN401
        plain = self._plain(row, column)
        if plain is None:
            return total
        if total is None:
            total = sealapi.Ciphertext()
            self._evaluator.multiply_plain(piece, plain, total)
            return total
        self._evaluator.multiply_plain(piece, plain, self._product)
        self._evaluator.add_inplace(total, self._product)
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
        span = self._tiling.height * self._tiling.width
        coefficients = self._coefficients(row)[column * span : (column + 1) * span]
        # SEAL refuses the product with a zero polynomial; the sum does without it.
        if not coefficients.any():
            return None
        plain = self._answering.seal.load_plain(coefficients)
        self._evaluator.transform_to_ntt_inplace(plain, self._answering.seal.first_id)
        return plain

    def _coefficients(self, row: int) -> WordArray:
        """Those of all tiles of a row, which are wanted one after the other."""
        if self._turned is None or self._turned[0] != row:
            high = self._tiling.height
            turned = self._tiling.polynomial(self._rows[row * high : (row + 1) * high])
            # Modulo a power of two a negative number is its low bits.
            self._turned = row, turned.view(np.uint64) & self._low
        return self._turned[1]


class BfvTable:
    """Alice's table.

    **Guarantee.** Products are exact modulo t. Each answer has its own masks, flood and encryption
    of zero; over a whole training Bob learns of the table no more than
    ``parameters.table_leak_bits`` states, as a statistical distance.

    **Assumes.** What ``BfvPublicKey`` assumes, and that whoever trains asked ``check_tables``.

    Args:
        answering: Bob's public key at work.
        ring: The values modulo t.
        whole: The table.
        memory: Bytes that plaintexts may take, over all processes.
        key: Bob's public key, for helpers.
    """

    def __init__(
        self, answering: Answering, ring: Wrapping, whole: IntArray, memory: int, key: bytes
    ) -> None:
        self.size = TableSize(*whole.shape)
        self._answering = answering
        self._ring = ring
        self._whole: IntArray | None = whole
        self._memory = memory
        self._key = key
        self._tiling = Tiling.of(self.size)
        parts = min(processes(self._tiling.tiles, LEAST_SHARED_TILES), self._tiling.rows.tiles)
        self._shares = shares(self._tiling.rows.tiles, parts)
        self._sheet = self._own_sheet(whole)
        self._crew = self._helpers(whole)
        # For floods; like SEAL's own draws they change no result, and two answers never share one,
        # whatever entropy a caller hands in.
        self._coins = KeyedEntropy.from_system()

    def transposed_product(
        self, vector: EncryptedVector, mask: IntArray, entropy: Entropy
    ) -> EncryptedAnswer:
        """``table.T @ vector + mask``; covers are drawn from the operating system.

        Each process sums over its own rows, and covers some of the columns.

        Raises:
            CryptoError: The vector's bytes are not of this key's form, or sizes do not fit.
        """
        side, sheet = self._tiling.columns, self._opened(vector, self._tiling.rows)
        check_length(mask, side.length, "mask")
        covered, pieces = shares(side.tiles, len(self._shares)), self._cut(vector)
        masks = [mask[side.entries(share)] for share in covered]
        keys = [self._fresh() for _ in covered]
        jobs = [
            Job("rows", {"first": share.start, "last": share.stop}, (key, _little(part), piece))
            for share, key, part, piece in list(zip(covered, keys, masks, pieces, strict=True))[1:]
        ]

        def own() -> list[Any]:
            return sheet.sums_over_rows(
                Parts(pieces[0]), covered[0], masks[0], KeyedEntropy(keys[0])
            )

        sums, replies = self._crew.run(jobs, own)
        owners = [process for process, share in enumerate(covered) for _ in share]
        answers = [
            self._answering.written(
                self._merged(owner, [sums[column], *(reply[column] for reply in replies)]),
                side.answered(len(mask[tile])),
            )
            for column, (owner, tile) in enumerate(zip(owners, side.slices(), strict=True))
        ]
        return EncryptedAnswer(b"".join(answers), side.length)

    def product(self, vector: EncryptedVector, mask: IntArray, entropy: Entropy) -> EncryptedAnswer:
        """``table @ vector + mask``; covers are drawn from the operating system.

        Each process answers for its own rows.

        Raises:
            CryptoError: The vector's bytes are not of this key's form, or sizes do not fit.
        """
        side, sheet = self._tiling.rows, self._opened(vector, self._tiling.columns)
        check_length(mask, side.length, "mask")
        masks = [mask[side.entries(share)] for share in self._shares]
        jobs = [Job("columns", {}, (self._fresh(), _little(m), vector.data)) for m in masks[1:]]

        def own() -> bytes:
            coins = KeyedEntropy(self._fresh())
            return sheet.sums_over_columns(Parts(vector.data), masks[0], coins)

        answer, replies = self._crew.run(jobs, own)
        return EncryptedAnswer(b"".join([answer, *(frame for (frame,) in replies)]), side.length)

    def close(self) -> None:
        """Frees the plaintexts and ends the helpers."""
        self._whole = self._sheet = None
        self._crew.close()

    def _own_sheet(self, whole: IntArray) -> Sheet | None:
        rows = whole[self._tiling.rows.entries(self._shares[0])]
        memory = self._memory // len(self._shares)
        return Sheet(self._answering, self._ring, self._tiling, rows, memory)

    def _helpers(self, whole: IntArray) -> Crew:
        entry = 4 if self._ring.matrix_bits < 31 else 8
        facts = {
            **ring_facts(self._ring),
            "rows": self.size.rows,
            "columns": self.size.columns,
            "memory": self._memory // len(self._shares),
            "entry_bytes": entry,
        }
        rows = (whole[self._tiling.rows.entries(share)] for share in self._shares[1:])
        return Crew(
            Job("alice", facts, (self._key, part.astype(f"<i{entry}").tobytes())) for part in rows
        )

    def _opened(self, vector: EncryptedVector, sent: Side) -> Sheet:
        if self._sheet is None or self._whole is None:
            raise CryptoError("the table was closed")
        if vector.length != sent.length:
            raise CryptoError(f"a vector of {vector.length} where {sent.length} were expected")
        exactly(vector.data, sent.tiles * self._answering.piece_bytes, "an encrypted vector")
        if self._crew.size != len(self._shares) - 1:
            # An earlier product was refused or interrupted.
            self._crew = self._helpers(self._whole)
        return self._sheet

    def _cut(self, vector: EncryptedVector) -> list[memoryview]:
        """The ciphertexts of each process's rows."""
        size, data = self._answering.piece_bytes, memoryview(vector.data)
        return [data[share.start * size : share.stop * size] for share in self._shares]

    def _merged(self, owner: int, sums: list[Any]) -> Any:  # noqa: ANN401
        """One column tile's sums of all processes; the owner's has the cover, and left NTT form."""
        evaluator, total = self._answering.seal.evaluator, None
        for process, part in enumerate(sums):
            if process and part:
                sums[process] = part = self._answering.loaded(part, ntt=process != owner)
            if process == owner or not part:
                continue
            if total is None:
                total = part
            else:
                evaluator.add_inplace(total, part)
        cover = sums[owner]
        if total is not None:
            evaluator.transform_from_ntt_inplace(total)
            evaluator.add_inplace(cover, total)
        return cover

    def _fresh(self) -> bytes:
        """The key of one process's floods in one product."""
        return self._coins.token(KEY_BYTES)


def ring_facts(ring: Wrapping) -> dict[str, int]:
    """A ring for a helper."""
    bits = {"modulus_bits": ring.modulus_bits, "matrix_bits": ring.matrix_bits}
    return {**bits, "terms": ring.terms}


def _little(values: IntArray) -> bytes:
    return values.astype("<i8", copy=False).tobytes()
