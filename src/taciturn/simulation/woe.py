"""Weight of evidence between two simulated parties: frames cross the codec as on a wire."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.crypto.registry import scheme
from taciturn.data.evidence_bins import (
    DEFAULT_BINS,
    CutTable,
    cut_table,
    default_least,
    no_bins,
)
from taciturn.data.ids import RowIds
from taciturn.data.raw import RawData
from taciturn.data.split import random_partition, split_columns
from taciturn.data.tables import LabelTable
from taciturn.engine.callbacks import Observer, ignore
from taciturn.engine.driver import Tap
from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.numerics.weight_of_evidence import DEFAULT_SMOOTHING, check_smoothing
from taciturn.parallel import one_thread
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.sealed import ASSUMPTION
from taciturn.protocol.alice import woe as alice_woe
from taciturn.protocol.bob import woe as bob_woe
from taciturn.protocol.messages import Role
from taciturn.protocol.woe import Counts, WoeTerms
from taciturn.results.woe import ALICE_LEARNS, WoeColumn, WoeResult, bob_learns, counts_told
from taciturn.settings.schema import Settings
from taciturn.simulation.coins import Coins


@dataclass(frozen=True, slots=True)
class WoeChoice:
    """What may be chosen of a weight of evidence, beside the settings.

    ``smoothing`` is what Bob adds to both counts of a bin. ``min_rows`` is the least rows of a bin;
    None for the default of this many rows. ``names`` says whether Bob learns what columns and bins
    are called.
    """

    smoothing: float = DEFAULT_SMOOTHING
    min_rows: int | None = None
    names: bool = True

    def __post_init__(self) -> None:
        check_smoothing(self.smoothing)
        if self.min_rows is not None and self.min_rows < 1:
            raise ConfigError(
                f"a bin of {self.min_rows} rows is none",
                setting="min_rows",
                hint=Hint("use {min_rows}, say", min_rows=50),
            )

    def least(self, rows: int) -> int:
        """The least rows of a bin."""
        return default_least(rows) if self.min_rows is None else self.min_rows


@dataclass(frozen=True, slots=True, repr=False)
class TrainingRows:
    """The rows that are counted: training rows alone, as a training of this seed has them.

    ``rows`` are the places of the training rows in ``raw``, and ``names`` Alice's raw columns.
    """

    raw: RawData
    rows: IndexArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings, raw: RawData, coins: Coins) -> TrainingRows:
        """The rows and Alice's columns, as the settings divide them."""
        if settings.parties > 1:
            raise ConfigError(
                "woe is between Bob and one Alice; each of several has a table of her own",
                setting="parties",
                hint=Hint("leave {parties} out, and name one's columns by {alice_columns}"),
            )
        rows = np.arange(raw.rows)
        if not raw.whole:
            entropy = coins.data.split.fork("rows")
            rows = random_partition(raw.rows, settings.test_fraction, entropy).train
        names = _wanted(raw)
        split = split_columns(settings.alice_columns, names, names)
        return cls(raw, rows, split.alice)

    @property
    def ids(self) -> RowIds:
        """Their ids."""
        return self.raw.ids.take(self.rows)

    @property
    def labels(self) -> LabelTable:
        """Bob's labels of them."""
        labels = self.raw.labels.take(self.rows)
        labels.require_both_classes()
        return labels

    def cut(self, least: int, bins: int | None = None) -> CutTable:
        """Alice's columns in bins of at least ``least`` rows; ``bins`` replaces the settings'."""
        raw, settings = self.raw, self.raw.settings
        if bins is not None:
            settings = replace(settings, bins={})
        columns = (raw.frame[name][self.rows] for name in self.names)
        table = cut_table(
            columns,
            settings,
            least,
            vocabularies=raw.vocabularies.get,
            ids=self.ids,
            bins=DEFAULT_BINS if bins is None else bins,
        )
        if not table.columns:
            raise no_bins(least)
        return table


@dataclass(frozen=True, slots=True)
class Conversed:
    """What came of one conversation in this process."""

    counts: Counts
    ledger: Ledger = field(repr=False)
    bytes_to_alice: int
    bytes_to_bob: int


def simulate_woe(
    settings: Settings,
    raw: RawData,
    choice: WoeChoice,
    observe: Observer = ignore,
) -> WoeResult:
    """Counts Bob's labels in Alice's bins, and weighs them."""
    start, coins = time.perf_counter(), Coins.for_seed(settings.seed)
    terms = WoeTerms.of(scheme(settings.scheme), settings.key_bits)
    rows = TrainingRows.of(settings, raw, coins)
    least = choice.least(len(rows.rows))
    cut = rows.cut(least)
    end = converse(cut, rows.labels, terms, coins, names=choice.names, observe=observe)
    columns = tuple(
        WoeColumn.counted(
            one.column.name,
            one.column.labels,
            one.column.rows,
            one.ones,
            choice.smoothing,
            ordered=one.column.ordered,
        )
        for one in end.counts.columns
    )
    return WoeResult(
        role="simulation",
        dataset=raw.name,
        rows=len(rows.rows),
        columns=columns,
        names_hidden=not choice.names,
        smoothing=choice.smoothing,
        min_rows=least,
        scheme=terms.scheme.name,
        key_bits=terms.key_bits,
        counts_told=counts_told(columns),
        label_epsilon=end.ledger.statement().label_epsilon_total,
        assumption=end.ledger.statement().assumption,
        alice_learns=ALICE_LEARNS,
        bob_learns=bob_learns(columns, names_hidden=not choice.names),
        seed=settings.seed,
        seconds=time.perf_counter() - start,
        bytes_to_alice=end.bytes_to_alice,
        bytes_to_bob=end.bytes_to_bob,
        notes=cut.notes,
    )


def converse(
    cut: CutTable,
    labels: LabelTable,
    terms: WoeTerms,
    coins: Coins,
    *,
    names: bool,
    observe: Observer = ignore,
    tap: Tap | None = None,
) -> Conversed:
    """Runs both programs against each other; ``names`` says whether Bob learns names and edges."""
    crossed: dict[Role, int] = {"alice": 0, "bob": 0}

    def listen(sender: Role, frame: bytes) -> None:
        crossed[sender] += len(frame)
        if tap is not None:
            tap(sender, frame)

    ledger = Ledger(labels.rows, ASSUMPTION)
    hers = alice_woe.WoeInputs(labels.ids, cut.columns, terms, coins.alice, names)
    his = bob_woe.WoeInputs(labels, terms, ledger, coins.bob)
    with one_thread():
        _, counts = run_pair(alice_woe.answer(hers), bob_woe.ask(his), tap=listen, observe=observe)
    counts.require_possible()
    return Conversed(counts, ledger, crossed["bob"], crossed["alice"])


def _wanted(raw: RawData) -> list[str]:
    settings = raw.settings
    kept = raw.frame.columns if settings.keep is None else settings.keep
    return [name for name in raw.frame.columns if name in kept and name not in settings.drop]
