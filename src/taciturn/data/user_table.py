"""A user's table: a file or frame with a label column and perhaps an id column."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import polars as pl

from taciturn.arrays import IndexArray
from taciturn.data.column_parsing import TEXT, as_levels
from taciturn.data.csv_files import USUAL, Dialect, TextColumns
from taciturn.data.fitting import BY_COLUMN, EVERY, PrepareSettings
from taciturn.data.frames import require_column, require_names
from taciturn.data.ids import DistinctIds, Duplicates, RowIds, row_name
from taciturn.data.parquet import Columns, Fingerprint, SomeRows, require_unchanged
from taciturn.data.prepare import ErrorCollector, RawData, fit
from taciturn.data.source import TableSource
from taciturn.data.tables import LabelTable
from taciturn.errors import ColumnError, ConfigError, LabelValueError, nearest
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.setting_syntax import Hint

_TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1}
# Pairs of words of which the first is what people predict; shown in place of what the rows hold.
_PAIRS = (
    ("yes", "no"),
    ("y", "n"),
    ("t", "f"),
    ("ja", "nein"),
    ("oui", "non"),
    ("bad", "good"),
    ("positive", "negative"),
    ("pos", "neg"),
    ("default", "paid"),
    ("churned", "stayed"),
    ("1", "-1"),
    ("2", "1"),
)


@dataclass(frozen=True, slots=True)
class LabelEncoding:
    """Words that mean 1 and 0, without case; without ``negative`` the only other word means 0."""

    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    family: str = BINOMIAL
    exposure: str | None = None
    weights: str | None = None

    @classmethod
    def from_settings(cls, choices: object, family: str = BINOMIAL) -> LabelEncoding:
        """Label words, and columns beside the labels, from settings of the same names."""
        positive, negative = (getattr(choices, name) or () for name in ("positive", "negative"))
        beside = (getattr(choices, name, None) for name in ("exposure", "weights"))
        encoding = cls(positive, negative, family, *beside)
        encoding.require_family()
        return encoding

    def require_family(self) -> None:
        """Refuse what the family of the labels does not have."""
        kind = FAMILIES[self.family]
        classes = kind.has_classes
        if self.exposure is not None and not kind.takes_exposure:
            raise ConfigError(
                f"{self.family} has no exposure: its link is no logarithm",
                setting="exposure",
                hint=Hint("use {family}, or leave {exposure} out", family=("poisson", "gamma")),
            )
        if self.weights is not None and classes:
            raise ConfigError(
                "binomial has no weights of single rows",
                setting="weights",
                hint=Hint("use {class_weight}, or leave {weights} out", class_weight="0.2,1"),
            )
        for name in ("positive", "negative"):
            if getattr(self, name) and not classes:
                raise ConfigError(
                    f"{name} is about labels of two classes, and those of {self.family} are "
                    "numbers",
                    setting=name,
                    hint=Hint(f"leave {{{name}}} out, or use {{family}}", family=BINOMIAL),
                )

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns beside the label that are no features."""
        return tuple(name for name in (self.exposure, self.weights) if name is not None)

    def table(self, frame: Columns, column: str, ids: RowIds, names: RowIds | None) -> LabelTable:
        """Labels of a frame; rows go by their ``names`` in errors."""
        values = self.values(frame[column], names)
        return LabelTable.from_data(
            values if not FAMILIES[self.family].has_classes else values.to_numpy(),
            ids=ids,
            family=self.family,
            **{
                name: None if source is None else frame[source]
                for name, source in (("exposure", self.exposure), ("weights", self.weights))
            },
        )

    def values(self, series: pl.Series, ids: RowIds | None) -> pl.Series:
        """A label column as 0 and 1, null where missing; other numbers unchanged."""
        if not FAMILIES[self.family].has_classes:
            return series
        if not (self.positive or self.negative):
            return _plain_values(series, ids)
        text = _words(series)
        if text is None:
            raise LabelValueError(
                f"column {series.name!r} is {series.dtype}, which has no words",
                setting="positive",
                hint=Hint("leave {positive} and {negative} out"),
            )
        ones, zeros = (
            {word.strip().lower() for word in words} for words in (self.positive, self.negative)
        )
        others = set(text.drop_nulls().unique().to_list()) - ones - zeros
        if len(others) == 1 and not (zeros and ones):
            (zeros if ones else ones).update(others)
            others = set()
        if others:
            self._refuse(series, text, text.is_in(list(others)), len(others), ids)
        values = dict.fromkeys(zeros, 0) | dict.fromkeys(ones, 1)
        return text.replace_strict(values, default=None, return_dtype=pl.Int8)

    def _refuse(
        self, series: pl.Series, text: pl.Series, wrong: pl.Series, count: int, ids: RowIds | None
    ) -> None:
        lacking = "negative" if self.positive and not self.negative else "positive"
        if self.positive and self.negative:
            hint = Hint("name them in {positive} or in {negative}, or correct them")
        else:
            value = int(lacking == "positive")
            hint = Hint(f"say which of them mean {value} too: {{{lacking}}}", **{lacking: ["WORD"]})
        raise LabelValueError(
            f"{wrong.sum()} of {len(text)} labels are none of the words that are named "
            f"({count} other words)",
            where=f"column {series.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint=hint,
        )


