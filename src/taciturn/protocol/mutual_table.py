"""Whole-table training on shared scores (``mutual``): both parties' part.

All weights are shared modulo ``t = 2^k``, in coordinates in which a step of length 1 is safe
(``numerics.whitening``); so are the points y from which steps start. X~ is a party's whitened
table, centred where there is an intercept, and K the matrix ``I - P`` of its penalty, rounded once.

The chart of a training's messages; those around it are in ``taciturn.protocol.party``. ``<...>`` is
encrypted under Bob's key, ``[...]`` under Alice's::

    Alice                                            Bob
      the joint seed (taciturn.protocol.joint_seed), of the keys' uniform halves
                                                <-   KeyOffer            his key for tables
                                                <-   KeyOffer            his key for the sigmoid
                                                <-   KeyOffer            the same, modulo a small
                                                                         prime
      each pass, with a KeyOffer before each vector of hers:
      the next four not in the first pass, whose points are zero:
      SharedVector         [y_B]                ->   (where he has columns)
                                                <-   SharedVector        <y_A>
                                                <-   SharedProduct       [X~_B y_B + eta]
      SharedProduct        <X~_A y_A + eta>     ->
      the sigmoid of all scores:
                                                <-   Phases, several for a block of rows
      ResidueShares                             ->   shares of y - sigma(z), modulo a small prime
                                                <-   Segments            of residues
      CarryShares                               ->   shares of r' = (y - sigma(z)) / n
      SharedVector         [r', y_B]            ->   (where he has columns)
                                                <-   SharedVector        <r', y_A>
                                                <-   SharedProduct       [X~_B^T r' + K_B y_B + xi]
      SharedProduct        <X~_A^T r'           ->
                            + K_A y_A + xi>
                                                <-   Segments
      CarryShares                               ->   shares of w and of the next y
      from OPENING_ROWS rows on, in the last two passes (taciturn.protocol.mutual_sums):
      LossShares           after ResidueShares  ->   shares of the rows' losses, even part
                                                <-   Segments            digits of shares
      CarryShares                               ->   shares of y^T W_1
      and in the last pass:
                                                <-   Segments            of scores
      CarryShares                               ->   shares of the count beyond the range
      OpenedSums           her shares           ->   change of the loss, and the count

``w_A = u_A + v_A`` and ``w_B = u_B + v_B``, with u at Alice and v at Bob; an intercept is a column
of Bob's. A vector holds its sender's share, and the receiver adds the product of its own share.
Table and penalty are one matrix, X~ above K, multiplied from either side. Vectors with an entry per
row are sent in parts (``Scheme.row_parts``): one SharedVector per part in a step, one SharedProduct
per part in scores.

**Shares differ from products by some units of the last place** (``Scheme.for_shares``): masks are
uniform modulo the modulus of answers, and both sides round.

**Scaling down.** ``X~^T r' + K y`` has the digits of a feature in excess. To multiply a share by a
real factor takes the carry of the two parts (``numerics.shared_fraction``): Alice multiplies a
number of Bob's for each weight by one of hers, as in the sigmoid. Momentum multiplies w, and the y
from which the step started, in the same way: one exchange serves both. ``Widening`` brings residues
from a small prime to ``2^k`` likewise.

**A linear residue** (``gaussian``) is the label less the score: no sigmoid, no Phases, no loss. A
share of a score is scaled to a residue's digits with one carry per row.

With many rows most steps use one block of them (``numerics.table_schedule``): the same messages for
that block's rows, with the changes of residues and points since the last step over all rows in
place of r' and y (``Anchor``).

The first pass has no sigmoid: all scores are zero, and Bob has the residues. Passes whose loss is
summed, and all passes of small tables, exchange the sigmoid modulo p, with more digits.

Shares of a carry are modulo the slots' prime p and are used as shares modulo ``2^k``. A carry is 0
or 1, so this fails with probability 1/p, 2^-59, for each weight and pass.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray, WordArray
from taciturn.crypto.base import (
    Scheme,
    SlotScheme,
    TableSize,
    Wrapping,
)
from taciturn.data.tables import FeatureTable
from taciturn.errors import ConfigError
from taciturn.families.registry import FAMILIES
from taciturn.memmap import MEMORY, Scratch, over_blocks
from taciturn.numerics.fixedpoint import FixedPoint, magnitude_bits
from taciturn.numerics.periodic_sigmoid import PeriodicSigmoid, SharedSigmoid
from taciturn.numerics.shared_fraction import Carried, Momentum, SharedFraction, Widening
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.numerics.whitening import Whitening
from taciturn.privacy.base import given
from taciturn.protocol.encoded_table import EncodedTable
from taciturn.protocol.joint_seed import block_order, key_seed
from taciturn.protocol.keyrings import OwnKeys, PeerKeys
from taciturn.protocol.messages import Role, SharedProduct, SharedVector
from taciturn.protocol.mutual import (
    LEAST_LEAK_BITS,
    MOST_WAVES,
    Columns,
    receive_product,
    receive_vector,
    slots_of,
)
from taciturn.protocol.mutual_sums import (
    CROSSED,
    OPENED_BITS,
    SharedSums,
    SumsPlan,
    opened_sums,
    summed_losses,
)
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.protocol.state import TrainingState, mutual_of
from taciturn.protocol.steps import Program, StepProgress, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement

_EMPTY = np.empty(0, dtype=np.int64)
REVEALED_BITS = 20
"""Binary digits of a revealed whitened weight, far above the noise of encryption."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """Scales, sizes and schedule of a training, equal on both sides."""

    terms: Terms
    scales: Scales
    rows: int
    alice: Columns
    bob: Columns

    @classmethod
    def from_terms(cls, terms: Terms, rows: int, alice: Columns, bob: Columns) -> TablePlan:
        """Plan a training; refuse one that overflows its ring or reveals too much of a table."""
        scales = Scales.for_shared_table(terms.agreement, rows)
        plan = cls(terms, scales, rows, alice, bob)
        waves = plan.sigmoid.sigmoid.waves
        if waves > MOST_WAVES:
            raise ConfigError(
                f"the sigmoid would need {waves:,} waves, and {MOST_WAVES} are the most",
                setting="score_range",
                hint=Hint("lower {score_range}, or allow a larger {sigmoid_error}"),
            )
        plan.require_hidden()
        for side in (alice, bob):
            if side.count:
                plan.scheme.check_tables(plan.ring(side), plan.size(side), plan.steps)
        return plan

    @property
    def scheme(self) -> Scheme:
        """Scheme of the products with tables, which are never opened."""
        return self.terms.scheme.for_shares

    def own_keys(self, owner: Role, seed: bytes, *, saved_key: bytes | None = None) -> OwnKeys:
        """The owner's keys for products with the other's table; ``seed`` is the joint one."""
        single_use = owner == "alice"
        return OwnKeys(*self._key_terms(owner, seed), single_use=single_use, saved_key=saved_key)

    def peer_keys(self, owner: Role, seed: bytes, *, saved_key: bytes | None = None) -> PeerKeys:
        """The same keys as the other side has them."""
        single_use = owner == "alice"
        return PeerKeys(*self._key_terms(owner, seed), single_use=single_use, saved_key=saved_key)

    def _key_terms(self, owner: Role, seed: bytes) -> tuple[Scheme, int, Wrapping, bytes]:
        ring = self.ring(self.bob if owner == "alice" else self.alice)
        return self.scheme, self.terms.agreement.key_bits, ring, key_seed(seed, owner)

    @property
    def schedule(self) -> TableSchedule:
        """Rows of each step."""
        return TableSchedule(self.rows, self.alice.count + self.bob.count, self.terms.rounds)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.schedule.steps

    @property
    def slots(self) -> SlotScheme:
        """Products number by number."""
        return slots_of(self.terms.scheme)

    @property
    def narrow(self) -> SlotScheme:
        """Products number by number modulo a small prime, for the sigmoid of most passes."""
        return narrow_slots(self.terms, self.schedule, self.sigmoid.entries)

    @property
    def sigmoid(self) -> SharedSigmoid:
        """The sigmoid on the grid of residues."""
        return shared_sigmoid(self.scales, self.terms.agreement, self.rows)

    def sigmoid_in(self, number: int) -> SharedSigmoid:
        """The sigmoid of a step."""
        if self.sums.sums_loss(number):
            return self.sums.sigmoid
        return usual_sigmoid(self.terms, self.scales, self.schedule)

    def is_narrow(self, number: int) -> bool:
        """Return whether a step exchanges its sigmoid modulo the small prime."""
        usual = number > 0 and not self.sums.sums_loss(number)
        return usual and not self.linear and narrow_fits(self.terms.agreement, self.rows)

    def at_zero(self, number: int) -> bool:
        """Return whether a step has no sigmoid exchange: scores are zero, and no loss is summed."""
        return not number and not self.sums.sums_loss(number)

    @property
    def linear(self) -> bool:
        """True if a residue is the label less the score (``gaussian``): there is no sigmoid."""
        return self.terms.agreement.kind.linear_residue

    def score_scaling(self, raises: bool) -> Widening:
        """Scaling of shares of scores to shares of residues, where residues are linear."""
        factor = self.scales.score_unit * self.sigmoid.step
        return Widening(1 << self.scales.modulus_bits, factor, raises)

    def widening(self, raises: bool) -> Widening:
        """Scaling of shares of narrow residues to shares of residues."""
        narrow = usual_sigmoid(self.terms, self.scales, self.schedule)
        return Widening(self.narrow.modulus, self.sigmoid.step / narrow.step, raises)

    @property
    def sums(self) -> SumsPlan:
        """Sums that are opened after the last pass."""
        agreed = self.terms.agreement
        return SumsPlan(
            replace(self.sigmoid, extra_bits=OPENED_BITS),
            self.scales,
            self.rows,
            self.steps,
            given(agreed, "score_range"),
            heaviest_of(agreed),
            self.slots.modulus,
            summed_losses(self.terms, self.rows),
            "count of scores" in opened_sums(self.terms, self.rows),
        )

    def ring(self, side: Columns) -> Wrapping:
        """The sizes of the products with a side's table."""
        return self.scales.ring(side.bits, self.rows + side.count)

    def size(self, side: Columns, rows: int | None = None) -> TableSize:
        """Size of a side's table (or of ``rows`` of it) with its penalty below."""
        return TableSize((self.rows if rows is None else rows) + side.count, side.count)

    def row_order(self, seed: bytes) -> IndexArray | None:
        """Public order in which the rows form blocks; None without blocks."""
        blocks = self.schedule.blocks
        return block_order(seed, blocks) if blocks else None

    def fraction(self, *, raises: bool) -> SharedFraction:
        """Scaling of shares; Alice is the side that raises."""
        return SharedFraction(self.scales.modulus_bits, self.scales.shared_shift, raises)

    def require_hidden(self) -> None:
        """Refuse a training whose answers number by number reveal too much of Alice's shares.

        Their statistical distances may add up to ``2^-LEAST_LEAK_BITS``. Products with tables
        reveal nothing.
        """
        bits = -math.log2(max(self.alice_leak, 1e-300))
        if bits < LEAST_LEAK_BITS:
            raise ConfigError(
                f"{self.terms.rounds:,} passes over {self.rows:,} rows would hide Alice's shares "
                f"to within 2^{-bits:.0f} only, where 2^-{LEAST_LEAK_BITS} is the least",
                setting="mechanism",
                value="mutual",
                hint=Hint("use fewer {passes}, or lower {score_range}"),
            )

    @property
    def alice_leak(self) -> float:
        """Sum of the statistical distances of all answers number by number."""
        return float(sum(2.0 ** -self.slots.leak_bits(products) for products in self.slot_answers))

    @property
    def slot_answers(self) -> list[int]:
        """Number of ciphertexts that each of Alice's answers number by number sums."""
        weights, sums, losses = self.alice.count + self.bob.count, self.sums, self.sums.losses
        # How many exchanges there are of each kind, and of how many rows and numbers.
        sigmoids = Counter(
            (
                row_count(self.schedule, number),
                1 if self.linear or self.is_narrow(number) else self.sigmoid.entries,
            )
            for number in range(self.at_zero(0), self.steps)
        )
        kinds = (
            *((steps, *kind) for kind, steps in sigmoids.items()),
            (losses, self.rows, self.sigmoid.entries),
            (self.steps, 2 * weights, 1),
            (losses, CROSSED * weights, 1),
            (int(sums.counts), self.rows, sums.range_count.segments),
        )
        return [
            block.ciphertexts
            for exchanges, rows, entries in kinds
            for block in slot_blocks(self.slots, rows, entries) * exchanges
        ]


