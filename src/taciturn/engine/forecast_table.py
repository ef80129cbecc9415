"""How long newton will take and how much will cross, from a few tiles and a few thousand rows.

With ``R`` row tiles and ``C`` column tiles of a table (``crypto.bfv.tiles``) a pass has R + C
ciphertexts each way and R C products from either side, and the first product of all makes the
tiles. So two small tables of tiles that are as full as those of the whole one tell what each of
these costs. What is done in clear (whitening, the search, rounding, masks) is timed on some rows
and grows with them.

Sizes follow from public numbers alone, and are exact but for the heads of messages.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import (
    DEFAULT_TABLE_MEMORY,
    EncryptedAnswer,
    EncryptedVector,
    Table,
    TableSize,
    transposed_product,
)
from taciturn.crypto.bfv.crew import LocalEngine
from taciturn.crypto.bfv.keys import LEAST_SHARED_PIECES, LOCAL
from taciturn.crypto.bfv.parameters import DEGREE, require_fit
from taciturn.crypto.bfv.tables import LEAST_SHARED_TILES
from taciturn.crypto.bfv.tiles import Tiling
from taciturn.data.tables import FeatureTable
from taciturn.engine.trial import KeyPair, SlotsTrial
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.likelihood import of_labels, weighted_likelihood
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.numerics.shared_fraction import SEGMENTS
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.numerics.whitening import Whitening
from taciturn.parallel import one_thread
from taciturn.protocol.mutual import slots_of
from taciturn.protocol.mutual_table import shared_sigmoid
from taciturn.protocol.scales import Scales
from taciturn.protocol.table_shape import TableShape
from taciturn.protocol.terms import Terms
from taciturn.results.estimate import Estimate
from taciturn.rng import Entropy, KeyedEntropy

TRIALS = 2
# A few tiles are soon done, and what they take is taken off what many do.
TRIALS_OF_FEW = 10
# Rows on which the work in clear is timed, and tiles on which products are: more than fit a cache.
SAMPLE_ROWS = 1 << 18
SAMPLE_TILES, FEW_TILES = 192, 4
SAMPLE_WAVES = 1 << 12
# What a further process adds.
SHARED = 0.6
# Frames of a pass besides ciphertexts and numbers.
OVERHEAD_BYTES = 45
# What a side says before the first pass: the agreement's digest, its rows and columns.
GREETING_BYTES = 720
# A score in clear.
_NUMBER_BYTES = 8


@dataclass(frozen=True, slots=True)
class _Count:
    """How many ciphertexts each way, and how many products from either side, a pass has."""

    rows: int
    columns: int

    @classmethod
    def of(cls, size: TableSize) -> _Count:
        tiling = Tiling.of(size)
        return cls(tiling.rows.tiles, tiling.columns.tiles)

    @property
    def tiles(self) -> int:
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class _Cost:
    """Seconds of what a product is made of.

    Args:
        encrypting: A ciphertext of Bob's vector.
        reading: The same at Alice.
        tile: Its product with one tile.
        answering: A ciphertext of the answer.
        decrypting: The same at Bob.
        preparing: Making a tile, once.
        engine: Where the work is done.
    """

    encrypting: float
    reading: float
    tile: float
    answering: float
    decrypting: float
    preparing: float
    engine: LocalEngine

    def product(self, sent: int, answered: int) -> float:
        """Seconds of a product with so many ciphertexts up and down; large ones are shared."""
        own = sum(
            cost * count / self._speedup(count, LEAST_SHARED_PIECES)
            for cost, count in ((self.encrypting, sent), (self.decrypting, answered))
        )
        tiles = sent * answered
        theirs = self.reading * sent + self.tile * tiles + self.answering * answered
        return own + theirs / self._speedup(tiles, LEAST_SHARED_TILES)

    def prepared(self, tiles: int, made: int) -> float:
        """Seconds of making tiles, of a table that has so many."""
        return self.preparing * made / self._speedup(tiles, LEAST_SHARED_TILES)

    def _speedup(self, work: int, least: int) -> float:
        """How many times as fast several workers are; each of them has bytes to move as well."""
        return 1.0 + SHARED * (self.engine.shares(work, least) - 1)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Seconds of one product of a small table: Bob's two parts, and Alice's."""

    sent: int
    answered: int
    encrypting: float
    product: float
    decrypting: float


