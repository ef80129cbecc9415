"""Own data: a person's file or frame, with its label column and perhaps an id column named."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from taciturn.data.files import read_frame
from taciturn.data.frames import as_frame
from taciturn.data.ids import RowIds, row_name
from taciturn.data.prepare import PrepareSettings
from taciturn.data.raw import RawData
from taciturn.data.tables import LabelTable
from taciturn.errors import ColumnError, ConfigError, LabelValueError, nearest

DEFAULTS = PrepareSettings(impute="median", scale="standard", clip=None, scale_categories=False)

_TRUTH = {"0": 0, "1": 1, "false": 0, "true": 1}


def own_data(
    source: object,
    *,
    label_column: str,
    id_column: str | None = None,
    settings: PrepareSettings = DEFAULTS,
) -> RawData:
    """Take in a table of one's own.

    Args:
        source: A path to a CSV or Parquet file, or a pandas or polars frame.
        label_column: The column to predict: 0 and 1, or booleans, or their text.
        id_column: The column that names the rows; they are numbered from 0 where absent.
        settings: How to prepare the features.

    Returns:
        The data with every other column as a raw feature.

    Raises:
        ColumnError: If a named column is absent, a column has no name, or no feature is left.
        RowIdError: If the ids are not fit for use.
        LabelValueError: If a label is neither 0 nor 1.
        MissingValueError: If a label is missing.
        FileError: If the file cannot be read.

    >>> table = pl.DataFrame({"who": ["a", "b"], "age": [31, 44], "paid": [True, False]})
    >>> own_data(table, label_column="paid", id_column="who")
    RawData(own data, 2 rows, 1 raw columns)
    """
    if label_column == id_column:
        raise ConfigError(
            f"column {label_column!r} is named as id and as label",
            hint="name two different columns",
        )
    name, where, frame = _taken_in(source, id_column)
    for role, column in (("label", label_column), ("id", id_column)):
        if column is not None and column not in frame.columns:
            raise ColumnError(
                f"there is no {role} column {column!r}",
                where=where,
                hint=nearest(column, frame.columns),
            )
    _check_names(frame.columns, where)
    ids = RowIds.numbered(frame.height) if id_column is None else RowIds.of(frame[id_column])
    labels = LabelTable(ids, _label_values(frame[label_column], ids).to_numpy())
    named = [label_column] if id_column is None else [label_column, id_column]
    features = frame.drop(named)
    if not features.width:
        raise ColumnError(
            "no feature columns are left", where=where, hint="add a column beside id and label"
        )
    return RawData(name, features, ids, labels, settings)


def columns_alone(
    source: object,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    settings: PrepareSettings = DEFAULTS,
) -> RawData:
    """Take in a table whose labels do not matter, such as Alice's, who has none.

    Args:
        source: A path to a CSV or Parquet file, or a pandas or polars frame.
        id_column: The column that names the rows.
        label_column: A column to leave out, where it is there.
        settings: How to prepare the features.

    Returns:
        The data under labels that alternate and mean nothing.

    Raises:
        DataError: As ``own_data``.

    >>> columns_alone(pl.DataFrame({"age": [31, 44, 50]})).labels.values.tolist()
    [0, 1, 0]
    """
    _, _, frame = _taken_in(source, id_column)
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
        settings=settings,
    )


def ids_alone(source: object, *, id_column: str) -> RowIds:
    """The ids of a table, in its order.

    Args:
        source: A path to a CSV or Parquet file, or a pandas or polars frame.
        id_column: The column that names the rows.

    Raises:
        ColumnError: There is no such column.
        RowIdError: The ids are not fit for use.
        FileError: The file cannot be read.

    >>> ids_alone(pl.DataFrame({"who": ["a", "b"], "age": [31, 44]}), id_column="who")
    RowIds(2 rows)
    """
    _, where, frame = _taken_in(source, id_column)
    if id_column not in frame.columns:
        raise ColumnError(
            f"there is no id column {id_column!r}",
            where=where,
            hint=nearest(id_column, frame.columns),
        )
    return RowIds.of(frame[id_column])


def _taken_in(source: object, id_column: str | None) -> tuple[str, str, pl.DataFrame]:
    if isinstance(source, str | Path):
        path = Path(source)
        # As text: a leading zero of an id counts.
        text = [] if id_column is None else [id_column]
        return path.name, str(path), read_frame(path, text=text)
    return "own data", "", as_frame(source)


def _check_names(columns: list[str], where: str) -> None:
    for place, column in enumerate(columns, start=1):
        if not column.strip():
            raise ColumnError(
                f"column {place} of {len(columns)} has no name",
                where=where,
                hint="name it in the header, or drop it (pandas writes its index that way)",
            )


def _label_values(series: pl.Series, ids: RowIds) -> pl.Series:
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return series
    text = series.cast(pl.String).str.strip_chars().str.to_lowercase()
    values = text.replace_strict(_TRUTH, default=None, return_dtype=pl.Int8)
    wrong = values.is_null() & text.is_not_null()
    if wrong.any():
        raise LabelValueError(
            f"{wrong.sum()} of {len(text)} labels are text other than 0 and 1 "
            f"({text.n_unique()} distinct values in all)",
            where=f"column {series.name!r}, first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint="turn them into 0 and 1 (1 is the class to predict)",
        )
    return values