PLAIN = LabelEncoding()


def _words(series: pl.Series) -> pl.Series | None:
    try:
        return as_levels(series).str.strip_chars().str.to_lowercase()
    except ColumnError:
        return None


def _plain_values(series: pl.Series, ids: RowIds | None) -> pl.Series:
    if series.dtype not in TEXT:
        _refuse_numbers(series, ids)
        return series
    text = series.cast(pl.String).str.strip_chars().str.to_lowercase()
    values = text.replace_strict(_TRUTH, default=None, return_dtype=pl.Int8)
    wrong = values.is_null() & text.is_not_null()
    if wrong.any():
        raise LabelValueError(
            f"{wrong.sum()} of {len(text)} labels are text other than 0 and 1 "
            f"({text.n_unique()} distinct values in all)",
            where=f"column {series.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint=_label_hint(text),
        )
    return values


def _refuse_numbers(series: pl.Series, ids: RowIds | None) -> None:
    if not series.dtype.is_numeric():
        return
    wrong = ((series != 0) & (series != 1) & series.is_not_nan()).fill_null(False)
    if wrong.any():
        text = _words(series)
        raise LabelValueError(
            f"{wrong.sum()} of {len(series)} labels are neither 0 nor 1 "
            f"({series.n_unique()} distinct values in all)",
            where=f"column {series.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint="turn them into 0 and 1 (1 is the class to predict)"
            if text is None
            else _label_hint(text),
        )


def _label_hint(text: pl.Series) -> Hint:
    """Hint which word to name as 1; the labels' own words only where they are common ones."""
    present = set(text.drop_nulls().unique().to_list())
    word = next((one for one, zero in _PAIRS if present == {one, zero}), "WORD")
    return Hint("say which of them means 1, the class to predict: {positive}", positive=word)


DEFAULTS = PrepareSettings(
    winsorise={EVERY: 0.005},
    missing_indicator=True,
    min_frequency=0.005,
    scale_categories=False,
    normalise_categories=True,
)

C = TypeVar("C", bound=Columns)


