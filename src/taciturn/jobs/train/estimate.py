"""Duration and traffic of a training, measured on a sample of its rows.

The programs of both sides run against each other in this process, for a short while:

- Mini-batches: the first iterations, each further one costs what those did on average; and the
  scores of all rows at the end.
- Whole tables: a session of a few passes, over all rows of a small table. Of a large one two
  samples are measured and extrapolated: seconds by rows, and bytes by ciphertexts, whose number
  grows more slowly than the rows while tiles become narrower (``crypto.bfv.layout``). A step over a
  block of rows costs what a pass over as many does.

A side that has only its own table passes the number of the other side's columns, and uniform
numbers replace them: no cost depends on values.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.base import (
    DEFAULT_TABLE_MEMORY,
    TableSize,
)
from taciturn.crypto.bfv.layout import Tiling
from taciturn.crypto.bfv.parameters import DEGREE
from taciturn.crypto.bfv.workers import LocalEngine
from taciturn.crypto.registry import on_engine
from taciturn.crypto.signatures import KeyIdentity, fingerprint
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_star
from taciturn.families.registry import FAMILIES
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.parallel import one_thread
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import TRAININGS as ALICE
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.alice.scoring import RevealedResponder, answer_rows
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import TRAININGS as BOB
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.bob.scoring import RevealedRequester, ask_rows
from taciturn.protocol.events import Event, Progress
from taciturn.protocol.messages import Role
from taciturn.protocol.mutual_sums import LOSSES
from taciturn.protocol.outcome import HeldOut
from taciturn.protocol.party import compare_held_out
from taciturn.protocol.steps import ONLY, Program
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import Estimate
from taciturn.rng import KeyedEntropy

# A second or two of work. With more values than this, products are shared among processes, as
# those of the whole table are.
MOST_VALUES = 4 << 20
# With shared scores the sigmoid of each row costs more than its columns.
MOST_SHARED_ROWS = 1 << 13
SMALLER = 4
# The first pass also encodes the table, and in the last one Bob searches longer.
PASSES = 3
# Of mini-batches. An iteration costs the same with more rows.
BATCH_ROWS, BATCH_SECONDS, LEAST_ITERATIONS = 1 << 16, 1.0, 3

Columns: TypeAlias = FeatureTable | int
"""A party's table, or the number of its columns."""


def estimate_cost(
    terms: Terms,
    rows: int,
    alices: Sequence[Columns],
    bob: Columns,
    *,
    held_out: int = 0,
    table_memory: int = DEFAULT_TABLE_MEMORY,
    cores: int | None = None,
    most_values: int = MOST_VALUES,
) -> Estimate:
    """Duration and traffic of a training, all parties in one process.

    ``held_out`` is the number of held-out rows. A whole table of more than ``most_values`` values
    is sampled. ``table_memory`` is in bytes, and None for ``cores`` uses all.
    """
    terms = replace(terms, scheme=on_engine(terms.scheme, LocalEngine(cores)))
    sampler = _Sampler(terms, rows, alices, bob, held_out, table_memory, most_values)
    with one_thread():
        cost = sampler.whole_tables() if terms.whole_table else sampler.batches()
    seconds, to_alice, to_bob = cost.tolist()
    return Estimate(sampler.iterations, seconds, round(to_alice), round(to_bob))