def forecast_table(
    terms: Terms,
    tables: Sequence[FeatureTable],
    bob_columns: int = 1,
    memory: int = DEFAULT_TABLE_MEMORY,
) -> Estimate:
    """What a training with newton takes, all parties in one process.

    Args:
        terms: The agreement in use.
        tables: The training rows of Alice, or of each Alice.
        bob_columns: How many columns Bob has, the intercept among them.
        memory: Bytes that a table may take in the scheme's own form.
    """
    coins, widths = KeyedEntropy.from_system(), tuple(len(table.columns) for table in tables)
    with one_thread():
        if terms.mechanism.shares_scores:
            return _SharedTable(terms, tables[0], widths, coins).estimate(bob_columns, memory)
        by_width = {len(table.columns): table for table in tables}
        made = {width: _Table(terms, by_width[width], widths, coins) for width in by_width}
        parts = [(made[width], count) for width, count in Counter(widths).items()]
        # Bob's search is one, however many Alices there are.
        seconds = parts[0][0].seconds_searching(bob_columns)
        for part, count in parts:
            seconds += count * (part.seconds_encrypted(memory) + part.seconds_in_clear())
        return Estimate(
            iterations=terms.agreement.epochs,
            seconds=seconds,
            bytes_to_alice=sum(count * part.bytes_to_alice for part, count in parts),
            bytes_to_bob=sum(count * part.bytes_to_bob for part, count in parts),
        )