def shared_sigmoid(scales: Scales, agreed: Agreement, rows: int) -> SharedSigmoid:
    """Sigmoid for this many rows, with as few waves as its error allows."""
    function = PeriodicSigmoid.with_error(scales.score_bound, given(agreed, "sigmoid_error"))
    return SharedSigmoid(function, scales.modulus_bits, scales.shared_unit / rows)


# What a residue of 1 of the heaviest class takes of the small prime. One of a half leaves a sixth
# of that up to a quarter of the prime; by Hoeffding's inequality roundings exceed it in fewer than
# one of 2^80 residues, which would be off by less than 3.
_NARROW_PART = 3 / 8
NARROW_ROWS = 256
"""Below, the rounding of narrow residues costs more than the bytes that they save."""
NARROW_WEIGHT = 0.25
"""Below, Bob's numbers of the lighter class have too few digits for its sigmoid."""


def narrow_fits(agreed: Agreement, rows: int) -> bool:
    """Return whether most passes exchange residues modulo a small prime."""
    return rows >= NARROW_ROWS and min(agreed.class_weight or (1.0,)) >= NARROW_WEIGHT


def narrow_slots(terms: Terms, schedule: TableSchedule, entries: int) -> SlotScheme:
    """Products number by number modulo a small prime, for ``entries`` numbers of each row.

    All steps use them except the first and those whose loss is summed.
    """
    slots = slots_of(terms.scheme)
    last = schedule.steps - summed_losses(terms, schedule.rows)
    lengths = Counter(row_count(schedule, at) for at in range(1, last))
    return slots.narrow(
        [
            block.ciphertexts
            for length, steps in lengths.items()
            for block in slot_blocks(slots, length, entries) * steps
        ]
    )


