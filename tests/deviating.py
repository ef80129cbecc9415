"""Parties that do not keep to the protocol, played against the real programs of the other side.

``python -m tests.deviating`` prints the figures of ``docs/threat_model.md`` and ``docs/sealed.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray, LabelArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, EncryptedVector, PublicKey, Wrapping
from taciturn.crypto.bfv.keys import BfvPublicKey, BfvScheme
from taciturn.crypto.bfv.layout import Layout
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.bfv.seal import Seal
from taciturn.crypto.bfv.seeds import PublicHalf
from taciturn.data.split import VerticalData
from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.logistic import residue
from taciturn.numerics.symmetry import OpenedPasses, Symmetry
from taciturn.numerics.whitening import Whitening
from taciturn.privacy.base import Released
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet as greet_bob
from taciturn.protocol.alice.opening import greet_with_table
from taciturn.protocol.alice.opening import with_key as key_of_bob
from taciturn.protocol.alice.opening import with_seed as seed_with_bob
from taciturn.protocol.alice.party import TRAININGS as ALICE
from taciturn.protocol.alice.sealed import Keys as KeysOfBob
from taciturn.protocol.alice.train_revealed import unmasked_product

# private: a deviating party repeats the honest one up to one step
from taciturn.protocol.alice.train_table_revealed import _unmasked_sum

# private: a deviating party repeats the honest one up to one step
from taciturn.protocol.alice.train_table_sealed import _open as open_sealed_table

# private: a deviating party repeats the honest one up to one step
from taciturn.protocol.alice.train_table_sealed import _Passes as TablePasses
from taciturn.protocol.alice.whitened import WhitenedTable
from taciturn.protocol.bob.inputs import BobInputs, released_labels
from taciturn.protocol.bob.opening import greet, with_key, with_seed
from taciturn.protocol.bob.partners import Partners
from taciturn.protocol.bob.party import TRAININGS as BOB
from taciturn.protocol.bob.sealed import Keys

# private: a deviating party repeats the honest one up to one step
from taciturn.protocol.bob.train_table_sealed import _Questions
from taciturn.protocol.encoded_table import EncodedTable
from taciturn.protocol.events import Progress
from taciturn.protocol.masks import NO_MASKS, ZeroSum
from taciturn.protocol.messages import (
    EncryptedResidues,
    HiddenBatchOffer,
    KeyOffer,
    MaskedGradient,
    NoisyResidues,
    PartialScores,
    PublicBytes,
    RevealedGradient,
    RowNumbers,
)
from taciturn.protocol.scales import Scales
from taciturn.protocol.scores import receive_scores
from taciturn.protocol.steps import Program, Send, receive, send
from taciturn.protocol.table_scales import table_scales
from taciturn.protocol.table_shape import TableShape
from taciturn.protocol.terms import Terms
from taciturn.rng import KEY_BYTES, KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from tests.packing import Seen, Stack, stacked
from tests.protocol.parties import Tables, agreement
from tests.protocol.stars import talk

R = TypeVar("R")
NEAR = 0.1
"""A value counts as recovered within so many standard deviations of its column."""


@dataclass(frozen=True)
class Setup:
    """A training about to begin."""

    data: VerticalData
    terms: Terms
    entropy: RunEntropy

    @classmethod
    def of(cls, **options: Any) -> Setup:
        base = {"dataset": "breast-cancer", "alice_columns": "half", "scheme": "clear", "seed": 1}
        settings = resolved(Settings.from_mapping({**base, **options}))
        entropy = RunEntropy.for_seed(settings.seed)
        data = arrange(settings, load_raw(settings), entropy.data)
        terms = agree(settings, len(data.alice_train.columns), data.labels_train.rows)
        return cls(data, terms, entropy)

    @property
    def columns(self) -> FloatArray:
        """Alice's values, which Bob is after."""
        return self.data.alice_train.values

    def alice(self) -> Program[Any]:
        """Her own program, unchanged."""
        inputs = AliceInputs(self.data.alice_train, self.terms, self.entropy.alice)
        return ALICE[self.terms.conversation](inputs)

    def alice_inputs(self) -> AliceInputs:
        return AliceInputs(self.data.alice_train, self.terms, self.entropy.alice)

    def bob_inputs(self) -> BobInputs[Any]:
        method = self.terms.mechanism
        ledger = Ledger(self.data.labels_train.rows, method.assumption)
        labels = released_labels(self.data.labels_train, method, ledger, self.entropy.bob)
        return BobInputs(self.data.bob_train, labels, self.terms, method, ledger, self.entropy.bob)

    def bob(self) -> Program[Any]:
        """His own program, unchanged."""
        return BOB[self.terms.conversation](self.bob_inputs())


@dataclass(frozen=True)
class Reading:
    """What Bob makes of the scores of some rows: estimates of some columns."""

    time: int
    rows: IndexArray
    columns: list[int]
    values: FloatArray

    @property
    def cells(self) -> tuple[IndexArray, IndexArray]:
        """Which values of the table they are."""
        return self.rows[:, None], np.array(self.columns, dtype=np.int64)[None, :]