class _Table:
    """An Alice's table, of which some rows are whitened and rounded.

    Args:
        terms: The agreement in use.
        features: Her training rows.
        widths: How many columns each Alice has.
        entropy: Coins of no consequence.
    """

    def __init__(
        self, terms: Terms, features: FeatureTable, widths: tuple[int, ...], entropy: Entropy
    ) -> None:
        self._terms, self._entropy = terms, entropy
        self._passes = terms.agreement.epochs
        self._sample = features.values[:SAMPLE_ROWS]
        whitening = Whitening.of(features.values, terms.agreement.l2)
        self._whitened = whitening.apply(self._sample)
        # The largest value may lie in another row; a bit more or less changes no cost.
        bits = magnitude_bits(float(np.abs(self._whitened).max(initial=0.0)))
        shape = TableShape(features.rows, widths, bits)
        self._size = shape.size(len(features.columns))
        self._scales = self._chosen_scales(shape)
        self._ring = shape.ring(self._scales)
        self._pair = KeyPair.of(terms.scheme, terms.agreement.key_bits, self._ring, entropy)
        self._whole = self._scales.feature_grid.rounded(self._whitened)

    def _chosen_scales(self, shape: TableShape) -> Scales:
        return shape.scales(self._terms)

    # --- bytes --------------------------------------------------------------------------------

    @property
    def bytes_to_alice(self) -> int:
        """Directions and weights, or sums that are revealed; and keys."""
        vectors = self._vector(self._count.rows, self._size.rows) * (self._passes + 1)
        if self._terms.mechanism.shares_weights:
            vectors += self._vector(self._count.columns, self._size.columns) * self._passes
        else:
            entry = (self._ring.modulus_bits + 7) // 8
            vectors += entry * self._size.columns * (self._passes + 1)
        return vectors + self._keys * len(self._pair.public.to_bytes()) + self._overhead

    @property
    def bytes_to_bob(self) -> int:
        """Sums, and scores: encrypted, or in clear."""
        answers = self._answer(self._count.columns, self._size.columns) * (self._passes + 1)
        if self._terms.mechanism.shares_weights:
            answers += self._answer(self._count.rows, self._size.rows) * self._passes
        else:
            answers += _NUMBER_BYTES * self._size.rows * self._passes
        return answers + self._overhead

    @property
    def _count(self) -> _Count:
        return _Count.of(self._size)

    @property
    def _keys(self) -> int:
        return 2 * self._passes + 1 if self._terms.agreement.fresh_keys else 1

    @property
    def _overhead(self) -> int:
        return GREETING_BYTES + OVERHEAD_BYTES * (self._passes + 1)

    def _vector(self, tiles: int, length: int) -> int:
        """The bytes of an encrypted vector."""
        one = TableSize(1, 1)
        sent = self._pair.secret.encrypt_rows(np.zeros(1, dtype=np.int64), one, self._entropy)
        # In clear a vector has a number for each entry.
        return len(sent.data) * (tiles if self._terms.scheme.protects else length)

    def _answer(self, tiles: int, length: int) -> int:
        """The bytes of an answer: its entries, and for each tile a whole polynomial."""
        table = self._pair.public.table(np.ones((1, 1), dtype=np.int64))
        zero, one = np.zeros(1, dtype=np.int64), TableSize(1, 1)
        sent = self._pair.secret.encrypt_rows(zero, one, self._entropy)
        size = len(transposed_product(table, sent, zero, self._entropy).data)
        if not self._terms.scheme.protects:
            return size * length
        return size // (DEGREE + 1) * (tiles * DEGREE + length)

    # --- seconds ------------------------------------------------------------------------------

    def seconds_encrypted(self, memory: int) -> float:
        """What encryption, products and decryption take."""
        if not self._terms.scheme.protects:
            return 0.0
        count, passes, sealed = self._count, self._passes, self._terms.mechanism.shares_weights
        cost, kept = self._cost(), self._kept(memory)
        products = 2 * passes + 1 if sealed else passes + 1
        # Tiles for which there is no memory are made for each product, and all for a fresh key.
        made = count.tiles * self._keys + max(0, count.tiles - kept) * (products - self._keys)
        seconds = cost.prepared(count.tiles, made)
        seconds += cost.product(count.rows, count.columns) * (passes + 1)
        if sealed:
            seconds += cost.product(count.columns, count.rows) * passes
        return seconds

    def _kept(self, memory: int) -> int:
        """How many tiles fit in so many bytes."""
        return memory // (8 * DEGREE * (len(require_fit(self._ring).prime_bits) - 1))

    def _cost(self) -> _Cost:
        """From a table of a few tiles and one of more."""
        parts = [self._part(SAMPLE_TILES), self._part(FEW_TILES)]
        timed = [
            self._timed(part, turns)
            for part, turns in zip(parts, (TRIALS, TRIALS_OF_FEW), strict=True)
        ]
        trials = [trial for _, both in timed for trial in both]
        sums = np.array([[t.sent, t.sent * t.answered, t.answered] for t in trials], dtype=float)
        # A cost is not negative; a short product says as much as a long one.
        seconds = np.array([trial.product for trial in trials])
        reading, tile, answering = _least_squares(sums / seconds[:, None], np.ones(len(trials)))
        count = _Count.of(TableSize(*parts[0].shape))
        return _Cost(
            encrypting=min(trial.encrypting / trial.sent for trial in trials),
            reading=reading,
            tile=tile,
            answering=answering,
            decrypting=min(trial.decrypting / trial.answered for trial in trials),
            preparing=timed[0][0] / count.tiles,
            engine=self._engine,
        )

    @property
    def _engine(self) -> LocalEngine:
        """That of the scheme; any other than a local one is taken for this machine."""
        engine = getattr(self._terms.scheme, "engine", LOCAL)
        return engine if isinstance(engine, LocalEngine) else LOCAL

    def _part(self, tiles: int) -> IntArray:
        """About so many of the table's tiles; rows that are not at hand are repeated."""
        tiling = Tiling.of(self._size)
        # Three times as many row tiles as column tiles, to tell apart what each of them costs.
        columns = min(tiling.columns.tiles, max(1, round((tiles / 3) ** 0.5)))
        rows = min(tiling.rows.tiles, -(-tiles // columns))
        height = min(rows * tiling.height, self._size.rows)
        width = min(columns * tiling.width, self._size.columns)
        return np.resize(self._whole, (height, self._size.columns))[:, :width].copy()

    def _timed(self, whole: IntArray, turns: int) -> tuple[float, list[_Trial]]:
        """Seconds of preparing a small table, and of the best of some products from either side."""
        table, size = self._pair.public.table(whole), TableSize(*whole.shape)
        try:
            first = self._over_rows(table, size).product
            trials = [self._over_rows(table, size) for _ in range(turns)]
            others = [self._over_columns(table, size) for _ in range(turns)]
        finally:
            table.close()
        best = [_best(trials), _best(others)]
        return max(0.0, first - best[0].product), best

    def _over_rows(self, table: Table, size: TableSize) -> _Trial:
        """One sum over rows."""
        vector, mask = (np.ones(n, dtype=np.int64) for n in (size.rows, size.columns))
        secret, coins, count = self._pair.secret, self._entropy, _Count.of(size)
        return _trial(
            (count.rows, count.columns),
            lambda: secret.encrypt_rows(vector, size, coins),
            lambda sent: transposed_product(table, sent, mask, coins),
            lambda answer: secret.decrypt_columns(answer, size),
        )

    def _over_columns(self, table: Table, size: TableSize) -> _Trial:
        """One sum over columns."""
        vector, mask = (np.ones(n, dtype=np.int64) for n in (size.columns, size.rows))
        secret, coins, count = self._pair.secret, self._entropy, _Count.of(size)
        return _trial(
            (count.columns, count.rows),
            lambda: secret.encrypt_columns(vector, size, coins),
            lambda sent: table.product(sent, mask, coins),
            lambda answer: secret.decrypt_rows(answer, size),
        )

    def seconds_in_clear(self) -> float:
        """Whitening, and what is rounded, masked and multiplied in clear."""
        once = _seconds(self._whiten)
        weights = np.ones(self._size.columns, dtype=np.int64)
        products = 1 if self._terms.scheme.protects else 3
        multiplying = products * _seconds(lambda: self._ring.product(self._whole, weights))
        return self._scale * (once + self._passes * multiplying)

    @property
    def _scale(self) -> float:
        """How many times as many rows there are as are timed."""
        return self._size.rows / len(self._sample)

    def _whiten(self) -> None:
        whitening = Whitening.of(self._sample, self._terms.agreement.l2)
        self._scales.feature_grid.rounded(whitening.apply(self._sample))

    def seconds_searching(self, bob_columns: int) -> float:
        """Bob's search, from the sample's rows: its begin, its end, and a usual pass."""
        rows, before = len(self._sample), self._passes // 2
        numbers = self._entropy.uniform((2 * before + 2, rows)) - 0.5
        plain = partial(weighted_likelihood, class_weight=None)
        likelihood = of_labels(numbers[0] > 0, plain)
        own = self._entropy.uniform((rows, bob_columns))
        l2, free = self._terms.agreement.l2, min(1, bob_columns)
        begin = _seconds(SubspaceSolver(likelihood, own, l2, free, 0).direction)
        solver = SubspaceSolver(likelihood, own, l2, free, before + 2)
        for number in range(before):
            solver.add(numbers[number] / rows, numbers[before + number])

        def one_pass(*, last: bool) -> None:
            direction = self._scales.directions(solver.direction(), self._entropy)
            solver.add(self._scales.numbers(direction), numbers[-1], last=last)
            solver.scores()

        usual = (self._passes - 1) * _seconds(partial(one_pass, last=False))
        return self._scale * (begin + usual + _seconds(partial(one_pass, last=True)))


class _SharedTable(_Table):
    """Where nobody sees a score: the same products for both tables, each above its penalty."""

    def _chosen_scales(self, shape: TableShape) -> Scales:
        return Scales.of_shared_table(self._terms.agreement, shape.rows)

    def estimate(self, bob_columns: int, memory: int) -> Estimate:
        """What both sides take; Bob's values are taken to be as large as Alice's."""
        rows, agreed = self._size.rows, self._terms.agreement
        slots, coins = slots_of(self._terms.scheme), self._entropy
        counts = (self._size.columns, bob_columns)
        sizes = [TableSize(rows + count, count) for count in counts if count]
        sigmoid = shared_sigmoid(self._scales, agreed, rows)
        waves = SlotsTrial.of(slots, agreed.key_bits, rows, sigmoid.entries, coins)
        carries = SlotsTrial.of(slots, agreed.key_bits, sum(counts), SEGMENTS, coins)
        there, back = zip(*(self._crossing(size) for size in sizes), strict=True)
        key = len(self._pair.public.to_bytes())
        messages = waves.messages + carries.messages + 2 * len(sizes)
        beside = self._overhead + OVERHEAD_BYTES * self._passes * messages
        numbers = [
            self._passes * (getattr(waves, name) + getattr(carries, name))
            for name in ("bytes_to_alice", "bytes_to_bob")
        ]
        seconds = self._passes * (waves.seconds + carries.seconds)
        seconds += self._seconds_of_products(sizes, memory) + self._seconds_alone(sigmoid)
        # With Bob's table the sides change places.
        to_alice = numbers[0] + there[0] + sum(back[1:]) + waves.key_bytes + key + beside
        to_bob = numbers[1] + back[0] + sum(there[1:]) + key * (len(sizes) - 1) + beside
        return Estimate(self._passes, seconds, to_alice, to_bob)

    def _crossing(self, size: TableSize) -> tuple[int, int]:
        """The bytes to the owner of a table in all passes, and back; the first has no scores."""
        count, passes = _Count.of(size), self._passes
        there = self._vector(count.rows, size.rows) * passes
        there += self._vector(count.columns, size.columns) * (passes - 1)
        back = self._answer(count.columns, size.columns) * passes
        return there, back + self._answer(count.rows, size.rows) * (passes - 1)

    def _seconds_of_products(self, sizes: list[TableSize], memory: int) -> float:
        if not self._terms.scheme.protects:
            return 0.0
        cost, kept, seconds = self._cost(), self._kept(memory), 0.0
        for count in map(_Count.of, sizes):
            again = max(0, count.tiles - kept) * (2 * self._passes - 2)
            seconds += cost.prepared(count.tiles, count.tiles + again)
            seconds += cost.product(count.rows, count.columns) * self._passes
            seconds += cost.product(count.columns, count.rows) * (self._passes - 1)
        return seconds

    def _seconds_alone(self, sigmoid: SharedSigmoid) -> float:
        """Whitening, the numbers of waves on both sides, and products with own shares."""
        share = self._ring.draw(min(len(self._sample), SAMPLE_WAVES), self._entropy)
        waving = _seconds(lambda: sigmoid.table(share, self._entropy))
        waving += _seconds(lambda: sigmoid.phases(share, np.ones(len(share))))
        weights = np.ones(self._size.columns, dtype=np.int64)
        multiplying = 4 * _seconds(lambda: self._ring.product(self._whole, weights))
        waves = self._size.rows / len(share) * waving
        return (
            self._scale * (_seconds(self._whiten) + self._passes * multiplying)
            + self._passes * waves
        )


def _trial(
    counts: tuple[int, int],
    encrypt: Callable[[], EncryptedVector],
    product: Callable[[EncryptedVector], EncryptedAnswer],
    decrypt: Callable[[EncryptedAnswer], IntArray],
) -> _Trial:
    start = time.perf_counter()
    sent = encrypt()
    encrypted = time.perf_counter()
    answer = product(sent)
    answered = time.perf_counter()
    decrypt(answer)
    end = time.perf_counter()
    return _Trial(*counts, encrypted - start, answered - encrypted, end - answered)


def _best(trials: list[_Trial]) -> _Trial:
    """The shortest of each part: what the machine was busy with besides is none of it."""
    return replace(
        trials[0],
        encrypting=min(trial.encrypting for trial in trials),
        product=min(trial.product for trial in trials),
        decrypting=min(trial.decrypting for trial in trials),
    )


def _least_squares(matrix: FloatArray, right: FloatArray) -> list[float]:
    """The least-squares solution without a negative number, of a matrix of a few columns.

    >>> _least_squares(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([2.0, 1.0])).index(0.0)
    1
    """
    columns = matrix.shape[1]
    best, least = np.zeros(columns), float(right @ right)
    for size in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), size)):
            solution = np.zeros(columns)
            solution[chosen] = np.linalg.lstsq(matrix[:, chosen], right, rcond=None)[0]
            left = matrix @ solution - right
            if solution.min() >= 0.0 and float(left @ left) < least:
                best, least = solution, float(left @ left)
    return best.tolist()


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
