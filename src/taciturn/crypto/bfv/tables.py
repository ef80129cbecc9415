"""Products with a whole table: Alice's polynomials in NTT form, summed before they leave it.

A tile's plaintext serves both products (``layout``) and every pass, so it is made once and kept, as
long as there is memory for it; the rest is made anew whenever it is needed, which takes three times
as long as its product. A large table is shared by several processes (``workers``): each has some of
its row tiles.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import tenseal.sealapi as sealapi

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import (
    EncryptedAnswer,
    EncryptedVector,
    PublicKey,
    TableMasks,
    TableSize,
    Wrapping,
    check_length,
    named_part,
    next_part,
    require_all,
)
from taciturn.crypto.bfv.layout import Side, Tiling, even_shares
from taciturn.crypto.bfv.modular import rounded_fractions
from taciturn.crypto.bfv.operations import ServerOps
from taciturn.crypto.bfv.parameters import SHARED_MODULUS, BfvParameters
from taciturn.crypto.bfv.seal import ByteReader, exactly
from taciturn.crypto.bfv.seeds import PublicHalf
from taciturn.crypto.bfv.workers import (
    Engine,
    Frame,
    Job,
    Reply,
    Writable,
    written,
)
from taciturn.errors import CryptoError
from taciturn.memmap import drop_pages
from taciturn.rng import KEY_BYTES, Entropy, KeyedEntropy

LEAST_SHARED_TILES = 512
"""Below, starting a worker costs about what it saves in a training."""


def check_tables(
    parameters: BfvParameters, capacity: Wrapping, size: TableSize, products: int
) -> float:
    """Refuse a training that would leak too much of the table, or whose sums could be wrong.

    Arguments and result are those of ``Scheme.check_tables``.
    """
    tiling = Tiling.for_size(size, parameters.degree)
    whole, tile = (size.rows, size.columns), (tiling.height, tiling.width)
    if parameters.rounds:
        parameters.check_shares(capacity, whole, tile)
        return math.inf
    return parameters.check_table(capacity, whole, tile, products)


def shared_masks(length: int, ring: Wrapping, entropy: Entropy) -> TableMasks:
    """Masks uniform modulo the prime of answers, and their owner's shares of the products.

    With w the mask, the share is ``-round(t w / q')``.
    """
    masks = entropy.integers(SHARED_MODULUS, length)
    rounded = rounded_fractions(masks, SHARED_MODULUS, ring.modulus_bits)
    return TableMasks(masks.view(np.int64), ring.centred(-rounded.view(np.int64)))


@dataclass(frozen=True, slots=True)
class TileRows:
    """Row tiles of a table, in memory or a mapped file; ``places`` are the rows of each tile."""

    values: IntArray
    places: dict[int, slice]

    @classmethod
    def from_table(cls, values: IntArray, side: Side) -> TileRows:
        """All rows of a table."""
        return cls(values, dict(enumerate(side.slices())))

    def tile(self, number: int) -> IntArray:
        """Rows of a tile."""
        return self.values[self.places[number]]

    def drop_pages(self) -> None:
        """Release the memory of a mapped file; its rows are read again when needed."""
        drop_pages(self.values)


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum of products that has not left its process."""

    server_ops: ServerOps
    cipher: Any

    def to_bytes(self) -> bytes:
        """Serialise the sum for another process; empty where all of its tiles are zero."""
        return b"" if self.cipher is None else self.server_ops.saved(self.cipher)


class TableWorker:
    """Worker with some row tiles of Alice's; keeps plaintexts in ``memory`` bytes."""

    def __init__(
        self,
        server_ops: ServerOps,
        key: bytes,
        ring: Wrapping,
        tiling: Tiling,
        rows: TileRows,
        memory: int,
    ) -> None:
        self._server_ops, self._key = server_ops, key
        self._evaluator = server_ops.seal.evaluator
        self._ring = ring
        self._tiling = tiling
        self._rows = rows
        self._low = np.uint64(server_ops.seal.plain_modulus - 1)
        self._most = memory // server_ops.plain_bytes
        self._kept: dict[tuple[int, int], Any] = {}
        self._turned: tuple[int, WordArray] | None = None
        self._product = sealapi.Ciphertext()

    def use_key(self, key: bytes) -> None:
        """Answer under this public key, which is that of the setup or a newer one."""
        if key != self._key:
            half = PublicHalf.from_bytes(key, self._server_ops.seal, seed=None)
            self._server_ops.use_key(half.polynomials(self._server_ops.seal))
            self._key = key

    def __call__(self, job: Job) -> Reply:
        """Run a job of ``BfvTable``."""
        key, masks, pieces, public = job.frames
        # Every job names its key, so that a reply depends on setup and job alone.
        self.use_key(bytes(public))
        entropy, values = KeyedEntropy(bytes(key)), np.frombuffer(masks, "<i8")
        tiles, parts = range(job.facts["first"], job.facts["last"]), ByteReader(pieces)
        if job.name == "columns":
            return (self._sums_over_columns(tiles, parts, values, entropy),)
        covered = range(job.facts["first_covered"], job.facts["last_covered"])
        totals = self._sums_over_rows(tiles, parts, covered, values, entropy)
        return tuple(Sum(self._server_ops, total) for total in totals)

    def _sums_over_rows(
        self, tiles: range, parts: ByteReader, covered: range, masks: IntArray, entropy: Entropy
    ) -> list[Any]:
        """For each column tile, the sum of its tiles' products with ``r(x)``.

        The ``covered`` column tiles get their covers here and leave NTT form; the others stay in
        it, or are None where all of their tiles are zero.
        """
        side, totals = self._tiling.columns, [None] * self._tiling.columns.tiles
        pieces = self._server_ops.pieces(parts, len(tiles))
        for row, piece in zip(tiles, pieces, strict=True):
            for column, total in enumerate(totals):
                totals[column] = self._added(total, piece, row, column)
            self._rows.drop_pages()
        for at, column in enumerate(covered):
            mask = masks[at * side.span : (at + 1) * side.span]
            totals[column] = self._covered(totals[column], mask, side, entropy.fork(str(column)))
        return totals

    def _sums_over_columns(
        self, tiles: range, parts: ByteReader, masks: IntArray, entropy: Entropy
    ) -> bytes:
        """The answers of these rows to ``v(x)``, one for each row tile."""
        side, answers = self._tiling.rows, []
        pieces = list(self._server_ops.pieces(parts, self._tiling.columns.tiles))
        for at, row in enumerate(tiles):
            total = None
            for column, piece in enumerate(pieces):
                total = self._added(total, piece, row, column)
            self._rows.drop_pages()
            mask = masks[at * side.span : (at + 1) * side.span]
            answer = self._covered(total, mask, side, entropy.fork(str(row)))
            answers.append(self._server_ops.written(answer, side.answered(len(mask))))
        return b"".join(answers)

    def _covered(self, total: Any, mask: IntArray, side: Side, entropy: Entropy) -> Any:  # noqa: ANN401
        places = side.answered(len(mask))
        if not self._server_ops.seal.parameters.rounds:
            mask = self._ring.centred(mask)
        cover = self._server_ops.cover(mask, places, entropy)
        # For tiles of zeros the cover alone is the answer.
        return self._server_ops.covered(total, cover)

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
        """Plaintext of a tile in NTT form; None where all of the tile is zero."""
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
        plain = self._server_ops.seal.load_plain(coefficients)
        self._evaluator.transform_to_ntt_inplace(plain, self._server_ops.seal.first_id)
        return plain

    def _coefficients(self, row: int) -> WordArray:
        """Coefficients of all tiles of a row, kept until those of another row are asked for."""
        if self._turned is None or self._turned[0] != row:
            turned = self._tiling.polynomial(self._rows.tile(row))
            # Modulo a power of two a negative number is its low bits.
            self._turned = row, turned.view(np.uint64) & self._low
        return self._turned[1]


class BfvRowSum:
    """Sum over all rows, in NTT form until the last part is in."""

    def __init__(self, table: BfvTable, mask: IntArray) -> None:
        self._table, self._mask = table, mask
        self._totals: list[Any] = [None] * table.tiling.columns.tiles
        self._done = 0

    def add(self, vector: EncryptedVector, row_block: slice | None = None) -> None:
        """Add the product of the next part of the rows."""
        parts = self._table.parts
        due = next_part(row_block, parts, self._done)
        mask = self._mask if self._done == len(parts) - 1 else None
        self._totals = self._table.add_rows(self._totals, vector, due, mask)
        self._done += 1

    def result(self) -> EncryptedAnswer:
        """The covered sum."""
        require_all(self._table.parts, self._done)
        return self._table.answer(self._totals)


class BfvTable:
    """Alice's table.

    **Guarantee.** Products are exact modulo t. Each answer has its own masks, flood and encryption
    of zero; over a whole training Bob learns of the table no more than
    ``parameters.table_leak_bits`` states, as a statistical distance. Where both sides round
    (``parameters.rounds``) shares miss products by ``parameters.share_error`` at most, and Bob
    learns nothing under ring learning with errors, whatever his vectors and his key are.

    **Assumes.** What ``BfvPublicKey`` assumes, and that the training passed ``check_tables``.

    ``memory`` is in bytes, for plaintexts over all processes. Each of ``parts``, rows whose
    ciphertexts travel together, is cut into its own shares.
    """

    def __init__(
        self,
        server_ops: ServerOps,
        ring: Wrapping,
        whole: IntArray,
        memory: int,
        key: bytes,
        engine: Engine,
        parts: list[slice],
    ) -> None:
        self.size = TableSize(*whole.shape)
        self._server_ops, self._key, self._ring = server_ops, key, ring
        self.tiling = Tiling.for_size(self.size, server_ops.seal.degree)
        self.parts = parts
        tiles = [self.tiling.row_tiles(part) for part in parts]
        count = min(engine.shares(self.tiling.tiles, LEAST_SHARED_TILES), max(map(len, tiles)))
        # The same shares in every pass: what a worker keeps is of use to it again.
        self._shares = {
            part.start: [
                range(share.start + of.start, share.stop + of.start)
                for share in even_shares(len(of), count)
            ]
            for part, of in zip(parts, tiles, strict=True)
        }
        memory //= count
        held = TileRows.from_table(whole, self.tiling.rows)
        self._worker: TableWorker | None = TableWorker(
            server_ops, key, ring, self.tiling, held, memory
        )
        rounds = int(server_ops.seal.parameters.rounds)
        facts = {**ring_facts(ring), "rounds": rounds, **asdict(self.size), "memory": memory}
        self._pool = engine.pool(
            [
                partial(_setup, key, facts, whole, self.tiling.rows, list(shares))
                for shares in zip(*self._shares.values(), strict=True)
            ]
        )
        # For floods; like SEAL's own draws they change no result, and two answers never share one,
        # whatever entropy a caller hands in.
        self._entropy = KeyedEntropy.from_system()

    def use_key(self, key: PublicKey) -> None:
        """Answer under another key: plaintexts and workers stay."""
        if key.capacity != self._ring:
            raise CryptoError("the key is for tables of other sizes")
        self._key = key.to_bytes()

    def sum_over_rows(self, mask: IntArray, entropy: Entropy) -> BfvRowSum:
        """``table.T @ vector + mask``; covers are drawn from the operating system."""
        check_length(mask, self.size.columns, "mask")
        return BfvRowSum(self, mask)

    def add_rows(
        self, totals: list[Any], vector: EncryptedVector, row_block: slice, mask: IntArray | None
    ) -> list[Any]:
        """Add the products of a part of the rows to sums in NTT form.

        Each worker sums over its own rows; in the last part, where ``mask`` is not None, it covers
        some of the columns, which leave NTT form. ``totals`` has the sum of each column tile so
        far; None where there is none.
        """
        side, shares = self.tiling.columns, self._shares[row_block.start]
        worker = self._opened(vector, self.tiling.rows.part(self.tiling.row_tiles(row_block)))
        covered = even_shares(0 if mask is None else side.tiles, len(shares))
        masks = np.empty(0, dtype=np.int64) if mask is None else mask
        size, first = self._server_ops.piece_bytes, shares[0].start
        data = memoryview(vector.data)
        jobs = [
            Job(
                "rows",
                {**_span(share), "first_covered": columns.start, "last_covered": columns.stop},
                (
                    self._fresh(),
                    _little(masks[side.entries(columns)]),
                    data[(share.start - first) * size : (share.stop - first) * size],
                    self._key,
                ),
            )
            for share, columns in zip(shares, covered, strict=True)
        ]
        replies = self._pool.run(jobs, worker)
        owners = {column: worker for worker, share in enumerate(covered) for column in share}
        return [
            self._merged(total, [reply[column] for reply in replies], owners.get(column))
            for column, total in enumerate(totals)
        ]

    def answer(self, totals: list[Any]) -> EncryptedAnswer:
        """Write the covered sums of all column tiles."""
        side = self.tiling.columns
        answers = [
            self._server_ops.written(total, side.answered(tile.stop - tile.start))
            for total, tile in zip(totals, side.slices(), strict=True)
        ]
        return EncryptedAnswer(b"".join(answers), side.length)

    def product(
        self,
        vector: EncryptedVector,
        mask: IntArray,
        entropy: Entropy,
        row_block: slice | None = None,
    ) -> EncryptedAnswer:
        """``table @ vector + mask``; covers are drawn from the operating system."""
        row_block = named_part(row_block, self.parts)
        side, worker = self.tiling.rows, self._opened(vector, self.tiling.columns)
        check_length(mask, row_block.stop - row_block.start, "mask")
        jobs = []
        for share in self._shares[row_block.start]:
            rows = side.entries(share)
            masks = _little(mask[rows.start - row_block.start : rows.stop - row_block.start])
            jobs.append(
                Job("columns", _span(share), (self._fresh(), masks, vector.data, self._key))
            )
        replies = self._pool.run(jobs, worker)
        answers = [frame for reply in replies for frame in written(reply)]
        return EncryptedAnswer(b"".join(answers), len(mask))

    def close(self) -> None:
        """Free the plaintexts and end the worker processes."""
        self._worker = None
        self._pool.close()

    def _opened(self, vector: EncryptedVector, sent: Side) -> TableWorker:
        """The table's worker, for a received vector of the right size."""
        if self._worker is None:
            raise CryptoError("the table was closed")
        if vector.length != sent.length:
            raise CryptoError(f"a vector of {vector.length} where {sent.length} were expected")
        exactly(vector.data, sent.tiles * self._server_ops.piece_bytes, "an encrypted vector")
        return self._worker

    def _merged(self, total: Any, sums: list[Frame | Writable], owner: int | None) -> Any:  # noqa: ANN401
        """``total`` plus all sums, in NTT form; as coefficients if share ``owner`` has the cover.

        None where all tiles are zero and there is no owner.
        """
        evaluator = self._server_ops.seal.evaluator
        for share, part in enumerate(sums):
            if share == owner:
                continue
            cipher = self._read(part, ntt=True)
            if total is None:
                total = cipher
            elif cipher is not None:
                evaluator.add_inplace(total, cipher)
        if owner is None:
            return total
        cover = self._read(sums[owner], ntt=False)
        if total is not None:
            evaluator.transform_from_ntt_inplace(total)
            evaluator.add_inplace(cover, total)
        return cover

    def _read(self, frame: Frame | Writable, *, ntt: bool) -> Any:  # noqa: ANN401
        """Ciphertext of a sum; None where all of its tiles are zero."""
        if isinstance(frame, Sum):
            return frame.cipher
        (data,) = written((frame,))
        return self._server_ops.loaded(data, ntt=ntt) if data else None

    def _fresh(self) -> bytes:
        """Key of one share's floods in one product."""
        return self._entropy.token(KEY_BYTES)


def _setup(
    key: bytes, facts: dict[str, int], whole: IntArray, side: Side, shares: list[range]
) -> Job:
    # Loaded here: only a table that is shared has setups.
    from taciturn.crypto.bfv.worker import table_setup

    return table_setup(key, facts, whole, side, shares)


def _span(tiles: range) -> dict[str, int]:
    return {"first": tiles.start, "last": tiles.stop}


def ring_facts(ring: Wrapping) -> dict[str, int]:
    """Sizes of a ring, for a worker process."""
    bits = {"modulus_bits": ring.modulus_bits, "matrix_bits": ring.matrix_bits}
    return {**bits, "terms": ring.terms}


def _little(values: IntArray) -> bytes:
    return values.astype("<i8", copy=False).tobytes()
