"""Both parties in one process: their tables, randomness, and a notebook's progress bar.

All randomness of a run derives from one root: with a seed that is the seed's, and the run can be
repeated; without one it comes from the operating system.

The bar is HTML which the cell's output replaces as the work proceeds, so that it needs no package
beside the kernel and a saved notebook keeps its last state. Work that ends at once shows none.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from taciturn.crypto.signatures import KeyIdentity, fingerprint
from taciturn.data import datasets
from taciturn.data.csv_files import Dialect
from taciturn.data.joined import join_tables
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import RawData
from taciturn.data.split import VerticalData, prepare_vertical, random_partition, whole_vertical
from taciturn.data.tables import FeatureTable
from taciturn.data.user_table import (
    DEFAULTS,
    UserTable,
    chosen,
    unknown_columns,
    unlabelled_data,
    user_data,
)
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.engine.progress import ProgressEstimate
from taciturn.engine.transcript import Header
from taciturn.errors import ColumnError, ConfigError, TranscriptError
from taciturn.privacy.solvers import resolved
from taciturn.protocol.events import Advance, Event
from taciturn.rng import KeyedEntropy
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import Settings, missing_label


@dataclass(frozen=True, slots=True)
class DataEntropy:
    """Randomness of the rows: the split, and the shuffling of a canary run."""

    split: KeyedEntropy
    permute: KeyedEntropy

    def to_dict(self) -> dict[str, str]:
        """The keys in hexadecimal, for a transcript's header."""
        return {"split": self.split.key.hex(), "permute": self.permute.key.hex()}

    @classmethod
    def from_header(cls, header: Header) -> DataEntropy:
        """Randomness with which a recorded run drew its rows; TranscriptError if not recorded."""
        try:
            keys = header["coins"]
            return cls(*(KeyedEntropy(bytes.fromhex(keys[name])) for name in ("split", "permute")))
        except (KeyError, TypeError, ValueError, ConfigError):
            raise TranscriptError("the transcript's header is not that of a recorded run") from None


@dataclass(frozen=True, slots=True)
class RunEntropy:
    """The independent sources of one simulated run."""

    data: DataEntropy
    alice: KeyedEntropy
    bob: KeyedEntropy

    @classmethod
    def for_seed(cls, seed: int | None) -> RunEntropy:
        """Randomness of a seed, or of the operating system without one."""
        root = KeyedEntropy.from_system() if seed is None else KeyedEntropy.from_seed(seed)
        return cls(
            DataEntropy(root.fork("split"), root.fork("permute")),
            root.fork("alice"),
            root.fork("bob"),
        )

    def of_alice(self, name: str) -> KeyedEntropy:
        """Randomness of one of several Alices, by her name; of the only Alice, the whole."""
        return self.alice.fork(name) if name else self.alice

    def identity_of(self, name: str) -> KeyIdentity | None:
        """Signing identity of one of several Alices; None for the only Alice."""
        return KeyIdentity.simulated(name, self.of_alice(name)) if name else None

    def pins(self, names: Sequence[str]) -> dict[str, str] | None:
        """The fingerprints that an agreement has of several Alices; None for the only one."""
        identities = filter(None, map(self.identity_of, names))
        return {identity.name: fingerprint(identity.public_key) for identity in identities} or None


_FIRST_SECONDS, _EVERY_SECONDS = 0.5, 0.2


@contextmanager
def in_cell(callbacks: Callbacks) -> Iterator[Callbacks]:
    """The given callbacks; in a notebook, where they are silent, a progress bar in the cell.

    >>> with in_cell(SILENT) as watching:  # no notebook
    ...     watching is SILENT
    True
    """
    if callbacks != SILENT or not _has_kernel():
        yield callbacks
        return
    bar = _CellBar()
    try:
        yield Callbacks(bar.announce, bar.observe, bar.progress)
    finally:
        bar.close()


