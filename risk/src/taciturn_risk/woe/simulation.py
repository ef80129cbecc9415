"""Weight of evidence between two simulated parties."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import IndexArray
from taciturn.crypto.registry import scheme
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.split import random_partition, split_columns
from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.driver import Tap
from taciturn.errors import ConfigError
from taciturn.jobs.base import Simulated, simulate_job
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.sealed import ASSUMPTION
from taciturn.protocol.steps import ONLY
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy
from taciturn_risk.woe.alice import DisclosedColumn
from taciturn_risk.woe.bins import DEFAULT_BINS, CutTable, cut_table, no_bins
from taciturn_risk.woe.job import FeatureSide, LabelSide, WoeOptions, weighed
from taciturn_risk.woe.result import WoeResult, woe_result
from taciturn_risk.woe.terms import Counts, WoeTerms


@dataclass(frozen=True, slots=True, repr=False)
class TrainingRows:
    """The rows that are counted: training rows alone, as a training of this seed has them.

    ``rows`` are the places of the training rows in ``raw``, and ``names`` Alice's raw columns.
    """

    raw: RawData
    rows: IndexArray
    names: tuple[str, ...]

    @classmethod
    def from_settings(cls, settings: Settings, raw: RawData, stream: RunEntropy) -> TrainingRows:
        """The rows and Alice's columns, as the settings divide them."""
        if settings.parties > 1:
            raise ConfigError(
                "woe is between Bob and one Alice; each of several has a table of her own",
                setting="parties",
                hint=Hint("leave {parties} out, and name one's columns by {alice_columns}"),
            )
        rows = np.arange(raw.rows)
        if not raw.whole:
            entropy = stream.data.split.fork("rows")
            rows = random_partition(raw.rows, settings.test_fraction, entropy).train
        names = _wanted(raw)
        split = split_columns(settings.alice_columns, names, names)
        return cls(raw, rows, split.alice)

    @property
    def ids(self) -> RowIds:
        """Ids of the training rows."""
        return self.raw.ids.take(self.rows)

    @property
    def labels(self) -> LabelTable:
        """Bob's labels of them."""
        labels = self.raw.labels.take(self.rows)
        labels.require_classes()
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


def simulate_woe(
    settings: Settings,
    raw: RawData,
    options: WoeOptions,
    observe: Observer = noop,
) -> WoeResult:
    """Weights of evidence from Bob's labels in Alice's bins; Bob learns names by default."""
    start, entropy = time.perf_counter(), RunEntropy.for_seed(settings.seed)
    terms = WoeTerms.for_scheme(scheme(settings.scheme), settings.key_bits)
    rows, names = (
        TrainingRows.from_settings(settings, raw, entropy),
        options.share_names is not False,
    )
    least = options.least(len(rows.rows))
    cut, labels = rows.cut(least), rows.labels
    end, ledger = converse(cut, labels, terms, entropy, names=names, observe=observe)
    return woe_result(
        weighed(end.bob, options.effective_smoothing),
        terms,
        role="simulation",
        dataset=raw.name,
        rows=labels.rows,
        names_hidden=not names,
        smoothing=options.effective_smoothing,
        min_rows=least,
        label_epsilon=ledger.statement().label_epsilon_total,
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
    entropy: RunEntropy,
    *,
    names: bool,
    observe: Observer = noop,
    tap: Tap | None = None,
) -> tuple[Simulated[tuple[DisclosedColumn, ...], Counts], Ledger]:
    """Run both programs in memory; ``names`` discloses names and edges to Bob."""
    alice = FeatureSide(terms, labels.ids, cut, names=names)
    bob = LabelSide(terms, labels, Ledger(labels.rows, ASSUMPTION))
    listen = None if tap is None else (lambda _, sender, frame: tap(sender, frame))
    end = simulate_job(
        {ONLY: alice.program(entropy.alice)}, bob.program(entropy.bob), tap=listen, observe=observe
    )
    end.bob.require_possible()
    return end, bob.ledger


def _wanted(raw: RawData) -> list[str]:
    settings = raw.settings
    wanted = raw.frame.columns if settings.keep is None else settings.keep
    return [name for name in raw.frame.columns if name in wanted and name not in settings.drop]