def row_count(schedule: TableSchedule, number: int) -> int:
    """Rows of a step."""
    place = schedule.rows_of(number)
    return int(place.stop - place.start)


def usual_sigmoid(terms: Terms, scales: Scales, schedule: TableSchedule) -> SharedSigmoid:
    """Sigmoid of most steps: with enough rows, residues fill half of the small prime."""
    wide = shared_sigmoid(scales, terms.agreement, schedule.rows)
    if not narrow_fits(terms.agreement, schedule.rows):
        return wide
    modulus = narrow_slots(terms, schedule, wide.entries).modulus
    return replace(wide, step=_NARROW_PART * modulus / heaviest_of(terms.agreement))


def heaviest_of(agreed: Agreement) -> float:
    """Largest curvature of a row in quarters: a class weight, or 4 for a squared residue."""
    curvature = FAMILIES[agreed.family].curvature or 0.25
    return 4.0 * curvature * max(agreed.class_weight or (1.0,))


def whitening_of(features: FeatureTable, terms: Terms) -> Whitening:
    """Whitening of a side's columns, before it knows how many the other side has."""
    heaviest = heaviest_of(terms.agreement)
    values, free = features.values, features.free
    return Whitening.fit(values, terms.agreement.l2, free, heaviest, terms.means_of(values, free))


