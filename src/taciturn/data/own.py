"""Own data: a person's file or frame, with its label column and perhaps an id column named."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from taciturn.data.choices import BY_COLUMN, EVERY, PrepareSettings
from taciturn.data.files import USUAL, Dialect, read_frame
from taciturn.data.frames import as_frame
from taciturn.data.ids import RowIds
from taciturn.data.label_words import PLAIN, LabelWords
from taciturn.data.prepare import fit
from taciturn.data.problems import Problems
from taciturn.data.raw import RawData
from taciturn.data.tables import LabelTable
from taciturn.errors import ColumnError, ConfigError, nearest

DEFAULTS = PrepareSettings(
    winsorise={EVERY: 0.005}, missing_indicator=True, rare_share=0.005, scale_categories=False
)
# Stands in for columns where a table has none beside id and label.
NO_COLUMN = "(none)"


@dataclass(frozen=True, slots=True)
class OwnTable:
    """How a table of one's own is read and prepared.

    Args:
        settings: How the columns are prepared.
        dialect: How a CSV file is written.
        labels: Which words of the label column mean what.
    """

    settings: PrepareSettings = DEFAULTS
    dialect: Dialect = USUAL
    labels: LabelWords = PLAIN

    @classmethod
    def of(cls, choices: object) -> OwnTable:
        """What settings choose, which have it under the same names; the rest has its default."""
        return cls(chosen(DEFAULTS, choices), Dialect.of(choices), LabelWords.of(choices))


def chosen(base: PrepareSettings, choices: object) -> PrepareSettings:
    """A preparation with what settings choose, which have it under the same names.

    Args:
        base: What holds where they say nothing; by column, where they do not name it.
        choices: The settings.
    """
    given: dict[str, Any] = {
        entry.name: value
        for entry in fields(PrepareSettings)
        if (value := getattr(choices, entry.name, None)) is not None
    }
    by_column = {
        name: {**getattr(base, name), **given[name]} for name in BY_COLUMN if name in given
    }
    return replace(base, **{**given, **by_column})


AS_USUAL = OwnTable()


def own_data(
    source: object,
    *,
    label_column: str,
    id_column: str | None = None,
    table: OwnTable = AS_USUAL,
    columns_needed: bool = True,
) -> RawData:
    """Take in a table of one's own.

    Args:
        source: A path to a CSV or Parquet file, or a pandas or polars frame.
        label_column: The column to predict: 0 and 1, or booleans, or words.
        id_column: The column that names the rows; they are numbered from 0 where absent.
        table: How it is read and prepared.
        columns_needed: Whether there must be a column beside id and label; where there need not be
            one, and is none, ``NO_COLUMN`` stands in.

    Returns:
        The data with every other column as a raw feature.

    Raises:
        ColumnError: If a named column is absent, a column has no name, or no feature is left.
        RowIdError: If the ids are not fit for use.
        LabelValueError: If a label is neither 0 nor 1.
        MissingValueError: If a label is missing.
        TableError: If several of these are so; whatever is wrong with the columns is among them.
        FileError: If the file cannot be read.

    >>> people = pl.DataFrame({"who": ["a", "b"], "age": [31, 44], "paid": [True, False]})
    >>> own_data(people, label_column="paid", id_column="who")
    RawData(own data, 2 rows, 1 raw columns)
    """
    if label_column == id_column:
        raise ConfigError(
            f"column {label_column!r} is named as id and as label",
            hint="name two different columns",
        )
    name, where, frame = _taken_in(source, id_column, table.dialect)
    problems, settings = Problems(), table.settings
    ids, labels, named = RowIds.numbered(frame.height), None, id_column is None
    with problems.noted():
        _check_names(frame.columns, where)
    with problems.noted():
        if id_column is not None:
            _require(frame, "id", id_column, where)
            ids, named = RowIds.of(frame[id_column]), True
    # Without sound ids a row goes by its number.
    names = ids if named else None
    with problems.noted():
        _require(frame, "label", label_column, where)
        labels = LabelTable(ids, table.labels.values(frame[label_column], names).to_numpy())
    features = frame.drop([label_column, id_column or label_column], strict=False)
    if not columns_needed and not _wanted(features, settings).width:
        features, settings = pl.DataFrame({NO_COLUMN: [0.0] * frame.height}), DEFAULTS
    with problems.noted():
        features = _chosen_columns(features, settings, where, problems)
    if problems or labels is None:
        # What else is wrong is said now, not the next time.
        with problems.noted():
            fit(_wanted(features, settings), settings, ids=names)
        raise problems.error(where)
    return RawData(name, features, ids, labels, settings, own=True)


def _require(frame: pl.DataFrame, role: str, column: str, where: str) -> None:
    if column not in frame.columns:
        raise ColumnError(
            f"there is no {role} column {column!r}",
            where=where,
            hint=nearest(column, frame.columns),
        )


def _wanted(features: pl.DataFrame, settings: PrepareSettings) -> pl.DataFrame:
    """The columns that are kept and not dropped."""
    kept = features.columns if settings.keep is None else settings.keep
    names = [name for name in features.columns if name in kept and name not in settings.drop]
    return features.select(names)


def _chosen_columns(
    features: pl.DataFrame, settings: PrepareSettings, where: str, problems: Problems
) -> pl.DataFrame:
    """The columns that are wanted; a setting that names another one is a problem."""
    present = {*features.columns}
    for column, setting in settings.named():
        if column not in present:
            with problems.noted():
                raise ColumnError(
                    f"there is no column {column!r} beside id and label",
                    setting=setting,
                    hint=nearest(column, features.columns),
                )
    wanted = _wanted(features, settings)
    if not wanted.width:
        raise ColumnError(
            "no feature columns are left", where=where, hint="add a column beside id and label"
        )
    return wanted


def columns_alone(
    source: object,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    table: OwnTable = AS_USUAL,
) -> RawData:
    """Take in a table whose labels do not matter, such as Alice's, who has none.

    Args:
        source: A path to a CSV or Parquet file, or a pandas or polars frame.
        id_column: The column that names the rows.
        label_column: A column to leave out, where it is there.
        table: How it is read and prepared.

    Returns:
        The data under labels that alternate and mean nothing.

    Raises:
        DataError: As ``own_data``.

    >>> columns_alone(pl.DataFrame({"age": [31, 44, 50]})).labels.values.tolist()
    [0, 1, 0]
    """
    _, _, frame = _taken_in(source, id_column, table.dialect)
    if label_column in frame.columns:
        frame = frame.drop(str(label_column))
    spare = "label"
    while spare in frame.columns:
        spare += "_"
    alternating = pl.Series(spare, [number % 2 for number in range(frame.height)])
    return own_data(
        frame.with_columns(alternating),
        label_column=spare,
        id_column=id_column,
        table=replace(table, labels=PLAIN),
    )


def ids_alone(source: object, *, id_column: str, dialect: Dialect = USUAL) -> RowIds:
    """The ids of a table, in its order.

    Args:
        source: A path to a CSV or Parquet file, or a pandas or polars frame.
        id_column: The column that names the rows.
        dialect: How a CSV file is written.

    Raises:
        ColumnError: There is no such column.
        RowIdError: The ids are not fit for use.
        FileError: The file cannot be read.

    >>> ids_alone(pl.DataFrame({"who": ["a", "b"], "age": [31, 44]}), id_column="who")
    RowIds(2 rows)
    """
    _, where, frame = _taken_in(source, id_column, dialect)
    _require(frame, "id", id_column, where)
    return RowIds.of(frame[id_column])


def _taken_in(
    source: object, id_column: str | None, dialect: Dialect
) -> tuple[str, str, pl.DataFrame]:
    if isinstance(source, str | Path):
        path = Path(source)
        # As text: a leading zero of an id counts.
        text = [] if id_column is None else [id_column]
        return path.name, str(path), read_frame(path, text=text, dialect=dialect)
    return "own data", "", as_frame(source)


def _check_names(columns: list[str], where: str) -> None:
    for place, column in enumerate(columns, start=1):
        if not column.strip():
            raise ColumnError(
                f"column {place} of {len(columns)} has no name",
                where=where,
                hint="name it in the header, or drop it (pandas writes its index that way)",
            )
