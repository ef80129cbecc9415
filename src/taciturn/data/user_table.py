"""A user's table: a file or frame with a label column and perhaps an id column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.data.csv_files import USUAL, Dialect
from taciturn.data.frames import require_column, require_names
from taciturn.data.ids import DistinctIds, RowIds
from taciturn.data.label_encoding import PLAIN, LabelEncoding
from taciturn.data.label_table import LabelTable
from taciturn.data.lazy_table import Columns, LazyTable, columns_of, in_memory, rows_of
from taciturn.data.prepare import ErrorCollector, RawData, fit
from taciturn.data.prepare_settings import BY_COLUMN, EVERY, PrepareSettings
from taciturn.data.source import TableSource
from taciturn.data.table_files import Fingerprint, require_unchanged
from taciturn.errors import ColumnError, ConfigError, nearest
from taciturn.families.registry import BINOMIAL

DEFAULTS = PrepareSettings(
    winsorise={EVERY: 0.005},
    missing_indicator=True,
    min_frequency=0.005,
    scale_categories=False,
    normalise_categories=True,
)


@dataclass(frozen=True, slots=True)
class UserTable:
    """Reading and preparation options of a user's table."""

    settings: PrepareSettings = DEFAULTS
    dialect: Dialect = USUAL
    labels: LabelEncoding = PLAIN

    @classmethod
    def from_settings(
        cls, choices: object, family: str = BINOMIAL, *, labelled: bool = True
    ) -> UserTable:
        """Options from settings of the same names; the others have their defaults."""
        return cls(
            chosen(DEFAULTS, choices),
            Dialect.from_settings(choices),
            LabelEncoding.from_settings(choices, family) if labelled else PLAIN,
        )


def chosen(base: PrepareSettings, choices: object) -> PrepareSettings:
    """The settings ``base``, overridden, also by column, by ``choices`` of the same names."""
    given: dict[str, Any] = {
        entry.name: value
        for entry in fields(PrepareSettings)
        if (value := getattr(choices, entry.name, None)) is not None
    }
    by_column = {
        name: {**getattr(base, name), **given[name]} for name in BY_COLUMN if name in given
    }
    return replace(base, **{**given, **by_column})


AS_USUAL = UserTable()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UserRows:
    """A user's table after validation."""

    columns: Columns
    ids: RowIds
    labels: LabelTable | None
    settings: PrepareSettings
    sources: tuple[Fingerprint, ...] = ()
    remarks: tuple[str, ...] = ()


def user_data(
    source: object,
    *,
    label_column: str,
    id_column: str | None = None,
    table: UserTable = AS_USUAL,
) -> RawData:
    """Read a user's table; every column except id and label is a raw feature.

    ``source`` is a path to CSV or Parquet, or a pandas or polars frame. Without ``id_column`` the
    rows are numbered from 0. Several problems are raised as one ``TableError``.
    """
    read = TableSource.at(source, table.dialect)
    frame = read.frame(text=[id_column] if id_column else [])
    return _raw(read.name, _validated(frame, read.where, label_column, id_column, table))


def user_rows(
    source: TableSource,
    *,
    label_column: str | None,
    id_column: str,
    table: UserTable,
    folder: Path | None = None,
) -> UserRows:
    """Open a party's table; the columns of Parquet files are not read yet.

    Bob's table needs no column beside ``label_column``, which is None at Alice. ``folder`` is as in
    ``TableSource.open``.
    """
    files, needed = source.fingerprints(), label_column is None
    # As text: a leading zero of an id counts.
    opened = source.open(text=[id_column], folder=folder)
    for file in files:
        require_unchanged(file)
    if isinstance(opened, LazyTable):
        files = files or opened.fingerprints
    rows = _validated(opened, source.where, label_column, id_column, table, columns_needed=needed)
    return replace(rows, sources=files)


def _validated(
    frame: Columns,
    where: str,
    label_column: str | None,
    id_column: str | None,
    table: UserTable,
    *,
    columns_needed: bool = True,
) -> UserRows:
    if label_column is not None and label_column == id_column:
        raise ConfigError(
            f"column {label_column!r} is named as id and as label",
            hint="name two different columns",
        )
    problems, settings, remarks = ErrorCollector(), table.settings, tuple[str, ...]()
    # Without sound ids a row goes by its number.
    ids, labels, names = RowIds.numbered(frame.height), None, None
    with problems.collecting():
        require_names(frame.columns, where=where)
    with problems.collecting():
        if id_column is None:
            names = ids
        else:
            require_column(frame.columns, id_column, "id", where=where)
            distinct = DistinctIds.from_values(frame[id_column], table.dialect.duplicates)
            ids = names = distinct.own_ids
            if distinct.rows is not None:
                remarks = (
                    f"{frame.height - len(ids):,} of {frame.height:,} rows repeat an id: the "
                    f"{table.dialect.duplicates} row of each id is taken",
                )
                frame = rows_of(frame, distinct.rows)
    with problems.collecting():
        if label_column is not None:
            require_column(frame.columns, label_column, "label", where=where)
            for name in table.labels.beside:
                require_column(frame.columns, name, where=where)
            labels = table.labels.table(frame, label_column, ids, names)
    beside = () if table.labels is PLAIN else table.labels.beside
    others = (label_column, id_column, *beside)
    features = columns_of(frame, [name for name in frame.columns if name not in others])
    for problem in unknown_columns(settings, features.columns):
        with problems.collecting():
            raise problem
    wanted = _wanted(features, settings)
    with problems.collecting():
        if columns_needed and not wanted.columns:
            raise ColumnError(
                "no feature columns are left", where=where, hint="add a column beside id and label"
            )
    if problems:
        # What else is wrong is said now, not the next time.
        with problems.collecting():
            fit(wanted, settings, ids=names)
        raise problems.error(where)
    return UserRows(wanted, ids, labels, settings, remarks=remarks)


def _wanted(features: Columns, settings: PrepareSettings) -> Columns:
    kept = features.columns if settings.keep is None else settings.keep
    names = [name for name in features.columns if name in kept and name not in settings.drop]
    return columns_of(features, names)


def unknown_columns(settings: PrepareSettings, columns: list[str]) -> Iterator[ColumnError]:
    """An error for each column that a setting names and a table does not have."""
    for column, setting in settings.named():
        if column not in columns:
            yield ColumnError(
                f"there is no column {column!r} beside id and label",
                setting=setting,
                hint=nearest(column, columns),
            )


def unlabelled_data(
    source: object,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    table: UserTable = AS_USUAL,
) -> RawData:
    """Read a table without labels, such as Alice's; ``label_column`` is left out, where present.

    The labels of the result alternate and mean nothing.

    >>> import polars as pl
    >>> unlabelled_data(pl.DataFrame({"age": [31, 44, 50]})).labels.values.tolist()
    [0, 1, 0]
    """
    read = TableSource.at(source, table.dialect)
    frame = read.frame(text=[id_column] if id_column else [])
    frame = frame[[column for column in frame.columns if column != label_column]]
    return _raw(read.name, _validated(frame, read.where, None, id_column, table))


def _raw(name: str, rows: UserRows) -> RawData:
    labels = rows.labels or LabelTable(rows.ids, (np.arange(len(rows.ids)) % 2).astype(np.int8))
    return RawData(name, in_memory(rows.columns), rows.ids, labels, rows.settings, own=True)