@dataclass(frozen=True, slots=True)
class _Sampler:
    terms: Terms
    rows: int
    alices: Sequence[Columns]
    bob: Columns
    held_out: int
    table_memory: int
    most_values: int
    entropy: KeyedEntropy = field(default_factory=KeyedEntropy.from_system)
    watches: dict[int, _Watch] = field(default_factory=dict)

    def batches(self) -> FloatArray:
        enough = max(BATCH_ROWS, LEAST_ITERATIONS * self.terms.longest_product)
        alice_inputs, bob_inputs = self._inputs(self.terms, min(self.rows, enough))
        train = ALICE[self.terms.conversation]
        alices = {name: train(inputs) for name, inputs in alice_inputs.items()}
        watch = _Watch(BATCH_SECONDS)
        watch.run(alices, BOB[self.terms.conversation](bob_inputs))
        return watch.extended(self.iterations) + self._scoring()

    def _scoring(self) -> FloatArray:
        """The scores of all rows, which travel in clear: those of one Alice after another's."""
        watch, key, grid = _Watch(np.inf), bytes(32), self.terms.score_grid
        for columns in self.alices:
            for rows in filter(None, (self.rows, self.held_out)):
                alice_table, bob_table = self._table(columns, rows), self._table(self.bob, rows)
                none, nothing = (np.zeros(len(table.columns)) for table in (alice_table, bob_table))
                watch.run(
                    {ONLY: answer_rows(RevealedResponder(none, key, grid), alice_table)},
                    ask_rows(RevealedRequester(nothing), bob_table),
                )
            if self.held_out:
                # Before the training the sides compare which rows are held out.
                watch.run(
                    {ONLY: compare_held_out("alice", self.terms, alice_table)},
                    compare_held_out("bob", self.terms, bob_table),
                )
        return watch.last

    def whole_tables(self) -> FloatArray:
        if not self.terms.shares_scores:
            return self._passes(self.rows, self.terms.rounds)
        columns = sum(map(_width, [*self.alices, self.bob]))
        schedule = TableSchedule(self.rows, columns, self.terms.rounds)
        blocks = len(schedule.blocks)
        parts = sum(schedule.block(number) is not None for number in range(schedule.steps))
        cost = self._passes(self.rows, schedule.steps - parts)
        if blocks:
            # What further passes over the rows of a block would cost.
            rows = self.rows // blocks
            cost += self._passes(rows, schedule.steps) - self._passes(rows, schedule.steps - parts)
        return cost

    def _passes(self, rows: int, passes: int) -> FloatArray:
        """Cost of so many passes over so many rows."""
        most = self.most_values // max(1, sum(map(_width, self.alices)))
        if self.terms.shares_scores:
            most = min(most, MOST_SHARED_ROWS)
        if rows <= most:
            return self._measured(rows, passes)
        few, many = most // SMALLER, most
        factors = (self._growth(rows) - self._growth(many)) / (
            self._growth(many) - self._growth(few)
        )
        cost = self._measured(many, passes)
        # On a busy machine few rows may take longer than many.
        return cost + factors * np.maximum(cost - self._measured(few, passes), 0.0)

    @property
    def iterations(self) -> int:
        return self.terms.iterations(self.rows)

    def _measured(self, rows: int, passes: int) -> FloatArray:
        agreed = self.terms.agreement
        # The last pass is none like the others; with shared scores and enough rows the last two
        # sum a loss.
        unlike = LOSSES if self.terms.shares_scores else 1
        if rows not in self.watches:
            few = agreed.with_rounds(min(agreed.rounds, PASSES - 1 + unlike))
            alice_inputs, bob_inputs = self._inputs(replace(self.terms, agreement=few), rows)
            watch = self.watches[rows] = _Watch(np.inf)
            watch.run(
                {name: alice_program(inputs) for name, inputs in alice_inputs.items()},
                bob_program(bob_inputs),
            )
        return self.watches[rows].extended(passes, unlike)

    def _growth(self, rows: int) -> FloatArray:
        """Sizes to which seconds, bytes to Alice and bytes to Bob are proportional."""
        parties = len(self.alices)
        # With shared scores most of the traffic is that of the sigmoid: numbers for each row.
        if self.terms.shares_scores or not self.terms.scheme.protects:
            return np.full(3, rows, dtype=np.float64)
        tilings = [Tiling.for_size(TableSize(rows, _width(columns))) for columns in self.alices]
        # A vector has a ciphertext for each tile of its side. So has an answer, of whose second
        # polynomial only the entries are sent; a score in clear takes half as much as an entry.
        row_tiles = sum(tiling.rows.tiles for tiling in tilings)
        column_tiles = sum(tiling.columns.tiles for tiling in tilings)
        entries = parties * rows / DEGREE
        if self.terms.shares_weights:
            both = row_tiles + column_tiles
            return np.array([rows, both, both + entries], dtype=np.float64)
        return np.array([rows, row_tiles, column_tiles + entries / 2], dtype=np.float64)

    def _inputs(self, terms: Terms, rows: int) -> tuple[dict[str, AliceInputs], BobInputs[Any]]:
        names = tuple(terms.agreement.parties or [ONLY])
        identities = {name: KeyIdentity.simulated(name, self.entropy.fork(name)) for name in names}
        # Scores after each epoch are not counted: on made-up labels they could end the training.
        bob_table = self._table(self.bob, rows)
        # Columns that stand in for a peer's have no intercept, which costs nothing.
        changes = {"evaluate": "end", "patience": None, "intercept": bool(bob_table.free)}
        agreed = terms.agreement.model_copy(update=changes)
        if agreed.parties:
            pins = {name: fingerprint(identity.public_key) for name, identity in identities.items()}
            agreed = agreed.model_copy(update={"parties": pins})
        terms = replace(terms, agreement=agreed)
        # A sample fits into memory as well or as badly as the whole table.
        memory, held_out = self.table_memory * rows // self.rows, self.held_out * rows // self.rows
        alices = {
            name: AliceInputs(
                self._table(columns, rows),
                terms,
                self.entropy.fork(f"alice {name}"),
                held_out=self._table(columns, held_out) if held_out else None,
                table_memory=memory,
                identity=identities[name],
            )
            for name, columns in zip(names, self.alices, strict=True)
        }
        bob = BobInputs.without_budget(
            bob_table,
            _labels(rows, terms.agreement.family),
            terms,
            self.entropy.fork("bob"),
            memory,
            names,
        )
        if held_out:
            rest = HeldOut(
                self._table(self.bob, held_out), _labels(held_out, terms.agreement.family)
            )
            bob = replace(bob, held_out=rest)
        return alices, bob

    def _table(self, columns: Columns, rows: int) -> FeatureTable:
        ids = RowIds.numbered(rows)
        if isinstance(columns, FeatureTable):
            # More rows may be held out than trained on: some stand for others then.
            values = columns.values[:rows]
            if rows > columns.rows:
                values = np.resize(values, (rows, len(columns.columns)))
            return FeatureTable(ids, columns.columns, values)
        numbers = self.entropy.fork(f"{columns} columns").uniform((rows, columns)) - 0.5
        return FeatureTable.from_data(numbers, ids=ids)


