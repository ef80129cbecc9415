"""``FeatureTable``: what a party holds about its rows, checked on entry.

It is a matrix of finite float64 with named columns and row ids. Whatever gets past its constructor
is fit for training, so that nothing behind it checks again. Labels are in a ``LabelTable``.

The values of a large table may lie in a file (``taciturn.memmap``): whatever looks at all of them
does so by ``row_blocks``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.frames import (
    as_frame,
    is_frame,
    matrix_of,
    read_only,
    require_column,
    require_distinct,
    require_names,
)
from taciturn.data.ids import RowIds, checked_indices, row_name
from taciturn.data.label_table import LabelTable
from taciturn.errors import (
    ColumnError,
    ConfigError,
    InfiniteValueError,
    MissingValueError,
    ShapeError,
)
from taciturn.memmap import row_blocks

INTERCEPT = "(intercept)"
_TO_NUMBERS = "convert text and dates first, for instance with a Preparation"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FeatureTable:
    """A party's columns: a read-only matrix of finite numbers with column names and row ids.

    An array that already is C-contiguous float64 is not copied: the table is a view of the caller's
    memory, and the caller must not write into it afterwards.
    """

    ids: RowIds
    columns: tuple[str, ...]
    values: FloatArray
    largest: float = field(init=False)
    _digest: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        columns = tuple(self.columns)
        values = _as_matrix(self.values)
        if values.shape != (len(self.ids), len(columns)):
            raise ShapeError(
                f"the values are {values.shape[0]} rows by {values.shape[1]} columns, "
                f"but there are {len(self.ids)} row ids and {len(columns)} column names",
                hint="give one id per row and one name per column",
            )
        if not len(self.ids):
            raise ShapeError("the table has no rows", hint="pass at least one row")
        require_names(columns)
        require_distinct(list(columns))
        object.__setattr__(self, "largest", _largest(values, columns, self.ids))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "values", read_only(values))

    @classmethod
    def from_data(
        cls,
        data: object,
        *,
        columns: Sequence[str] | None = None,
        ids: object = None,
        id_column: str | None = None,
    ) -> FeatureTable:
        """A table from a NumPy 2-D array, or a pandas or polars frame of numbers.

        An array's columns are called x0, x1, … where no names are given; of a frame, ``columns``
        are those to take. Without ids the rows are numbered from 0.
        """
        if ids is not None and id_column is not None:
            raise ConfigError("ids and id_column are both given", hint="give one of them")
        if is_frame(data):
            return _from_frame(as_frame(data), columns, ids, id_column)
        if id_column is not None:
            raise ColumnError(
                f"id_column {id_column!r} is given, but an array has no named columns",
                hint="pass the ids as ids=",
            )
        values = _as_matrix(data)
        names = columns if columns is not None else [f"x{j}" for j in range(values.shape[1])]
        return cls(RowIds.of_rows(ids, len(values)), tuple(names), values)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def take(self, indices: NDArray[np.integer]) -> FeatureTable:
        """The rows at these positions, in this order."""
        chosen = checked_indices(indices, self.rows)
        return FeatureTable(self.ids.take(chosen), self.columns, self.values[chosen])

    def select(self, columns: Sequence[str]) -> FeatureTable:
        """The named columns, in this order."""
        names = tuple(columns)
        if names == self.columns:
            return self
        places = {name: place for place, name in enumerate(self.columns)}
        for name in names:
            require_column(places, name)
        chosen = np.array([places[name] for name in names], dtype=np.intp)
        return FeatureTable(self.ids, names, np.take(self.values, chosen, axis=1))

    @property
    def free(self) -> int:
        """Number of last columns without penalty: 1 where it is the intercept."""
        return int(self.columns[-1:] == (INTERCEPT,))

    def with_intercept(self) -> FeatureTable:
        """The table with a column of ones, named "(intercept)", at its end."""
        if INTERCEPT in self.columns:
            raise ColumnError(f"the table already has {INTERCEPT}", hint="add it once only")
        values = np.empty((self.rows, len(self.columns) + 1))
        for place, block in row_blocks(self.values):
            values[place, :-1] = block
        values[:, -1] = 1.0
        return FeatureTable(self.ids, (*self.columns, INTERCEPT), values)

    def deviations(self) -> FloatArray:
        """Standard deviation of each column, of the population."""
        mean, square = np.zeros(len(self.columns)), np.zeros(len(self.columns))
        for _, block in row_blocks(self.values):
            mean += block.sum(axis=0) / self.rows
        for _, block in row_blocks(self.values):
            square += ((block - mean) ** 2).sum(axis=0)
        return np.asarray(np.sqrt(square / self.rows))

    def digest(self) -> str:
        """SHA-256 over column names, row ids and little-endian values, as hexadecimal text."""
        if not self._digest:
            # A session asks several times, and the table may be larger than memory.
            self._digest.append(self._hash())
        return self._digest[0]

    def _hash(self) -> str:
        sha = hashlib.sha256()
        for name in self.columns:
            text = name.encode()
            sha.update(len(text).to_bytes(8, "little") + text)
        # A length no name has ends the list of names.
        sha.update(b"\xff" * 8 + bytes.fromhex(self.ids.digest()))
        for _, block in row_blocks(self.values):
            sha.update(block.astype("<f8", copy=False).reshape(-1).view(np.uint8).data)
        return sha.hexdigest()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureTable)
            and self.columns == other.columns
            and self.ids == other.ids
            and all(
                np.array_equal(block, other.values[place])
                for place, block in row_blocks(self.values)
            )
        )

    def __repr__(self) -> str:
        return f"FeatureTable({self.rows} rows, {len(self.columns)} columns)"


def _as_matrix(data: object) -> FloatArray:
    if not isinstance(data, np.ndarray):
        raise ShapeError(
            f"a table cannot be made from {type(data).__name__}",
            hint="pass a NumPy 2-D array, or a pandas or polars DataFrame",
        )
    if data.ndim != 2:
        raise ShapeError(
            f"the values have {data.ndim} dimensions {data.shape}, not 2",
            hint="pass rows by columns; one column is array.reshape(-1, 1)",
        )
    if data.dtype.kind not in "fiub":
        raise ColumnError(
            f"the values are {data.dtype}, not numbers",
            hint=_TO_NUMBERS,
        )
    return np.ascontiguousarray(data, dtype=np.float64)


def _largest(values: FloatArray, columns: tuple[str, ...], ids: RowIds) -> float:
    largest = 0.0
    for place, block in row_blocks(values):
        if not block.size:
            break
        # A NaN makes both extremes NaN: one look at them tells that every value is finite.
        extreme = max(float(block.max()), -float(block.min()))
        if not math.isfinite(extreme):
            _refuse_not_finite(block, columns, ids, place.start)
        largest = max(largest, extreme)
    return largest


def _refuse_not_finite(
    block: FloatArray, columns: tuple[str, ...], ids: RowIds, start: int
) -> None:
    row, column = (int(place) for place in np.argwhere(~np.isfinite(block))[0])
    where = f"column {columns[column]!r}, {row_name(start + row, ids)}"
    if np.isnan(block[row, column]):
        raise MissingValueError(
            "a value is missing (NaN)",
            where=where,
            hint="impute it (a Preparation does), or drop the row or the column",
        )
    raise InfiniteValueError(
        "a value is infinite", where=where, hint="replace it, or drop the row or the column"
    )


def _from_frame(
    frame: pl.DataFrame, columns: Sequence[str] | None, ids: object, id_column: str | None
) -> FeatureTable:
    if id_column is not None:
        require_column(frame.columns, id_column, "id")
        ids = frame[id_column]
        frame = frame.drop(id_column)
    names = list(columns) if columns is not None else frame.columns
    # One column after the other: the one full-size array made here is the table's own.
    numbers = ((place, _numbers(frame, name)) for place, name in enumerate(names))
    values = matrix_of(frame.height, len(names), numbers)
    return FeatureTable(RowIds.of_rows(ids, frame.height), tuple(names), values)


def _numbers(frame: pl.DataFrame, name: str) -> FloatArray:
    require_column(frame.columns, name)
    series = frame[name]
    if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        raise ColumnError(
            f"column {name!r} is {series.dtype}, not numbers",
            hint=_TO_NUMBERS,
        )
    return series.cast(pl.Float64).to_numpy()


@dataclass(frozen=True, slots=True)
class SideTables:
    """One side's prepared rows; Alice's have no labels, and nothing may be held out."""

    train: FeatureTable
    labels: LabelTable | None
    held_out: FeatureTable | None
    held_out_labels: LabelTable | None
