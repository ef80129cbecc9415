"""Foreign tables: pandas, polars and NumPy data taken in as polars frames and series.

pandas is optional, so that its objects are recognised by the name of their module and never by
importing it; they are converted column by column, which needs no Arrow library.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.errors import ColumnError, DataError, ShapeError, nearest

_NUMBER = re.compile(r"-?\d+([.,]\d+)?(_duplicated_\d+)?")
_COLUMNS_AT_ONCE = 16
_ROWS_AT_ONCE = 1024


def is_pandas(data: object) -> bool:
    """Whether an object is pandas' own."""
    return type(data).__module__.split(".")[0] == "pandas"


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
    array = _pandas_array(data) if is_pandas(data) else _array(data)
    if array.ndim != 1:
        raise ShapeError(
            f"{name}: one value per row is needed, not {array.ndim} dimensions {array.shape}",
            hint="pass a 1-D array or a single column",
        )
    if array.dtype.kind == "O":
        return _from_objects(list(array), name, error)
    try:
        # In pandas a NaN is how a missing number is written.
        return pl.Series(name, array, nan_to_null=is_pandas(data))
    except (TypeError, ValueError, pl.exceptions.PolarsError) as problem:
        raise error(
            f"column {name} holds {array.dtype}, which is not supported",
            hint="use numbers, booleans, dates or text",
        ) from problem


def matrix_of(rows: int, width: int, columns: Iterable[tuple[int, FloatArray]]) -> FloatArray:
    """A C-contiguous matrix filled from columns, each with its place; every place comes once."""
    matrix = np.empty((rows, width))
    fill_columns(matrix, columns)
    return matrix


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


def _array(data: object) -> NDArray[Any]:
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, list | tuple) and not any(isinstance(v, list | tuple) for v in data):
        # As objects: NumPy would turn a mix of numbers and text into text without a word.
        array = np.empty(len(data), dtype=object)
        array[:] = data
        return array
    return np.asarray(data)


def _pandas_array(data: object) -> NDArray[Any]:
    series: Any = data
    kind = getattr(series.dtype, "kind", "O")
    if kind in "iufb" and not isinstance(series.dtype, np.dtype):
        # A nullable number: as objects where something is missing, which keeps integers exact.
        if bool(series.isna().any()):
            return np.asarray(series.to_numpy(dtype=object, na_value=None))
        return np.asarray(series.to_numpy(dtype=series.dtype.numpy_dtype))
    array = np.asarray(series.to_numpy())
    if array.dtype.kind == "f":
        return array
    if array.dtype.kind == "O" and bool(series.isna().any()):
        array = array.copy()
        array[np.asarray(series.isna())] = None
    return array


def _from_objects(values: list[object], name: str, error: type[DataError]) -> pl.Series:
    values = [None if _is_missing(value) else value for value in values]
    kinds = {_kind(value) for value in values if value is not None}
    if kinds == {"text"}:
        return pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
    if kinds == {"whole number"}:
        return _whole_numbers(values, name)
    if kinds == {"boolean"}:
        return pl.Series(name, [None if v is None else bool(v) for v in values], dtype=pl.Boolean)
    if kinds and kinds <= {"whole number", "real number"}:
        numbers: list[Any] = values
        return pl.Series(name, [None if v is None else float(v) for v in numbers], dtype=pl.Float64)
    if not kinds:
        return pl.Series(name, [None] * len(values), dtype=pl.Null)
    if kinds <= {"date", "datetime", "Timestamp"} and len(kinds) == 1:
        return pl.Series(name, values)
    raise error(
        f"{name}: kinds of values are mixed or not supported: {', '.join(sorted(kinds))}",
        hint="make them all numbers, all booleans or all text",
    )


def _whole_numbers(values: list[Any], name: str) -> pl.Series:
    whole = [None if v is None else int(v) for v in values]
    if all(v is None or -(2**63) <= v < 2**63 for v in whole):
        return pl.Series(name, whole, dtype=pl.Int64)
    # Beyond 64 bits only the text keeps every digit.
    return pl.Series(name, [None if v is None else str(v) for v in whole], dtype=pl.String)


def _is_missing(value: object) -> bool:
    # NaN is the only value that differs from itself; pandas' NA and NaT go by their names.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int | np.integer):
        return "whole number"
    if isinstance(value, float | np.floating):
        return "real number"
    return type(value).__name__