@dataclass(frozen=True, slots=True)
class UserTable:
    """Reading and preparation options of a user's table."""

    settings: PrepareSettings = DEFAULTS
    dialect: Dialect = USUAL
    labels: LabelEncoding = PLAIN

    @classmethod
    def from_settings(cls, choices: object, family: str = BINOMIAL) -> UserTable:
        """Options from settings of the same names; the others have their defaults."""
        return cls(
            chosen(DEFAULTS, choices),
            Dialect.from_settings(choices),
            LabelEncoding.from_settings(choices, family),
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
class UserRows(Generic[C]):
    """A user's table after validation."""

    columns: C
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
    frame = read.frame(text=_text(id_column))
    return _raw(read.name, _validated(frame, read.where, label_column, id_column, table))


def user_rows(
    source: TableSource,
    *,
    label_column: str | None,
    id_column: str,
    table: UserTable,
    folder: Path | None = None,
) -> UserRows[Columns]:
    """Open a party's table; the columns of Parquet files are not read yet.

    Bob's table needs no column beside ``label_column``, which is None at Alice. ``folder`` is as in
    ``TableSource.open``.
    """
    files, needed = source.fingerprints(), label_column is None
    opened = source.open(text=_text(id_column), folder=folder)
    for file in files:
        require_unchanged(file)
    if isinstance(opened, TextColumns):
        files = files or opened.fingerprints
    rows = _validated(opened, source.where, label_column, id_column, table, columns_needed=needed)
    return replace(rows, sources=files)


def _validated(
    frame: C,
    where: str,
    label_column: str | None,
    id_column: str | None,
    table: UserTable,
    *,
    columns_needed: bool = True,
) -> UserRows[C]:
    if label_column is not None and label_column == id_column:
        raise ConfigError(
            f"column {label_column!r} is named as id and as label",
            hint="name two different columns",
        )
    problems, settings, remarks = ErrorCollector(), table.settings, tuple[str, ...]()
    ids, labels, named = RowIds.numbered(frame.height), None, id_column is None
    with problems.collecting():
        require_names(frame.columns, where=where)
    with problems.collecting():
        if id_column is not None:
            require_column(frame.columns, id_column, "id", where=where)
            distinct = DistinctIds.from_values(frame[id_column], table.dialect.duplicates)
            ids, named = distinct.own_ids, True
            if distinct.rows is not None:
                remarks = (_dropped(frame.height, distinct.rows, table.dialect.duplicates),)
                frame = _rows_of(frame, distinct.rows)
    # Without sound ids a row goes by its number.
    names = ids if named else None
    with problems.collecting():
        if label_column is not None:
            require_column(frame.columns, label_column, "label", where=where)
            for name in table.labels.beside:
                require_column(frame.columns, name, where=where)
            labels = table.labels.table(frame, label_column, ids, names)
    beside = [
        name
        for name in frame.columns
        if name not in (label_column, id_column, *table.labels.beside)
    ]
    features = frame.select(beside)
    with problems.collecting():
        features = _chosen_columns(features, settings, where, problems, needed=columns_needed)
    if problems:
        # What else is wrong is said now, not the next time.
        with problems.collecting():
            fit(_wanted(features, settings), settings, ids=names)
        raise problems.error(where)
    return UserRows(features, ids, labels, settings, remarks=remarks)


def _rows_of(table: C, rows: IndexArray) -> C:
    chosen: Columns = (
        table[rows]
        if isinstance(table, pl.DataFrame)
        else SomeRows(table, pl.Series(rows, dtype=pl.UInt32))
    )
    # Whatever the table is, its rows are such a table too.
    return cast("C", chosen)


def _dropped(height: int, rows: IndexArray, duplicates: Duplicates | None) -> str:
    return (
        f"{height - len(rows):,} of {height:,} rows repeat an id: the {duplicates} row of each id "
        "is taken"
    )


def _wanted(features: C, settings: PrepareSettings) -> C:
    kept = features.columns if settings.keep is None else settings.keep
    names = [name for name in features.columns if name in kept and name not in settings.drop]
    return features.select(names)


def _chosen_columns(
    features: C, settings: PrepareSettings, where: str, problems: ErrorCollector, *, needed: bool
) -> C:
    for problem in unknown_columns(settings, features.columns):
        with problems.collecting():
            raise problem
    wanted = _wanted(features, settings)
    if needed and not wanted.columns:
        raise ColumnError(
            "no feature columns are left", where=where, hint="add a column beside id and label"
        )
    return wanted


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

    >>> unlabelled_data(pl.DataFrame({"age": [31, 44, 50]})).labels.values.tolist()
    [0, 1, 0]
    """
    read = TableSource.at(source, table.dialect)
    frame = read.frame(text=_text(id_column))
    frame = frame.select(column for column in frame.columns if column != label_column)
    return _raw(read.name, _validated(frame, read.where, None, id_column, table))


def _raw(name: str, rows: UserRows[pl.DataFrame]) -> RawData:
    labels = rows.labels or LabelTable(rows.ids, (np.arange(len(rows.ids)) % 2).astype(np.int8))
    return RawData(name, rows.columns, rows.ids, labels, rows.settings, own=True)


def _text(id_column: str | None) -> list[str]:
    # As text: a leading zero of an id counts.
    return [] if id_column is None else [id_column]