def _has_kernel() -> bool:
    """Whether a notebook's kernel runs this: IPython in a terminal has none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _CellBar:
    def __init__(self) -> None:
        self._pulse = ProgressEstimate()
        self._due = time.monotonic() + _FIRST_SECONDS
        self._handle: Any = None

    def announce(self, activity: str) -> None:
        self._pulse.begin(activity)
        self._show()

    def observe(self, event: Event) -> None:
        if isinstance(event, Advance) and self._pulse.observe(event):
            self._show()

    def progress(self, done: int, total: int) -> None:
        self._pulse.advance(self._pulse.activity, done, total)
        self._show()

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update(self._html(), raw=True)

    def _show(self) -> None:
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _EVERY_SECONDS
        if self._handle is None:
            # Loaded here: only a kernel has it.
            from IPython.display import display

            # Any: it has no types.
            show: Any = display
            self._handle = show(self._html(), raw=True, display_id=True)
        else:
            self._handle.update(self._html(), raw=True)

    def _html(self) -> dict[str, str]:
        done, total = self._pulse.reach
        value = f' value="{done}" max="{total}"' if total else ""
        line = self._pulse.line()
        return {
            "text/html": f"<progress{value}></progress> <span>{escape(line)}</span>",
            "text/plain": line,
        }


_NAME_DATA = Hint(
    "use {dataset}, or {data} with {label}", dataset="NAME", data="FILE", label="COLUMN"
)
_NAME_COLUMNS = Hint("use {dataset}, {data} or {columns}", dataset="NAME", data="FILE", columns=30)


def settings_of(data: object, options: Mapping[str, object]) -> tuple[Settings, object]:
    """The checked settings, and the table where one was given in Python, or two to be joined."""
    alice = options.get("alice_data")
    named = {key: value for key, value in options.items() if key != "alice_data"}
    if isinstance(data, str | Path):
        named["data"] = str(data)
    if isinstance(alice, str | Path):
        named["alice_data"] = str(alice)
    settings = resolved(Settings.from_mapping(named))
    table = None if isinstance(data, str | Path) else data
    if alice is None:
        return settings, table
    return _joined(settings, settings.data if table is None else table, alice)


def _joined(settings: Settings, bob: object, alice: object) -> tuple[Settings, object]:
    if bob is None or settings.id is None:
        raise ConfigError(
            "Alice's table is joined to Bob's by the id column",
            setting="alice_data",
            hint=Hint("name {data} and {id} too", data="FILE", id="COLUMN"),
        )
    frame, columns = join_tables(bob, alice, settings.id, Dialect.from_settings(settings))
    if settings.alice_columns not in ("all", columns):
        raise ConfigError(
            "with a table of her own, Alice's columns are those of that table",
            setting="alice_columns",
            hint=Hint("leave {alice_columns} out; {keep} and {drop} choose among all columns"),
        )
    return settings.model_copy(update={"alice_columns": columns}), frame


def load_raw(settings: Settings, table: object = None, labels: object = None) -> RawData:
    """The rows that the settings name, or a table given in Python.

    ``table`` is a frame with a label column; or columns alone, where labels are given.
    """
    if labels is not None:
        return _columns_and_labels(settings, table, labels)
    if table is None and settings.data is None:
        return _load_dataset(settings, _NAME_DATA)
    if settings.label is None:
        raise missing_label()
    return user_data(
        settings.data if table is None else table,
        id_column=settings.id,
        label_column=settings.label,
        table=UserTable.from_settings(settings, settings.family),
    )


def load_features(settings: Settings, table: object = None) -> RawData:
    """The rows of one party's table, for a look at its columns; the labels mean nothing."""
    if table is None and settings.data is None:
        return _load_dataset(settings, _NAME_COLUMNS)
    return unlabelled_data(
        settings.data if table is None else table,
        id_column=settings.id,
        label_column=settings.label,
        table=UserTable.from_settings(settings),
    )


def _columns_and_labels(settings: Settings, table: object, labels: object) -> RawData:
    columns = (
        table
        if isinstance(table, FeatureTable)
        else FeatureTable.from_data(table, id_column=settings.id)
    )
    truth = (
        labels
        if isinstance(labels, LabelTable)
        else LabelTable.from_data(labels, ids=columns.ids, family=settings.family)
    )
    truth.ids.require_same(columns.ids, names=("the labels", "the columns"))
    return RawData(
        name="own data",
        frame=pl.from_numpy(columns.values, schema=list(columns.columns)),
        ids=columns.ids,
        labels=truth,
        settings=chosen(DEFAULTS, settings),
        own=True,
    )


def _load_dataset(settings: Settings, hint: Hint) -> RawData:
    if settings.dataset is None:
        raise ConfigError("no data is given", setting="dataset", hint=hint)
    directory = Path(settings.data_dir) if settings.data_dir else None
    raw = datasets.load(settings.dataset, data_dir=directory)
    prepared = chosen(raw.settings, settings)
    for problem in unknown_columns(prepared, raw.frame.columns):
        raise problem
    return replace(raw, settings=prepared)


Source: TypeAlias = RawData | VerticalData
"""Rows to be split and prepared, or two parties' tables as they are."""


def arrange(settings: Settings, raw: Source, entropy: DataEntropy) -> VerticalData:
    """Splits rows and columns; shuffles labels, or Alice's rows, for a canary run."""
    data = _split(settings, raw, entropy)
    return _permuted(data, entropy) if settings.permute_rows else data


def _split(settings: Settings, raw: Source, entropy: DataEntropy) -> VerticalData:
    if isinstance(raw, VerticalData):
        if not settings.permute_labels:
            return raw
        return replace(raw, labels_train=raw.labels_train.permuted(entropy.permute.fork("labels")))
    if settings.permute_labels:
        raw = replace(raw, labels=raw.labels.permuted(entropy.permute.fork("labels")))
    columns, parties = settings.alice_columns, settings.parties
    _require_features(columns, settings)
    intercept = bool(settings.intercept)
    if raw.whole:
        return whole_vertical(raw, columns, intercept=intercept, parties=parties)
    partition = random_partition(len(raw.ids), settings.test_fraction, entropy.split.fork("rows"))
    return prepare_vertical(raw, partition, columns, intercept=intercept, parties=parties)


def _require_features(spec: str | int | Sequence[str], settings: Settings) -> None:
    """Refuse the label or the id among Alice's columns, which are no features."""
    names = re.split("[,;]", spec) if isinstance(spec, str) else spec
    for name in () if isinstance(names, int) else names:
        for role in ("label", "id"):
            if name.strip() == getattr(settings, role):
                raise ColumnError(
                    f"column {name.strip()!r} is the {role}, and no column of Alice's",
                    setting="alice_columns",
                    hint=Hint("leave it out here, or name another {" + role + "}"),
                )


def _permuted(data: VerticalData, entropy: DataEntropy) -> VerticalData:
    """Alice's training rows under the ids of others: her columns say nothing of Bob's rows."""
    alice_table = data.alice_train
    order = entropy.permute.fork("rows").permutation(alice_table.rows)
    permuted = FeatureTable(alice_table.ids, alice_table.columns, alice_table.values[order])
    return replace(data, alice_train=permuted)


def with_coin_labels(source: Source, entropy: KeyedEntropy) -> Source:
    """The same rows, with independent fair random labels to train with."""
    if isinstance(source, VerticalData):
        return replace(source, labels_train=source.labels_train.with_random_labels(entropy))
    return replace(source, labels=source.labels.with_random_labels(entropy))
