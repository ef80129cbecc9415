"""Foreign columns: data of pandas, NumPy and lists taken in as polars series.

pandas is optional, so that its objects are recognised by the name of their module and never by
importing it; they are converted column by column, which needs no Arrow library.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.errors import DataError, ShapeError

# Python's types of one value, with those of NumPy: the first that fits.
_KINDS: tuple[tuple[type, Any, str], ...] = (
    (str, str, "text"),
    (bool, (bool, np.bool_), "boolean"),
    (int, (int, np.integer), "whole number"),
    (float, (float, np.floating), "real number"),
)
_DATES = ("date", "datetime", "Timestamp")


def is_pandas(data: object) -> bool:
    """Whether an object is pandas' own."""
    return type(data).__module__.split(".")[0] == "pandas"


def foreign_series(data: object, name: str, error: type[DataError]) -> pl.Series:
    """A polars series from a pandas series, a 1-D array or a list."""
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


def _from_objects(values: list[Any], name: str, error: type[DataError]) -> pl.Series:
    values = [None if _is_missing(value) else _plain(value) for value in values]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        values, kinds = [None if value is None else float(value) for value in values], {float}
    if kinds == {int} and any(value and not -(2**63) <= value < 2**63 for value in values):
        # Beyond 64 bits only the text keeps every digit.
        values = [None if value is None else str(value) for value in values]
    named = {kind: shown for kind, _, shown in _KINDS}
    unknown = any(kind not in named and kind.__name__ not in _DATES for kind in kinds)
    if unknown or len(kinds) > 1:
        shown = sorted(named.get(kind, kind.__name__) for kind in kinds)
        raise error(
            f"{name}: kinds of values are mixed or not supported: {', '.join(shown)}",
            hint="make them all numbers, all booleans or all text",
        )
    return pl.Series(name, values, None if kinds else pl.Null)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a column
    """A scalar of NumPy, or of a class derived from Python's, as Python's own."""
    return next((kind(value) for kind, kinds, _ in _KINDS if isinstance(value, kinds)), value)


def _is_missing(value: object) -> bool:
    # NaN is the only value that differs from itself; pandas' NA and NaT go by their names.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)