@dataclass
class Notebook:
    """All that he has read, by epoch (by iteration, where he names the rows)."""

    shape: tuple[int, int]
    readings: list[Reading] = field(default_factory=list)

    def estimate(self, until: int) -> FloatArray:
        """The mean of the readings of each value up to this time; NaN where there is none."""
        total, count = np.zeros(self.shape), np.zeros(self.shape)
        for reading in self.readings:
            if reading.time <= until:
                total[reading.cells] += reading.values
                count[reading.cells] += 1
        with np.errstate(invalid="ignore"):
            return total / count

    def recovered(self, truth: FloatArray, until: int) -> float:
        """The share of Alice's values that he has to within a tenth of a deviation."""
        error = np.abs(self.estimate(until) - truth)
        return float(np.mean(error <= NEAR * truth.std(axis=0)))


# --- Bob, where weights are shared: packed vectors in place of his share ------------------------


@dataclass(frozen=True)
class Packing:
    """Several features in one score, as many as fit: weights that are powers of two."""

    scales: Scales
    width: int
    per_score: int

    @classmethod
    def of(cls, scales: Scales, magnitude_bits: int) -> Packing:
        width = scales.feature_bits + magnitude_bits + 1
        return cls(scales, width, max(1, scales.modulus_bits // width))

    def group(self, epoch: int, columns: int) -> list[int]:
        """The columns that an epoch reads."""
        groups = -(-columns // self.per_score)
        first = epoch % groups * self.per_score
        return list(range(first, min(first + self.per_score, columns)))

    def vector(self, group: list[int], columns: int) -> IntArray:
        chosen = np.zeros(columns, dtype=np.int64)
        chosen[group] = [1 << (place * self.width) for place in range(len(group))]
        return chosen

    def read(self, scores: IntArray, group: list[int]) -> FloatArray:
        """The features, one column of the result each, the lowest digits first."""
        left, half, digits = scores, 1 << (self.width - 1), []
        for _ in group:
            digit = ((left + half) & ((1 << self.width) - 1)) - half
            digits.append(digit * 2.0**-self.scales.feature_bits)
            left = (left - digit) >> self.width
        return np.stack(digits, axis=1)


# --- Bob, in whole tables with shared weights: whitened columns, and what whitened them ----------


def whole_table_bob(inputs: BobInputs[Any], notes: Notebook) -> Program[None]:
    """A direction of zeros in each pass, and packed vectors: whitened columns of all rows."""
    terms, rows = inputs.terms, inputs.features.rows
    state = yield from greet(inputs)
    bits = state.magnitude_bits
    shape = TableShape(rows, (state.columns,), bits)
    scales = shape.scales(terms)
    ring, partners = shape.ring(scales), Partners.for_training(inputs.partners, state)
    state = yield from with_seed(inputs, state)
    keys = Keys(terms, ring, state.seed)
    yield from keys.offer(inputs.entropy)
    ask = _Questions(inputs, keys, scales, partners, shape)
    packing = Packing.of(scales, bits)
    everyone, nothing = np.arange(rows), np.zeros(rows, dtype=np.int64)
    for number in range(terms.rounds):
        share = yield from ask.masked_sum(number, nothing)
        group = packing.group(number, state.columns)
        vector = ring.centred(share + packing.vector(group, state.columns))
        scores = yield from ask._ask_scores(number, vector, rows, "scores")
        notes.readings.append(Reading(number, everyone, group, packing.read(scores, group)))
    yield from ask.masked_sum(terms.rounds, nothing)


def unwhitened(whitened: FloatArray, l2: float) -> FloatArray:
    """Her columns, from all whitened ones: their products tell what whitened them.

    ``X~^T X~ / 4n = I - l2 (L^T L)^-1``, and L is the one lower triangle with this ``L^T L``.
    """
    rows, columns = whitened.shape
    square = np.linalg.inv((np.eye(columns) - whitened.T @ whitened / (4 * rows)) / l2)
    turned = np.linalg.cholesky(((square + square.T) / 2)[::-1, ::-1])
    values: FloatArray = whitened @ turned.T[::-1, ::-1].T
    return values


# --- Bob, where he returns the gradient: weights of his choice ----------------------------------


Turn: TypeAlias = tuple[int, IndexArray]
"""The time of a batch, an epoch (in ``hybrid`` an iteration), and its rows."""


class Steering(Protocol):
    """Which weights Bob gives Alice, and what he makes of the scores."""

    def target(self, iteration: int, turn: Turn) -> FloatArray:
        """The weights for the scores of a batch."""

    def read(
        self, iteration: int, turn: Turn, scores: FloatArray, weights: FloatArray
    ) -> Reading | None:
        """What scores under these weights tell him."""


@dataclass(frozen=True)
class SingleColumn:
    """One column in each epoch (``by_iteration``: in each batch)."""

    columns: int
    by_iteration: bool = False

    def _column(self, iteration: int, turn: Turn) -> int:
        return (iteration if self.by_iteration else turn[0]) % self.columns

    def target(self, iteration: int, turn: Turn) -> FloatArray:
        weights = np.zeros(self.columns)
        weights[self._column(iteration, turn)] = 1.0
        return weights

    def read(
        self, iteration: int, turn: Turn, scores: FloatArray, weights: FloatArray
    ) -> Reading | None:
        column = self._column(iteration, turn)
        if not weights[column]:
            return None
        return Reading(turn[0], turn[1], [column], (scores / weights[column])[:, None])


@dataclass
class LearntStack:
    """One epoch to learn what values the columns have, and then as many in a score as fit.

    Args:
        first: What is asked in the first epoch.
        rows: How many rows there are.
        unit: What scores are rounded to.
        largest: The largest weight that one step sets.
    """

    first: SingleColumn
    rows: int
    unit: float
    largest: float
    seen: list[Reading] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)

    def target(self, iteration: int, turn: Turn) -> FloatArray:
        if not turn[0]:
            return self.first.target(iteration, turn)
        self.stacks = self.stacks or stacked(self._columns(), self.unit, self.largest)
        return self._due(turn).vector(self.first.columns)

    def read(
        self, iteration: int, turn: Turn, scores: FloatArray, weights: FloatArray
    ) -> Reading | None:
        if not turn[0]:
            reading = self.first.read(iteration, turn, scores, weights)
            self.seen += [] if reading is None else [reading]
            return reading
        due = self._due(turn)
        columns = [seen.column for seen in due.columns]
        return Reading(turn[0], turn[1], columns, due.read(scores, weights))

    def _due(self, turn: Turn) -> Stack:
        return self.stacks[(turn[0] - 1) % len(self.stacks)]

    def _columns(self) -> list[Seen]:
        return [Seen.of(column, values, self.rows) for column, values in _by_column(self.seen)]


def _by_column(readings: list[Reading]) -> list[tuple[int, FloatArray]]:
    """All that was read of each column."""
    parts: dict[int, list[FloatArray]] = {}
    for reading in readings:
        for place, column in enumerate(reading.columns):
            parts.setdefault(column, []).append(reading.values[:, place])
    return [(column, np.concatenate(part)) for column, part in sorted(parts.items())]


def steering_bob(inputs: BobInputs[Any], notes: Notebook) -> Program[None]:
    """Makes Alice's weights a single column's."""
    yield from _steering_bob(inputs, notes, lambda columns, _: SingleColumn(columns))


def stacking_bob(inputs: BobInputs[Any], notes: Notebook) -> Program[None]:
    """As many columns in a score as fit, once he knows what values they have."""

    def steering(columns: int, largest: float) -> LearntStack:
        unit = 2.0**-inputs.terms.score_grid.bits
        first = SingleColumn(columns, by_iteration=True)
        return LearntStack(first, inputs.features.rows, unit, largest)

    yield from _steering_bob(inputs, notes, steering)


def _steering_bob(
    inputs: BobInputs[Any], notes: Notebook, steering_of: Callable[[int, float], Steering]
) -> Program[None]:
    """Returns, in place of the gradient, what makes Alice's weights those of his choice."""
    features, terms = inputs.features, inputs.terms
    state = yield from greet(inputs)
    state, key = yield from with_key(inputs, state)
    hidden = terms.agreement.subset_size is not None
    state = state if hidden else (yield from with_seed(inputs, state))
    rows_of = _named_rows if hidden else _planned_rows
    turns = rows_of(terms, state.seed, features.rows)
    weights, d = np.zeros(state.columns), state.columns
    sizes = terms.capacity(state.magnitude_bits, features.rows)
    most = 2.0 ** (sizes.product_bits - terms.product_grid.bits - 1)
    largest = most * terms.rate.at(len(turns) - 1) / terms.longest_product
    steering = steering_of(d, largest / 2)
    for iteration, turn in enumerate(turns):
        _, rows = turn
        if hidden:
            bits = Released.unprotected(np.ones(len(rows), dtype=np.int64))
            yield from send(HiddenBatchOffer(iteration, RowNumbers(rows), bits))
        scores = yield from receive_scores(iteration, len(rows))
        if weights.any():
            reading = steering.read(iteration, turn, scores, weights)
            notes.readings += [] if reading is None else [reading]
        target = weights
        if iteration + 1 < len(turns):
            target = steering.target(iteration + 1, turns[iteration + 1])
        step = terms.rate.at(iteration) / (terms.agreement.sgd.batch_size if hidden else len(rows))
        total = np.rint((target - weights) / step * 2.0**terms.product_grid.bits).astype(np.int64)
        nothing = np.zeros(len(rows), dtype=np.int64)
        entropy = inputs.entropy.fork(f"encryption {iteration}")
        yield from send(EncryptedResidues(iteration, key.encrypt(nothing, d, entropy)))
        answer = yield from receive(MaskedGradient)
        # Of residues of zero she returns her mask alone; what is added to it is her gradient.
        masks = key.decrypt(answer.answer, len(rows))
        modulus = key.public.modulus
        moved = tuple((mask + int(part)) % modulus for mask, part in zip(masks, total, strict=True))
        yield from send(RevealedGradient(iteration, Released.unprotected(moved)))
        weights = weights + step * terms.product_grid.decode(total)


def _planned_rows(terms: Terms, seed: bytes, rows: int) -> list[tuple[int, IndexArray]]:
    return [(batch.epoch, batch.rows) for batch in terms.plan(seed, rows)]


def _named_rows(terms: Terms, seed: bytes, rows: int) -> list[tuple[int, IndexArray]]:
    """The same rows in every iteration: as many as the agreed subset has."""
    iterations = terms.rounds * terms.per_epoch(rows)
    subset = np.arange(terms.agreement.subset_size or 0, dtype=np.int64)
    return [(iteration, subset) for iteration in range(iterations)]


# --- Bob, where he tells residues: weights that are single rows ---------------------------------


_LOUD = 1 << 20


def pointing_bob(inputs: BobInputs[Any], notes: Notebook) -> Program[IndexArray]:
    """Adds one row to Alice's weights in each epoch: scores become inner products with it.

    Returns:
        The rows, by epoch. ``notes`` get the inner products with that of the epoch before, as
        columns of their own.
    """
    features, terms = inputs.features, inputs.terms
    state = yield from greet(inputs)
    state = yield from with_seed(inputs, state)
    plan, event = terms.plan(state.seed, features.rows), inputs.mechanism.event
    previous, references, scale = np.zeros(features.rows), list[int](), 1.0
    for batch in plan:
        scores = yield from receive_scores(batch.iteration, len(batch.rows))
        if batch.epoch and batch.epoch <= state.columns:
            products = (scores - previous[batch.rows]) / scale
            notes.readings.append(
                Reading(batch.epoch, batch.rows, [batch.epoch - 1], products[:, None])
            )
            previous[batch.rows] = scores
        residues = np.zeros(len(batch.rows), dtype=np.int64)
        if plan.ends_epoch(batch):
            # Far above any residue, as noise may be: it drowns the rounding of the scores.
            residues[0] = _LOUD << terms.agreement.residue_bits
            references.append(int(batch.rows[0]))
            scale = _LOUD * terms.rate.at(batch.iteration) / len(batch.rows)
        yield from send(NoisyResidues(batch.iteration, Released(residues, event)))
    return np.array(references)


def columns_from_known_rows(setup: Setup) -> FloatArray:
    """All columns of all rows, by a Bob who knows those of as many rows as there are columns."""
    notes, columns = Notebook(setup.columns.shape), setup.columns.shape[1]
    _, references = run_pair(setup.alice(), pointing_bob(setup.bob_inputs(), notes))
    known = setup.columns[references[:columns]]
    solved: FloatArray = np.linalg.solve(known, notes.estimate(columns).T).T.astype(np.float64)
    return solved


# --- Alice, where gradients are returned: labels in place of a product ---------------------------


@dataclass(frozen=True)
class Labels:
    """What Alice had decrypted: the labels of some rows, by epoch (by iteration in ``hybrid``)."""

    time: int
    rows: IndexArray
    values: IntArray


_SURE = 1000.0
"""A score beyond which no score of Bob's own counts: his residue is the label less one."""


def saturating_alice(inputs: AliceInputs, seen: list[Labels]) -> Program[None]:
    """Scores that make residues 0 or -1, and powers of two that put them side by side.

    One entry of one answer holds the labels of a batch; she needs no more columns than one.
    """
    features, terms = inputs.features, inputs.terms
    state = yield from greet_bob(inputs, magnitude_bits(features.largest))
    state, key = yield from key_of_bob(inputs, state)
    state = yield from seed_with_bob(inputs, state)
    for batch in terms.plan(state.seed, features.rows):
        size = len(batch.rows)
        yield from send(PartialScores(batch.iteration, np.full(size, _SURE)))
        matrix = np.zeros((len(features.columns), size), dtype=np.int64)
        matrix[0] = 1 << np.arange(size)
        product = key.prepare(matrix)
        total = yield from unmasked_product(key, product, batch.iteration, inputs.entropy)
        zeros = -total[0] >> terms.agreement.residue_bits
        seen.append(Labels(batch.epoch, batch.rows, 1 - (zeros >> np.arange(size) & 1)))


@dataclass(frozen=True)
class Oracle:
    """Single residues, decrypted by Bob: two in each entry of an answer.

    Args:
        inputs: What Alice's program is run with.
        width: The bits of a residue and its sign.
    """

    inputs: AliceInputs
    width: int

    @classmethod
    def of(cls, inputs: AliceInputs) -> Oracle:
        terms = inputs.terms
        return cls(inputs, terms.agreement.residue_bits + terms.headroom_bits + 1)

    @property
    def claimed_bits(self) -> int:
        """Values so large that the agreed sizes have room for two residues in an entry."""
        return self.width - self.inputs.terms.agreement.feature_bits

    @property
    def places(self) -> int:
        """How many residues an answer holds."""
        return 2 * len(self.inputs.features.columns)

    def ask(
        self, key: PublicKey, rows: int, places: IndexArray, iteration: int
    ) -> Program[IntArray]:
        """The residues at these places of a batch; scores of zero go out."""
        columns = len(self.inputs.features.columns)
        yield from send(PartialScores(iteration, np.zeros(rows)))
        low, high = places[:columns], places[columns:]
        matrix = np.zeros((columns, rows), dtype=np.int64)
        matrix[np.arange(len(low)), low] = 1
        matrix[np.arange(len(high)), high] = 1 << self.width
        product, entropy = key.prepare(matrix), self.inputs.entropy
        total = yield from unmasked_product(key, product, iteration, entropy)
        half = 1 << (self.width - 1)
        first = ((total + half) & ((1 << self.width) - 1)) - half
        second = (total - first) >> self.width
        return np.concatenate([first[: len(low)], second[: len(high)]])


def oracle_alice(inputs: AliceInputs, seen: list[Labels]) -> Program[None]:
    """Has Bob decrypt single residues, whose signs are the labels."""
    oracle, features = Oracle.of(inputs), inputs.features
    state = yield from greet_bob(inputs, oracle.claimed_bits)
    state, key = yield from key_of_bob(inputs, state)
    state = yield from seed_with_bob(inputs, state)
    for batch in inputs.terms.plan(state.seed, features.rows):
        size = len(batch.rows)
        # Other rows in each epoch, where a batch has more than an answer holds.
        places = (np.arange(min(oracle.places, size)) + batch.epoch * oracle.places) % size
        residues = yield from oracle.ask(key, size, places, batch.iteration)
        labels = (residues > 0).astype(np.int64)
        seen.append(Labels(batch.epoch, batch.rows[places], labels))


def hidden_oracle_alice(inputs: AliceInputs, seen: list[Labels]) -> Program[None]:
    """The same in ``hybrid``, for rows that she does not have yet.

    A row that is not of the batch has a residue of zero, and she asks for it again.
    """
    oracle, features, terms = Oracle.of(inputs), inputs.features, inputs.terms
    state = yield from greet_bob(inputs, oracle.claimed_bits)
    state, key = yield from key_of_bob(inputs, state)
    known = np.zeros(features.rows, dtype=bool)
    for iteration in range(terms.rounds * terms.per_epoch(features.rows)):
        offer = yield from receive(HiddenBatchOffer)
        asked = offer.subset[offer.response.value.astype(bool)]
        places = np.argsort(known[asked], kind="stable")[: oracle.places]
        residues = yield from oracle.ask(key, len(asked), places, iteration)
        of_batch = residues != 0
        rows = asked[places[of_batch]]
        known[rows] = True
        seen.append(Labels(iteration, rows, (residues[of_batch] > 0).astype(np.int64)))


def packing_alice(inputs: AliceInputs, seen: list[Labels]) -> Program[None]:
    """In ``newton``: powers of two in place of her table, which put rows side by side in a sum.

    She claims values so large that the agreed sizes have room for them. All is read in the first
    pass; in the later ones Bob's numbers hold no more of the labels than what is new in them.
    """
    agreed = inputs.terms.agreement
    rows, columns = inputs.features.values.shape
    claimed = _most_claimed(inputs)
    scales = table_scales(agreed, rows, columns, claimed)
    state = yield from greet_bob(inputs, claimed)
    # A number and its sign, up to eight times what numbers are on average.
    width = math.ceil(math.log2(2.0**scales.residue_bits / rows)) + 4
    places = 1 + (scales.feature_bits + claimed - 1) // width
    asked = np.arange(min(rows, places * columns))
    place, column = np.divmod(asked, columns)
    crafted = np.zeros((rows, columns), dtype=np.int64)
    crafted[asked, column] = 1 << (width * place)
    table = WhitenedTable(crafted, Whitening.fit(inputs.features.values, 1.0), scales, claimed)
    key = yield from KeysOfBob(inputs.terms, table.ring, None, state.key).receive()
    prepared = EncodedTable(crafted, inputs.table_memory)
    for number in range(agreed.rounds + 1):
        sums = yield from _unmasked_sum(inputs.terms, key, prepared, table, number, inputs.entropy)
        if number == 0:
            numbers = _unpacked(sums, width, places).reshape(-1)[: len(asked)]
            seen.append(Labels(number, asked, (numbers > 0).astype(np.int64)))
        if number < agreed.rounds:
            yield from send(PartialScores(number, np.zeros(rows)))


def inventing_alice(inputs: AliceInputs, seen: list[Labels]) -> Program[None]:
    """The same with columns that she makes up: as many as it takes to read every row."""
    names = tuple(f"made up {number}" for number in range(inputs.features.rows))
    values = np.zeros((len(names), len(names)))
    more = replace(inputs.features, columns=names, values=values)
    return (yield from packing_alice(replace(inputs, features=more), seen))


def _most_claimed(inputs: AliceInputs) -> int:
    """The largest values that she can claim to have."""
    rows, columns = inputs.features.values.shape
    claimed = 1
    while True:
        try:
            table_scales(inputs.terms.agreement, rows, columns, claimed + 1)
        except ConfigError:
            return claimed
        claimed += 1


def _unpacked(sums: IntArray, width: int, places: int) -> IntArray:
    """The signed numbers of ``width`` bits that each sum holds: places by sums."""
    numbers, half = np.empty((places, len(sums)), dtype=np.int64), 1 << (width - 1)
    for place in range(places):
        numbers[place] = ((sums + half) & ((1 << width) - 1)) - half
        sums = (sums - numbers[place]) >> width
    return numbers


# --- Alice, where nothing reaches her in clear: she can spoil the scores -------------------------


@dataclass(frozen=True)
class Answers:
    """How an Alice of ``sealed`` with ``newton`` answers in a pass.

    Args:
        summed: The table whose product with Bob's direction she returns, from her own.
        scored: The table of which she returns scores.
        added: What she adds to the scores, given their number.
    """

    summed: Callable[[int, IntArray], IntArray] = lambda _, own: own
    scored: Callable[[int, IntArray], IntArray] = lambda _, own: own
    added: Callable[[int, int], IntArray] = lambda _, rows: np.zeros(rows, dtype=np.int64)


@dataclass(frozen=True)
class Added(ZeroSum):
    """Numbers in the place of masks."""

    numbers: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __bool__(self) -> bool:
        return True

    def fork(self, purpose: str) -> Added:
        return self

    def over(self, values: IntArray) -> IntArray:
        return values + self.numbers


def answering_alice(inputs: AliceInputs, answers: Answers) -> Program[None]:
    """Her program with other answers; what Bob sees of its course is the same."""
    state, table = yield from greet_with_table(inputs)
    _, keys = yield from open_sealed_table(inputs, table, state)
    passes, rows = inputs.terms.rounds, len(table.whole)
    for number in range(passes + 1):
        drawn = table.ring.draw(table.whole.shape[1], inputs.entropy.fork(f"masks {number}"))
        summed, scored = (
            replace(table, whole=chosen(number, table.whole))
            for chosen in (answers.summed, answers.scored)
        )
        yield from TablePasses(inputs, summed, keys, NO_MASKS).answer_sum(number, drawn)
        if number < passes:
            added = Added(numbers=answers.added(number, rows))
            own = table.ring.centred(-drawn)
            yield from TablePasses(inputs, scored, keys, added).answer_scores(number, own)


def _at(row: int, size: int, *passes: int) -> Callable[[int, int], IntArray]:
    """This much more in a row's score, in some passes."""
    return lambda number, rows: np.where(np.arange(rows) == row, size * (number in passes), 0)


def _without(row: int, own: IntArray) -> IntArray:
    return np.where(np.arange(len(own))[:, None] == row, 0, own)


def _reversed_from(first: int) -> Callable[[int, IntArray], IntArray]:
    """Her rows in another order from a pass on: another table of the same sizes."""
    return lambda number, own: own[::-1] if number >= first else own


def _powers(number: int, own: IntArray) -> IntArray:
    """Powers of two in place of a table, which put rows side by side."""
    powers = 1 << (np.arange(len(own)) % 12)
    return np.asarray(powers[:, None] * (np.arange(own.shape[1]) == 0), dtype=own.dtype)


SEALED_ALICES: dict[str, tuple[Answers, bool]] = {
    "keeps to the protocol": (Answers(), True),
    "adds one unit to one score of one row in one pass": (Answers(added=_at(7, 1, 3)), False),
    "adds the same to one row's score in every pass": (
        Answers(added=_at(7, 1 << 20, *range(99))),
        False,
    ),
    "leaves a row out in one pass": (
        Answers(*2 * (lambda number, own: _without(7, own) if number == 3 else own,)),
        False,
    ),
    "takes another table from the sixth pass on": (Answers(*2 * (_reversed_from(5),)), False),
    "takes another table for scores than for sums": (Answers(scored=_reversed_from(0)), False),
    "leaves a row out in every pass": (Answers(*2 * (lambda _, own: _without(7, own),)), True),
    "takes another table in every pass": (Answers(*2 * (_reversed_from(0),)), True),
    "takes powers of two for a table in every pass": (Answers(*2 * (_powers,)), True),
}
"""Alices, and whether the symmetry check passes them."""


def symmetry_of(answers: Answers, setup: Setup) -> Symmetry:
    """What Bob's own program finds of this Alice, once the last message is sent."""
    _, bob = run_pair(answering_alice(setup.alice_inputs(), answers), setup.bob())
    assert bob.opened is not None
    opened: OpenedPasses = bob.opened
    return opened.symmetry()


# --- Playing them -------------------------------------------------------------------------------

Deviating: TypeAlias = Callable[[BobInputs[Any], Notebook], Program[None]]


def read_by(bob: Deviating, setup: Setup) -> Notebook:
    """What this Bob reads from Alice's own program; her program ends as ever."""
    notes = Notebook(setup.columns.shape)
    run_pair(setup.alice(), bob(setup.bob_inputs(), notes))
    return notes


Curious: TypeAlias = Callable[[AliceInputs, list[Labels]], Program[None]]


def labels_of(alice: Curious, setup: Setup, *until: int) -> list[float]:
    """The shares of labels that this Alice has of Bob's own program up to each of these times."""
    seen: list[Labels] = []
    run_pair(alice(setup.alice_inputs(), seen), setup.bob())
    return [_share_of_labels(setup.data.labels_train.values, seen, time) for time in until]


def _share_of_labels(truth: LabelArray, seen: list[Labels], until: int) -> float:
    guess = np.full(len(truth), -1)
    for part in seen:
        if part.time <= until:
            guess[part.rows] = part.values
    return float(np.mean(guess == truth))


# --- Bob, honest and curious: her columns up to a rotation ---------------------------------------


@dataclass(frozen=True)
class Scored:
    """What an honest Bob has after a training of all rows in each batch.

    Args:
        scores: Alice's part of the scores, an epoch each row.
        residues: His own, likewise.
        step: The learning rate by the number of rows.
        gram: ``X X^T``, the truth.
        columns: How many she has.
    """

    scores: FloatArray
    residues: FloatArray
    step: float
    gram: FloatArray
    columns: int

    @classmethod
    def of(cls, seed: int = 11) -> Scored:
        """40 rows of three columns, 60 epochs."""
        rows, columns, epochs, rate = 40, 3, 60, 1.0
        tables = Tables.make(rows=rows, alice=columns, seed=seed)
        agreed = agreement(mechanism="none", batch_size=rows, epochs=epochs, learning_rate=rate)
        ended = talk(tables, agreed)
        scores = np.empty((epochs, rows))
        for at, step in enumerate(ended.seen(Progress)):
            scores[at, step.rows] = step.scores
        residues = np.array([residue(row, tables.labels.values) for row in scores])
        truth = tables.alice.values @ tables.alice.values.T
        return cls(scores, residues, rate / rows, truth, columns)

    def error(self, gram: FloatArray) -> float:
        """How far an estimate is from the truth, relative to its size."""
        return float(np.linalg.norm(gram - self.gram) / np.linalg.norm(self.gram))


def gram_of_differences(bob: Scored) -> FloatArray:
    """``z_(t+1) - z_t = step G r_t``, by least squares in the span of the differences.

    The span of as many differences as Alice has columns is her column space U, and then
    ``U^T G R = (U^T G U) (U^T R)``.
    """
    products, moves = np.diff(bob.scores, axis=0).T / bob.step, bob.residues[:-1].T
    basis = np.linalg.svd(products, full_matrices=False)[0][:, : bob.columns]
    inner = np.linalg.lstsq((basis.T @ moves).T, (basis.T @ products).T, rcond=None)[0].T
    gram: FloatArray = basis @ inner @ basis.T
    return gram


# --- Either, with a public key whose uniform half is of its own choice ---------------------------


class ChosenHalf(PublicHalf):
    """In place of a uniform half 1: it re-randomises by a handful of units."""

    def polynomials(self, seal: Seal) -> WordArray:
        return np.stack([self.first, np.ones_like(self.first)])


def as_chosen(half: PublicHalf) -> PublicHalf:
    """A key with a half of its owner's choice, which no message can state."""
    return ChosenHalf(half.first, half.seed)


def values_guessed(half: Callable[[PublicHalf], PublicHalf], values: int = 16) -> float:
    """The share of yes-or-no values of the peer's table that the owner of a key guesses right.

    It knows all of the matrix but one value, and compares the second polynomial of the answer with
    that of either guess: without a uniform half it is a function of the matrix alone.
    """
    ring, entropy = Wrapping.with_modulus(59, 16, 32), KeyedEntropy.from_seed(3)
    key = BfvScheme().generate(128, ring, entropy)
    public = BfvPublicKey(key._seal, ring, half(key.public._half))
    table = entropy.fork("table").integers(2, 32 * 15).astype(np.int64).reshape(15, 32)
    right = 0
    for column in range(values):
        vector = key.encrypt(ring.draw(32, entropy), 15, entropy)
        guesses = [table.copy(), table.copy()]
        guesses[0][3, column], guesses[1][3, column] = 0, 1
        mask = public.mask_of(ring.draw(15, entropy), entropy)
        answer = public.masked_product(public.prepare(table), vector, mask, entropy)
        distances = [_distance(public, guess, vector, answer) for guess in guesses]
        right += int(np.argmin(distances)) == table[3, column]
    return right / values


def _distance(
    public: BfvPublicKey, guess: IntArray, vector: EncryptedVector, answer: EncryptedAnswer
) -> float:
    """How far the answer's second polynomial is from that of a guess, modulo the first prime."""
    layout, prime = Layout.for_shape(*guess.shape), public._seal.primes[0]
    pieces = public._pieces(vector, layout)
    product = public._sum_of_products(public.prepare(guess).content[0], pieces)
    public.server_ops.seal.evaluator.transform_from_ntt_inplace(product)
    bare = public.server_ops.written(product, layout.places(len(guess)))
    # After the entries of the first polynomial, which has masks on it, of eight bytes each.
    one, two = (
        np.frombuffer(data, "<u8", DEGREE, offset=8 * len(guess)).astype(object)
        for data in (bare, answer.data)
    )
    apart = (one - two) % prime
    return float(np.minimum(apart, prime - apart).sum())


def with_half_of_its_own(program: Program[R]) -> Program[R]:
    """The program, but for the uniform half of every key that it offers."""
    step = next(program)
    try:
        while True:
            if isinstance(step, Send) and isinstance(step.message, KeyOffer):
                data = step.message.public_key
                step = Send(KeyOffer(PublicBytes(data[:-KEY_BYTES] + bytes(KEY_BYTES))))
            step = program.send((yield step))
    except StopIteration as end:
        result: R = end.value
        return result


def bob_table() -> list[str]:
    """What a deviating Bob reads of fifteen columns of breast-cancer, by epoch."""
    setup = Setup.of(mechanism="none", epochs=17)
    notes = read_by(steering_bob, setup)
    shares = [f"{notes.recovered(setup.columns, at - 1):.1%}" for at in (1, 3, 5, 6, 15, 16)]
    return [f"| `none` | {' | '.join(shares)} |"]


def census_table() -> list[str]:
    """What a deviating Bob reads of the census' 81 columns, by epoch."""
    setup = Setup.of(mechanism="none", dataset="census-income", alice_columns="all", epochs=8)
    notes = read_by(stacking_bob, setup)
    shares = [f"{notes.recovered(setup.columns, epoch):.4%}" for epoch in range(8)]
    return [f"| `none` | {' | '.join(shares)} |"]


def alice_figures() -> list[str]:
    """What a deviating Alice has of the labels after one epoch, where gradients are returned."""
    plain = [Setup.of(mechanism="none", epochs=1, alice_columns=columns) for columns in ("half", 1)]
    flipped = Setup.of(mechanism="label-rr", epsilon=1.0, epochs=1)
    shares = [labels_of(saturating_alice, setup, 0) for setup in plain]
    shares.append(labels_of(oracle_alice, flipped, 0))
    return [f"{share:.1%}" for (share,) in shares]


def table_figures() -> list[str]:
    """What a deviating Alice has of the labels after the first pass of newton."""
    whole = Setup.of(solver="newton", mechanism="none")
    flipped = Setup.of(solver="newton", mechanism="label-rr", epsilon=1.0)
    shares = labels_of(packing_alice, whole, 0)
    shares += labels_of(inventing_alice, whole, 0) + labels_of(inventing_alice, flipped, 0)
    return [f"{share:.1%}" for share in shares]


def symmetry_table() -> list[str]:
    """What Bob's symmetry check finds of an Alice who deviates."""
    setup = Setup.of(mechanism="sealed", solver="newton")
    tested = {name: symmetry_of(answers, setup) for name, (answers, _) in SEALED_ALICES.items()}
    return [
        f"| {name} | {'passed' if one.passed else 'failed'} | {one.largest:,} |"
        for name, one in tested.items()
    ]


def main() -> None:
    print("a deviating Bob: recovered by epoch 1, 3, 5, 6, 15, 16")
    print(*bob_table(), sep="\n")
    print("the same of the census' 81 columns: recovered by epoch 1 to 8")
    print(*census_table(), sep="\n")
    table = Setup.of(mechanism="sealed", solver="newton")
    whitened = read_by(whole_table_bob, table).estimate(7)
    error = unwhitened(whitened, table.terms.agreement.l2) - table.columns
    print("sealed, newton: worst error of all columns after 8 passes")
    print(f"  {np.abs(error).max():.3f}")
    hybrid = Setup.of(mechanism="hybrid", epochs=1)
    named, columns = hybrid.terms.agreement.subset_size or 0, hybrid.columns.shape[1]
    part = read_by(steering_bob, hybrid).estimate(columns)[:named] - hybrid.columns[:named]
    print(f"hybrid: {named} rows of his choice, worst error after {columns + 1} iterations:")
    print(f"  {np.abs(part).max():.1e}")
    known = Setup.of(mechanism="add", epsilon=1.0, epochs=16)
    print("add, 15 known rows, 16 epochs: worst error")
    print(f"  {np.abs(columns_from_known_rows(known) - known.columns).max():.1e}")
    print("a deviating Alice: none (15 columns, 1 column), label-rr at epsilon 1, after one epoch")
    print("  " + ", ".join(alice_figures()))
    print("newton, after one pass: none with 15 columns, with made-up ones; label-rr with these")
    print("  " + ", ".join(table_figures()))
    print(
        "a table's values guessed by a key's owner who chooses its uniform half, and who does not"
    )
    print(f"  {values_guessed(as_chosen):.1%}, {values_guessed(lambda half: half):.1%}")
    print("sealed, newton: Alices and the symmetry check, largest difference in units")
    print(*symmetry_table(), sep="\n")
    print("hybrid: after one iteration, and after 1, 2, 3, 5, 10 epochs")
    hidden = Setup.of(mechanism="hybrid", epochs=10)
    ends = [epochs * hidden.terms.per_epoch(len(hidden.columns)) - 1 for epochs in (1, 2, 3, 5, 10)]
    shares = labels_of(hidden_oracle_alice, hidden, 0, *ends)
    print("  " + ", ".join(f"{share:.1%}" for share in shares))


if __name__ == "__main__":
    main()
