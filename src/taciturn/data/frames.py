"""Frames: polars series and matrices from any data, and the names of columns that are refused."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.foreign import foreign_series, is_pandas
from taciturn.errors import ColumnError, DataError, ShapeError, nearest

_NUMBER = re.compile(r"-?\d+([.,]\d+)?(_duplicated_\d+)?")
_COLUMNS_AT_ONCE = 16
_ROWS_AT_ONCE = 1024


def is_frame(data: object) -> bool:
    """Whether an object is a pandas or polars table with named columns.

    >>> is_frame(pl.DataFrame({"a": [1]})), is_frame(np.zeros((2, 2)))
    (True, False)
    """
    pandas_frame = is_pandas(data) and type(data).__name__ == "DataFrame"
    return pandas_frame or isinstance(data, pl.DataFrame | pl.LazyFrame)


def collected(data: Any) -> Any:  # noqa: ANN401 - whatever scikit-learn takes
    """Collect a polars LazyFrame, and return any other data as they are."""
    return data.collect() if isinstance(data, pl.LazyFrame) else data


def as_frame(data: object) -> pl.DataFrame:
    """A polars frame from a pandas or polars one; NaN of pandas becomes null."""
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if isinstance(data, pl.DataFrame):
        return data
    if not is_frame(data):
        raise ShapeError(
            f"a table cannot be made from {type(data).__name__}",
            hint="pass a pandas or polars DataFrame",
        )
    table: Any = data
    names = [str(name) for name in table.columns]
    require_distinct(names)
    # By position: a pandas column's name need not be text.
    return pl.DataFrame(
        [as_series(table.iloc[:, i], name=name) for i, name in enumerate(names)],
    )


def as_series(data: object, *, name: str, error: type[DataError] = ColumnError) -> pl.Series:
    """A polars series from a polars or pandas series, a 1-D array or a list."""
    if isinstance(data, pl.Series):
        return data.alias(name)
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype.kind in "biuf":
        return pl.Series(name, data)
    return foreign_series(data, name, error)


def matrix_of(rows: int, width: int, columns: Iterable[tuple[int, FloatArray]]) -> FloatArray:
    """A C-contiguous matrix filled from columns, each with its place; every place comes once."""
    matrix = np.empty((rows, width))
    fill_columns(matrix, columns)
    return matrix


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written: the caller's own array stays as writable as it was."""
    view = values.view()
    view.flags.writeable = False
    return view


def fill_columns(matrix: FloatArray, columns: Iterable[tuple[int, FloatArray]]) -> None:
    """Write columns, each at its place, into a matrix."""
    source, rows = iter(columns), len(matrix)
    # A few columns and a thousand rows at a time: column by column, each value written would
    # fetch a cache line of its own, at several times the cost for a million rows.
    while batch := list(itertools.islice(source, _COLUMNS_AT_ONCE)):
        for start in range(0, rows, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            for place, values in batch:
                matrix[part, place] = values[part]


def require_distinct(names: list[str], *, where: str = "") -> None:
    """Refuse repeated column names."""
    if len(set(names)) == len(names):
        return
    require_header(names, where=where)
    again = next(name for i, name in enumerate(names) if name in names[:i])
    raise ColumnError(
        f"column {again!r} appears {names.count(again)} times",
        where=where,
        hint="rename or drop the repeated column",
    )


def require_header(names: Collection[str], *, where: str = "") -> None:
    """Refuse names of columns that are mostly numbers: the table has no header."""
    numbers = sum(_NUMBER.fullmatch(name.strip()) is not None for name in names)
    if 2 * numbers > len(names):
        raise ColumnError(
            "the first line looks like a row of data, and not like names of columns",
            where=where,
            hint="write the names of the columns in the first line",
        )


def require_names(columns: Sequence[object], *, where: str = "") -> None:
    """Refuse a column without a name."""
    for place, name in enumerate(columns, start=1):
        if not isinstance(name, str) or not name.strip():
            raise ColumnError(
                f"column {place} of {len(columns)} has no name",
                where=where,
                hint="name it, or drop it (pandas writes its index that way)",
            )


def require_column(
    columns: Collection[str], column: str, role: str = "", *, where: str = ""
) -> None:
    """Refuse a table without a column, and name the most similar one."""
    if column not in columns:
        require_header(columns, where=where)
        raise ColumnError(
            f"there is no {role}{' ' if role else ''}column {column!r}",
            where=where,
            hint=nearest(column, columns),
        )