def whitened_bits(features: FeatureTable, terms: Terms) -> int:
    """Bits of a side's largest whitened value, which it states to the other side."""
    if not features.columns:
        return 0
    whitening, values = whitening_of(features, terms), features.values

    def largest(place: slice) -> float:
        return float(np.abs(whitening.apply(values[place])).max(initial=0.0))

    return magnitude_bits(max(over_blocks(largest, len(values), values), default=0.0))


@dataclass(frozen=True, slots=True, repr=False)
class OwnTable:
    """A side's integer table with its penalty below; the rows are in the public order."""

    whole: IntArray
    whitening: Whitening

    @classmethod
    def from_features(
        cls,
        features: FeatureTable,
        plan: TablePlan,
        side: Columns,
        order: IndexArray | None = None,
        scratch: Scratch = MEMORY,
    ) -> OwnTable:
        """Whiten and round once for the training; a large table is kept in a file, by columns."""
        scales, agreed = plan.scales, plan.terms.agreement
        values, (rows, columns) = features.values, features.values.shape

        def rows_at(place: slice) -> FloatArray:
            taken: FloatArray = values[place if order is None else order[place]]
            return taken

        whitening = whitening_of(features, plan.terms)
        blocks = plan.schedule.blocks
        if blocks:
            weight = max(agreed.class_weight or (1.0,)) * len(blocks) / rows
            whitening = whitening.bounding(map(rows_at, blocks), weight, agreed.l2)
        # Beside centred columns Bob's intercept does not count.
        others = plan.alice.count + plan.bob.count - columns
        whitening = whitening.beside(others - (plan.terms.centred and not features.free))
        if blocks:
            whitening = whitening.within(2.0**side.bits, map(rows_at, blocks))
        kept = whitening.kept(agreed.l2, features.free)
        below = FixedPoint(scales.shared_shift).rounded(kept)
        # Half of the memory where the bound on values, which both sides know, allows it.
        kind = (
            np.int32 if max(plan.alice.bits, plan.bob.bits) + scales.feature_bits < 31 else np.int64
        )
        by_columns = scratch.empty("whitened", (columns, rows + columns), kind)

        def fill(place: slice) -> None:
            rounded = scales.feature_grid.rounded(whitening.apply(rows_at(place)))
            by_columns[:, place] = rounded.T

        for _ in over_blocks(fill, rows, values, by_columns):
            pass
        by_columns[:, rows:] = below.T
        return cls(by_columns.T, whitening)

    def block(self, place: slice) -> IntArray:
        """Some rows with the penalty below."""
        by_columns = self.whole.T
        below = by_columns[:, by_columns.shape[1] - len(by_columns) :]
        return np.concatenate([by_columns[:, place], below], axis=1).T


