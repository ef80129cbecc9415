"""Tables: what a party holds about its rows, checked on entry.

A ``FeatureTable`` is a matrix of finite float64 with named columns and row ids; a ``LabelTable`` is
a vector of labels with row ids: 0 and 1, or numbers that its family can have. Whatever gets past
their constructors is fit for training, so that nothing behind them checks again. Labels are the
secret: a ``LabelTable`` never shows its values, and errors about it carry counts.

The values of a large table may lie in a file (``taciturn.memmap``): whatever looks at all of them
does so by ``row_blocks``.

Only the party with the labels can compare columns with them: Bob, for his own columns, and a
simulation. Of Alice's columns only names and values are looked at, by her.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import BoolArray, ByteLabels, FloatArray
from taciturn.data.frames import (
    as_frame,
    as_series,
    is_frame,
    matrix_of,
    require_column,
    require_distinct,
    require_names,
)
from taciturn.data.ids import RowIds, checked_indices, row_name
from taciturn.errors import (
    ColumnError,
    ConfigError,
    DataError,
    InfiniteValueError,
    LabelValueError,
    MissingValueError,
    ShapeError,
)
from taciturn.families.base import UNCHANGED, Family, Response
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.memmap import row_blocks
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

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
        object.__setattr__(self, "values", _read_only(values))

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
        return cls(_ids_or_numbers(ids, len(values)), tuple(names), values)

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelTable:
    """Bob's labels, never shown: booleans, numbers that are exactly 0 or 1, or those of a family.

    ``exposure`` and ``weights`` are of other families than ``binomial``: how long or how much each
    row was observed, and how much it counts. ``response`` has the coordinates of scores.
    """

    ids: RowIds
    values: NDArray[Any]
    family: str = BINOMIAL
    exposure: FloatArray | None = None
    weights: FloatArray | None = None
    response: Response = UNCHANGED

    def __post_init__(self) -> None:
        series = as_series(self.values, name="labels", error=LabelValueError)
        if len(series) != len(self.ids):
            raise ShapeError(
                f"there are {len(series)} labels for {len(self.ids)} row ids",
                hint="give one label per row",
            )
        if not len(series):
            raise ShapeError("there are no labels", hint="pass at least one row")
        checked = _checked_labels(series, self.ids, self.kind)
        object.__setattr__(self, "values", _read_only(checked))
        for name in ("exposure", "weights"):
            if getattr(self, name) is not None:
                given = as_series(getattr(self, name), name=name, error=ColumnError)
                object.__setattr__(self, name, _read_only(checked_factor(given, self.ids, name)))

    @classmethod
    def from_data(
        cls,
        data: object,
        *,
        ids: object = None,
        family: str = BINOMIAL,
        exposure: object = None,
        weights: object = None,
    ) -> LabelTable:
        """Labels from a list, a 1-D array, or a pandas or polars series."""
        series: Any = as_series(data, name="labels", error=LabelValueError)
        beside: Any = exposure, weights
        return cls(_ids_or_numbers(ids, len(series)), series, family, *beside)

    @property
    def kind(self) -> Family:
        """The family of the labels."""
        return FAMILIES[self.family]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.ids)

    def take(self, indices: NDArray[np.integer], ids: RowIds | None = None) -> LabelTable:
        """The rows at these positions, in this order, under their own or other ids."""
        chosen = checked_indices(indices, self.rows)
        return self._moved(chosen, self.ids.take(chosen) if ids is None else ids)

    def permuted(self, entropy: Entropy) -> LabelTable:
        """The same labels, with exposure and weight, assigned to the rows at random."""
        return self._moved(entropy.permutation(self.rows), self.ids)

    def _moved(self, places: NDArray[np.integer], ids: RowIds) -> LabelTable:
        exposure, weights = (
            None if beside is None else beside[places] for beside in (self.exposure, self.weights)
        )
        values = self.values[places]
        return replace(self, ids=ids, values=values, exposure=exposure, weights=weights)

    def with_random_labels(self, entropy: Entropy, family: str | None = None) -> LabelTable:
        """Independent fair random labels for the same rows, of this family or another.

        They are the ``two_labels`` of the family.
        """
        bits = (entropy.words(self.rows) & np.uint64(1)).astype(np.int8)
        chosen = self.family if family is None else family
        return LabelTable(self.ids, bits + FAMILIES[chosen].two_labels[0], chosen)

    @property
    def upper(self) -> BoolArray:
        """Which rows have the label 1; of other families, one above the median.

        At least one is where labels differ: where none is above, those at the median are.
        """
        if self.kind.has_classes:
            return np.asarray(self.values == 1)
        middle = np.median(self.values)
        above: BoolArray = self.values > middle
        return above if above.any() else np.asarray(self.values >= middle)

    def standardised(self, *, intercept: bool) -> LabelTable:
        """The same labels, with coordinates of scores in which the best constant is 0."""
        if self.kind.has_classes:
            return self
        ones = np.ones(self.rows)
        exposure, weights = (
            ones if given is None else given for given in (self.exposure, self.weights)
        )
        values = np.asarray(self.values, dtype=np.float64)
        return replace(
            self, response=self.kind.response(values, exposure, weights, intercept=intercept)
        )

    def digest(self) -> str:
        """SHA-256 over row ids and labels, as hexadecimal text: as secret as the labels."""
        sha = hashlib.sha256(self.ids.digest().encode() + self.values.tobytes())
        for name in ("exposure", "weights"):
            if getattr(self, name) is not None:
                sha.update(name.encode() + getattr(self, name).tobytes())
        return sha.hexdigest()

    def require_classes(self) -> None:
        """Raise unless the labels are of two classes, and both occur."""
        if not self.kind.has_classes:
            raise ConfigError(
                f"weight of evidence counts labels of two classes, and these are of {self.family}",
                setting="family",
                hint=Hint("leave {family} out"),
            )
        self.require_variation()

    def rarest_class(self) -> int:
        """Number of labels of the rarer class; of other families, of all labels."""
        if not self.kind.has_classes:
            return self.rows
        ones = int(np.count_nonzero(self.values))
        return min(ones, self.rows - ones)

    def require_variation(self) -> None:
        """Raise unless labels differ; the error does not say which one occurs."""
        if self.values.min() == self.values.max():
            classes = self.kind.has_classes
            raise LabelValueError(
                f"all {self.rows} labels are the same",
                where="the label column",
                hint="a classifier needs rows of both classes: use more rows or another column"
                if classes
                else "there is nothing to predict: use more rows or another column",
            )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, LabelTable)
            and self.ids == other.ids
            and self.family == other.family
            and all(
                np.array_equal(getattr(self, name), getattr(other, name))
                for name in ("values", "exposure", "weights")
            )
        )

    def __repr__(self) -> str:
        return f"LabelTable({self.rows} rows, <hidden>)"


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    # A view: the caller's own array stays as writable as it was.
    view = values.view()
    view.flags.writeable = False
    return view


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


def _ids_or_numbers(ids: object, rows: int) -> RowIds:
    return RowIds.numbered(rows) if ids is None else RowIds.from_values(ids)


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
    return FeatureTable(_ids_or_numbers(ids, frame.height), tuple(names), values)


def _numbers(frame: pl.DataFrame, name: str) -> FloatArray:
    require_column(frame.columns, name)
    series = frame[name]
    if not (series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null)):
        raise ColumnError(
            f"column {name!r} is {series.dtype}, not numbers",
            hint=_TO_NUMBERS,
        )
    return series.cast(pl.Float64).to_numpy()


def _require_none(
    wrong: NDArray[np.bool_],
    problem: str,
    ids: RowIds,
    error: type[DataError],
    hint: str | Hint,
    setting: str = "",
) -> None:
    """Raise an error that counts the wrong rows and names the first, and never a value."""
    if wrong.any():
        raise error(
            problem.format(f"{int(wrong.sum())} of {len(wrong)}"),
            where=row_name(int(wrong.argmax()), ids),
            setting=setting,
            hint=hint,
        )


def _checked_labels(series: pl.Series, ids: RowIds, kind: Family) -> NDArray[Any]:
    """Labels that their family can have, without gaps."""
    series = series.fill_nan(None) if series.dtype.is_float() else series
    missing = "{} labels are missing"
    drop = "drop the rows without a label"
    _require_none(series.is_null().to_numpy(), missing, ids, MissingValueError, drop)
    if kind.has_classes:
        return _classes(series, ids)
    if not series.dtype.is_numeric():
        raise LabelValueError(
            f"the labels are {'text' if series.dtype == pl.String else series.dtype}, and those of "
            f"{kind.name} are numbers",
            setting="family",
            hint=Hint("name another label column, or use {family}", family=BINOMIAL),
        )
    values = series.cast(pl.Float64).to_numpy()
    # The family is asked about finite values only.
    finite = np.isfinite(values)
    wrong = ~kind.possible(values) if finite.all() else ~finite
    problem = f"{{}} labels are not {kind.valid}, and {kind.name} has no others"
    way_out = Hint(kind.remedy, family="gaussian")
    _require_none(wrong, problem, ids, LabelValueError, way_out, "family")
    return np.ascontiguousarray(values)


def _classes(series: pl.Series, ids: RowIds) -> ByteLabels:
    hint = "turn them into 0 and 1 (1 is the class to predict)"
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        raise LabelValueError(f"the labels are {series.dtype}, not 0 and 1", hint=hint)
    values = series.to_numpy()
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        problem = f"{{}} labels are neither 0 nor 1 ({series.n_unique()} distinct values in all)"
        _require_none(wrong, problem, ids, LabelValueError, hint)
    return values.astype(np.int8)


def checked_factor(series: pl.Series, ids: RowIds, name: str) -> FloatArray:
    """Exposures or weights: finite numbers, above 0 or at least 0."""
    if len(series) != len(ids):
        raise ShapeError(
            f"{name} has {len(series)} rows, and there are {len(ids)} labels", setting=name
        )
    if not series.dtype.is_numeric():
        raise ColumnError(
            f"{name} is {series.dtype}, not numbers",
            setting=name,
            hint="name a column of numbers",
        )
    series = series.cast(pl.Float64).fill_nan(None)
    problem, complete = f"{name} is missing in {{}} rows", "complete these rows, or drop them"
    _require_none(series.is_null().to_numpy(), problem, ids, MissingValueError, complete, name)
    values = series.to_numpy()
    if name == "exposure":
        wrong, valid = values <= 0, "above 0"
        way_out = "a row that was not observed has no rate: drop it, or correct its exposure"
    else:
        wrong, valid = values < 0, "0 or more"
        way_out = "give such rows the weight 0, or drop them"
    problem = f"{name} is not {valid} in {{}} rows"
    _require_none(wrong | ~np.isfinite(values), problem, ids, ColumnError, way_out, name)
    if not values.any():
        raise ColumnError(
            "all weights are 0",
            setting=name,
            hint=Hint("name another column, or leave {weights} out"),
        )
    return np.ascontiguousarray(values)


@dataclass(frozen=True, slots=True)
class SideTables:
    """One side's prepared rows; Alice's have no labels, and nothing may be held out."""

    train: FeatureTable
    labels: LabelTable | None
    held_out: FeatureTable | None
    held_out_labels: LabelTable | None