def _width(columns: Columns) -> int:
    return columns if isinstance(columns, int) else len(columns.columns)


def _labels(rows: int, family: str) -> LabelTable:
    return LabelTable.from_data(np.arange(rows) % 2 + FAMILIES[family].two_labels[0], family=family)


class _LimitReached(Exception):
    """Enough iterations are measured."""


class _Watch:
    """Time and traffic after each iteration and at the end; stops after ``limit`` seconds."""

    def __init__(self, limit: float) -> None:
        self._limit, self._start = limit, time.perf_counter()
        self._sent: dict[Role, int] = {"alice": 0, "bob": 0}
        self._marks: list[FloatArray] = []
        self._iterations = 0

    def run(self, alices: Mapping[str, Program[Any]], bob: Program[Any]) -> None:
        # A diverging training overflows; the programs refuse the result.
        with suppress(_LimitReached), np.errstate(over="ignore", invalid="ignore"):
            run_star(alices, bob, tap=self.tap, observe=self.observe)
            self.note()

    def tap(self, _link: str, sender: Role, frame: bytes) -> None:
        self._sent[sender] += len(frame)

    def observe(self, event: Event) -> None:
        if isinstance(event, Progress):
            self._iterations += 1
            self.note()
            if self.last[0] > self._limit and self._iterations >= LEAST_ITERATIONS:
                raise _LimitReached

    def note(self) -> None:
        seconds = time.perf_counter() - self._start
        sent = self._sent
        self._marks.append(np.array([seconds, sent["bob"], sent["alice"]], dtype=np.float64))

    @property
    def last(self) -> FloatArray:
        return self._marks[-1]

    def extended(self, iterations: int, unlike: int = 1) -> FloatArray:
        """Cost of this many iterations; the first and the last ``unlike`` are not typical."""
        count, marks = self._iterations, self._marks
        if iterations == count:
            return self.last
        between = count - 1 - unlike
        typical = (marks[between] - marks[0]) / between
        return self.last + (iterations - count) * typical