@dataclass(frozen=True, slots=True)
class _Asking:
    """This side's keys, and the public size and parts of the peer's table."""

    keys: OwnKeys
    size: TableSize
    parts: list[slice]


@dataclass(frozen=True, slots=True)
class _Holding:
    """The peer's keys, and this side's table and its parts."""

    keys: PeerKeys
    whole: IntArray = field(repr=False)
    parts: list[slice]
    prepared: EncodedTable


@dataclass(frozen=True, slots=True)
class _RowTables:
    """Both sides' tables for some rows; None where a side has no columns."""

    rows: int
    asking: _Asking | None
    holding: _Holding | None

    @property
    def part_pairs(self) -> list[tuple[slice | None, slice | None]]:
        """Pairs of parts of this side's table and of the peer's."""
        sides = (self.holding, self.asking)
        return list(zip_longest(*([] if side is None else side.parts for side in sides)))


class Tables:
    """One party's part in the products with both tables, over all rows or a block of them.

    ``asking`` is its keys and the peer's columns, or None where the peer has none; ``holding`` is
    its own table and the peer's keys, or None. ``memory`` is in bytes. Vectors with an entry per
    row are sent in parts, one of each side's at a time.

    **Alice has a new key for each vector.** A Bob who deviates can answer so that digits of the key
    that decrypts his answer come into her shares, and what is opened in the end depends on these.
    A key that protects residues decrypts one number for each column of his and nothing else.
    """

    def __init__(
        self,
        plan: TablePlan,
        role: Role,
        asking: tuple[OwnKeys, Columns] | None,
        holding: tuple[OwnTable, PeerKeys] | None,
        memory: int,
        entropy: Entropy,
    ) -> None:
        self._is_alice, self._alice_columns = role == "alice", plan.alice.count
        self._ring, self._entropy = plan.ring(plan.alice), entropy
        self._schedule, blocks = plan.schedule, plan.schedule.blocks
        scheme, share = plan.scheme, memory // 2 if blocks else memory
        # The rows stand in a second table where they are cut into blocks.
        self._tables: dict[int | None, _RowTables] = {}
        for at, place in (None, slice(0, plan.rows)), *enumerate(blocks):
            rows, asks, holds = place.stop - place.start, None, None
            if asking is not None:
                size = plan.size(asking[1], rows)
                asks = _Asking(asking[0], size, scheme.row_parts(size))
            if holding is not None:
                whole = holding[0].whole if at is None else holding[0].block(place)
                parts = scheme.row_parts(TableSize(*whole.shape))
                prepared = EncodedTable(whole, share if at is None else share // len(blocks))
                holds = _Holding(holding[1], whole, parts, prepared)
            self._tables[at] = _RowTables(rows, asks, holds)

    def shared_scores(self, number: int, points: IntArray) -> Program[IntArray]:
        """Return this side's share of a step's scores, from its shares of both sides' points."""
        tables, (own, other) = self._tables[self._schedule.block(number)], self._by_side(points)
        scores = np.zeros(tables.rows, dtype=np.int64)
        if not number:
            # Both sides know that all points are zero before the first pass.
            return scores
        turn, asking, holding = 2 * number, tables.asking, tables.holding
        entropy = self._entropy.fork(f"products {turn}")

        if asking is not None:
            own_key = yield from asking.keys.offer(self._entropy.fork(f"key {turn}"))
            vector = own_key.encrypt_columns(other, asking.size, entropy.fork("vector"))
            yield from send(SharedVector(turn, vector))
        if holding is not None:
            key = yield from holding.keys.receive()
            # Before waiting, not after: the peer is at work meanwhile.
            table = holding.prepared.under(key)
            masks = key.table_masks(len(holding.whole), entropy.fork("masks"))
            scores += self._ring.product(holding.whole, own)[: tables.rows]
            scores += masks.shares[: tables.rows]
            vector = yield from receive_vector(turn, table.size.columns)
        for done, (ours, theirs) in enumerate(tables.part_pairs, 1):
            if ours is not None and holding is not None:
                answer = table.product(vector, masks.values[ours], entropy, ours)
                yield from send(SharedProduct(turn, answer))
            if theirs is not None and asking is not None:
                answer = yield from receive_product(turn, theirs.stop - theirs.start)
                shares = own_key.decrypt_rows(answer, asking.size, theirs)
                # The penalty is below the rows and not part of a score.
                place = slice(theirs.start, min(theirs.stop, tables.rows))
                scores[place] += shares[: place.stop - place.start]
            yield from self._reached(number, 0, done, len(tables.part_pairs))
        return self._ring.centred(scores)

    def shared_steps(self, number: int, residues: IntArray, points: IntArray) -> Program[IntArray]:
        """Return this side's shares of both sides' next weights, with more digits than weights."""
        tables, (own, other) = self._tables[self._schedule.block(number)], self._by_side(points)
        turn, asking, holding = 2 * number + 1, tables.asking, tables.holding
        entropy, (ours, theirs) = self._entropy.fork(f"products {turn}"), (_EMPTY, _EMPTY)
        if asking is not None:
            own_key = yield from asking.keys.offer(self._entropy.fork(f"key {turn}"))
        if holding is not None:
            key = yield from holding.keys.receive()
            masks = key.table_masks(holding.whole.shape[1], entropy.fork("masks"))
            total = holding.prepared.under(key).sum_over_rows(masks.values, entropy)
        for done, (held, asked) in enumerate(tables.part_pairs, 1):
            if asked is not None and asking is not None:
                coins = entropy.fork(f"vector {asked.start}")
                values = _part_of(residues, other, asked)
                vector = own_key.encrypt_rows(values, asking.size, coins, asked)
                yield from send(SharedVector(turn, vector))
            if held is not None and holding is not None:
                total.add((yield from receive_vector(turn, held.stop - held.start)), held)
            yield from self._reached(number, 1, done, len(tables.part_pairs))
        if holding is not None:
            yield from send(SharedProduct(turn, total.result()))
            table, penalty = holding.whole[: tables.rows], holding.whole[tables.rows :]
            ours = self._ring.transposed_product(table, residues)
            ours += self._ring.transposed_product(penalty, own) + masks.shares
            ours = self._ring.centred(ours)
        if asking is not None:
            answer = yield from receive_product(turn, asking.size.columns)
            theirs = own_key.decrypt_columns(answer, asking.size)
        return np.concatenate([ours, theirs] if self._is_alice else [theirs, ours])

    def _by_side(self, points: IntArray) -> tuple[IntArray, IntArray]:
        """Split the points, Alice's first, into this side's and the peer's."""
        hers, his = points[: self._alice_columns], points[self._alice_columns :]
        return (hers, his) if self._is_alice else (his, hers)

    def _reached(self, number: int, half: int, done: int, parts: int) -> Program[None]:
        """Report a step's progress: scores are its first half, products its second."""
        schedule = self._schedule
        at = StepProgress(schedule.passes_done(number), schedule.passes)
        yield from at.report(half, done, parts)

    def close(self) -> None:
        """Free the encoded tables."""
        for tables in self._tables.values():
            if tables.holding is not None:
                tables.holding.prepared.close()


def _part_of(residues: IntArray, points: IntArray, part: slice) -> IntArray:
    """Some entries of the residues with the points below."""
    above = len(residues)
    below = slice(max(0, part.start - above), max(0, part.stop - above))
    return np.concatenate([residues[part], points[below]])


@dataclass(frozen=True, slots=True)
class Anchor:
    """A party's shares at the last step over all rows; steps over a block add the changes.

    ``ahead`` are that step's points, ``residues`` its rows' residues, ``products`` its products.
    """

    schedule: TableSchedule
    ring: Wrapping
    ahead: IntArray = field(repr=False)
    residues: IntArray = field(repr=False)
    products: IntArray = field(repr=False)

    @classmethod
    def start(cls, schedule: TableSchedule, ring: Wrapping) -> Anchor:
        """Return the anchor before the first step, which is over all rows."""
        return cls(schedule, ring, _EMPTY, _EMPTY, _EMPTY)

    def changes(
        self, number: int, residues: IntArray, ahead: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the vectors of a step's products: its residues and points, or their changes."""
        if self.schedule.block(number) is None:
            return residues, ahead
        change = residues - self.residues[self.schedule.rows_of(number)]
        # One of B blocks represents all rows.
        change *= np.int64(len(self.schedule.blocks))
        return self.ring.centred(change), self.ring.centred(ahead - self.ahead)

    def following(
        self, number: int, residues: IntArray, ahead: IntArray, products: IntArray
    ) -> tuple[Anchor, IntArray]:
        """Return the anchor of the next step, and this step's products."""
        if self.schedule.block(number) is None:
            return replace(self, ahead=ahead, residues=residues, products=products), products
        return self, self.ring.centred(self.products + products)


@dataclass(frozen=True, slots=True)
class Point:
    """A party's shares between two passes, Alice's weights first.

    ``ahead`` are the points from which the next step starts, ``products`` the weights before they
    are scaled down, and ``carries`` their carries. ``slope`` are the scaled products of the first
    pass and ``sums`` the losses and the count so far, both modulo the slots' prime.
    """

    ahead: IntArray = field(repr=False)
    products: IntArray = field(repr=False)
    carries: IntArray = field(repr=False)
    slope: IntArray = field(repr=False)
    sums: IntArray = field(repr=False)

    @classmethod
    def start(cls, count: int) -> Point:
        """Return shares of zero weights."""
        zeros = np.zeros(count, dtype=np.int64)
        return cls(zeros, zeros, zeros, zeros, zeros[:0])

    @classmethod
    def from_state(cls, state: TrainingState) -> Point:
        """Restore the shares of a stored state."""
        mutual = mutual_of(state)
        ahead = np.concatenate([state.share, mutual.bob_share])
        return cls(ahead, mutual.products, mutual.carries, mutual.slope, mutual.sums)

    def kept(self, state: TrainingState, number: int) -> TrainingState:
        """Return the state at the start of a pass."""
        hers = len(state.share)
        kept = replace(
            mutual_of(state),
            bob_share=self.ahead[hers:],
            products=self.products,
            carries=self.carries,
            slope=self.slope,
            sums=self.sums,
        )
        at = state.at(number, state.weights, share=self.ahead[:hers])
        return replace(at, mutual=kept)

    def following(
        self,
        fraction: SharedFraction,
        ring: Wrapping,
        momentum: Momentum,
        products: IntArray,
        carries: IntArray,
    ) -> Point:
        """Return the shares after a pass; ``carries`` are those of ``divided``."""
        of_products, of_start = np.split(carries, 2)
        now = Carried(fraction.parts(products), of_products)
        before = Carried(fraction.parts(self.products), self.carries)
        start = Carried(fraction.parts(self.ahead), of_start)
        ahead = ring.centred(fraction.accelerated(now, before, start, momentum))
        return replace(self, ahead=ahead, products=products, carries=of_products)

    def summed(
        self,
        number: int,
        shared: SharedSums,
        products: IntArray,
        carries: IntArray,
        scores: IntArray,
        even: WordArray,
    ) -> Program[Point]:
        """Add a pass's loss or count to the sums; to be called before ``following``.

        ``even`` are shares of the even part of the rows' losses.
        """
        plan, (of_products, of_start) = shared.plan, np.split(carries, 2)
        slope = self.slope
        if not number and plan.losses:
            slope = shared.slope(products, of_products)
        sums = self.sums.tolist()
        if plan.sums_loss(number):
            sums.append((yield from shared.shared_loss(number, slope, self.ahead, of_start, even)))
        if plan.counts and number == plan.passes - 1:
            sums.append((yield from shared.shared_count(scores)))
        return replace(self, slope=slope, sums=np.array(sums, dtype=np.int64))

    def divided(self, fraction: SharedFraction, products: IntArray) -> IntArray:
        """Parts whose carries a pass needs: its products, and the points before it."""
        return fraction.parts(np.concatenate([products, self.ahead]))

    def weights(self, fraction: SharedFraction, ring: Wrapping) -> IntArray:
        """Return the shares of the weights, without momentum."""
        now = Carried(fraction.parts(self.products), self.carries)
        return ring.centred(fraction.scaled_down(now))


def revealed_part(share: IntArray, scales: Scales) -> IntArray:
    """Round a share that is revealed, so that the sum has ``REVEALED_BITS`` binary digits.

    The last places of a weight depend on encryption noise.
    """
    unit = math.floor(math.log2(2.0**scales.weight_bits / scales.factor))
    shift = np.int64(max(0, unit - REVEALED_BITS))
    half = (np.int64(1) << shift) >> np.int64(1)
    rounded: IntArray = ((share + half) >> shift) << shift
    return scales.ring(1, 1).centred(rounded)


def weight_shares(
    plan: TablePlan, weights: IntArray, alice: Whitening | None = None, bob: Whitening | None = None
) -> tuple[WeightShare, WeightShare]:
    """Split a party's shares into Alice's weights and Bob's, with the coordinates that it knows."""
    hers, his = weights[: plan.alice.count], weights[plan.alice.count :]
    return (
        WeightShare(hers, plan.scales, alice, plan.alice.bits),
        WeightShare(his, plan.scales, bob, plan.bob.bits),
    )
