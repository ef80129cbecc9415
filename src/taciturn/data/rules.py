"""Rules: what becomes of one source column.

With ``c`` the centre and ``s`` the scale:

- numeric: missing values take ``impute``; the output is ``(x - c) / s``, then clipped to ±``clip``.
- categorical: one output column ``column=level`` per level but the dropped one, 1 where the row has
  that level; an unknown or missing level is 0 in all of them. Then ``(x - c) / s``, clipped.

``s = 0`` is the mark of a column that says nothing on the training rows: its output is zero
whatever the input, in training and ever after.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.ids import RowIds, row_name
from taciturn.errors import ColumnError, ConfigError, InfiniteValueError, MissingValueError

TEXT = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True, slots=True)
class NumericRule:
    """What becomes of a numeric column.

    Args:
        column: The source column; the output column has the same name.
        impute: What a missing value becomes; None refuses missing values.
        center: Subtracted from every value.
        scale: What the difference is divided by; 0 makes the output zero whatever the input.
        clip: The largest absolute value of the output, or None.

    >>> NumericRule("age", impute=40.0, center=38.5, scale=13.5).describe()
    'age: numeric; missing becomes 40; minus 38.5, divided by 13.5'
    """

    column: str
    impute: float | None = None
    center: float = 0.0
    scale: float = 1.0
    clip: float | None = None

    def __post_init__(self) -> None:
        where = f"rule of column {self.column!r}"
        if self.impute is not None:
            _require_finite(self.impute, f"{where}, impute")
        _require_finite(self.center, f"{where}, center")
        _check_scale(self.scale, f"{where}, scale")
        check_clip(self.clip, f"{where}, clip")

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the columns it gives: its own."""
        return (self.column,)

    def describe(self) -> str:
        """One line that says exactly what is done."""
        if self.scale == 0:
            return f"{self.column}: zeros (constant or empty on the training rows)"
        steps = ["numeric"]
        refused = "missing is refused"
        steps.append(refused if self.impute is None else f"missing becomes {self.impute:g}")
        plain = (self.center, self.scale) == (0.0, 1.0)
        shift = f"minus {self.center:g}, divided by {self.scale:g}"
        steps.append("not scaled" if plain else shift)
        return f"{self.column}: " + "; ".join(steps + _clip_step(self.clip))

    def arrays(self, series: pl.Series, ids: RowIds | None = None) -> Iterator[FloatArray]:
        """The output column, alone.

        >>> next(NumericRule("age", center=40.0, scale=10.0).arrays(pl.Series([30]))).tolist()
        [-1.0]
        """
        if self.scale == 0:
            yield np.zeros(len(series))
            return
        values = numbers(series, ids)
        missing = np.isnan(values)
        if missing.any():
            if self.impute is None:
                raise missing_error(series.name, missing, ids)
            values = np.where(missing, self.impute, values)
        scaled = (values - self.center) / self.scale
        yield scaled if self.clip is None else np.clip(scaled, -self.clip, self.clip)


@dataclass(frozen=True, slots=True)
class CategoricalRule:
    """What becomes of a column of categories.

    Args:
        column: The source column; an output column is named ``column=level``.
        levels: Every known level, in order.
        dropped: The level that gets no column, or None.
        centers: Subtracted, one per output column; empty where nothing is scaled.
        scales: Divided by, one per output column; 0 makes that column zero whatever the input.
        clip: The largest absolute value of the outputs, or None.

    >>> CategoricalRule("sex", ("F", "M"), dropped="F").outputs
    ('sex=M',)
    """

    column: str
    levels: tuple[str, ...]
    dropped: str | None = None
    centers: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    clip: float | None = None

    def __post_init__(self) -> None:
        where = f"rule of column {self.column!r}"
        if len(set(self.levels)) != len(self.levels):
            raise ConfigError("a level is repeated", where=where, hint="name every level once")
        if self.dropped is not None and self.dropped not in self.levels:
            raise ConfigError("the dropped level is not a level", where=where, hint="drop a level")
        for name, given in (("centers", self.centers), ("scales", self.scales)):
            if given and len(given) != len(self.kept):
                raise ConfigError(
                    f"there are {len(given)} {name} for {len(self.kept)} output columns",
                    where=where,
                    hint="give one per output column, or none",
                )
        for center in self.centers:
            _require_finite(center, f"{where}, centers")
        for scale in self.scales:
            _check_scale(scale, f"{where}, scales")
        check_clip(self.clip, f"{where}, clip")

    @property
    def kept(self) -> tuple[str, ...]:
        """The levels that get a column."""
        return tuple(level for level in self.levels if level != self.dropped)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the columns it gives."""
        return tuple(f"{self.column}={level}" for level in self.kept)

    def describe(self) -> str:
        """One line that says exactly what is done."""
        count = len(self.kept)
        steps = [f"one-hot, {count} column{'' if count == 1 else 's'}"]
        if self.dropped is not None:
            steps.append(f"level {self.dropped} gets no column")
        steps.append("an unknown or missing level gets no column")
        scaled = bool(self.centers or self.scales)
        steps.append("each centred and scaled" if scaled else "0 and 1, not scaled")
        if zeros := sum(scale == 0 for scale in self.scales):
            steps.append(f"{zeros} of them zeros (constant on the training rows)")
        return f"{self.column}: " + "; ".join(steps + _clip_step(self.clip))

    def arrays(self, series: pl.Series, ids: RowIds | None = None) -> Iterator[FloatArray]:
        """The output columns, one after the other.

        >>> [a.tolist() for a in CategoricalRule("x", ("p", "q")).arrays(pl.Series(["q", "?"]))]
        [[0.0, 0.0], [1.0, 0.0]]
        """
        codes = self._codes(series)
        places = {level: place for place, level in enumerate(self.levels)}
        for j, level in enumerate(self.kept):
            # One entry per level, and a last one for unknown and missing.
            indicator = np.zeros(len(self.levels) + 1)
            indicator[places[level]] = 1.0
            yield self._scaled(indicator, j)[codes]

    def _scaled(self, indicator: FloatArray, j: int) -> FloatArray:
        center = self.centers[j] if self.centers else 0.0
        scale = self.scales[j] if self.scales else 1.0
        if scale == 0:
            return np.zeros_like(indicator)
        scaled = (indicator - center) / scale
        return scaled if self.clip is None else np.clip(scaled, -self.clip, self.clip)

    def _codes(self, series: pl.Series) -> NDArray[np.int64]:
        text = as_levels(series)
        if not self.levels:
            return np.zeros(len(series), dtype=np.int64)
        known = text.cast(pl.Enum(list(self.levels)), strict=False).to_physical()
        return known.cast(pl.Int64).fill_null(len(self.levels)).to_numpy()


Rule: TypeAlias = NumericRule | CategoricalRule


def numbers(series: pl.Series, ids: RowIds | None = None) -> FloatArray:
    """A column's values as float64, NaN where missing.

    Args:
        series: Numbers, booleans, or text that reads as numbers.
        ids: The rows' ids, for the messages.

    Raises:
        ColumnError: If a value is not a number.
        InfiniteValueError: If a value is infinite.

    >>> numbers(pl.Series("a", ["1.5", None])).tolist()
    [1.5, nan]
    """
    kind = series.dtype
    if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null, *TEXT)):
        raise kind_error(series)
    plain = series.cast(pl.String) if kind in (pl.Categorical, pl.Enum) else series
    result = plain.cast(pl.Float64, strict=False)
    wrong = result.is_null() & plain.is_not_null()
    if wrong.any():
        raise ColumnError(
            f"column {series.name!r}: {wrong.sum()} of {len(series)} values are not numbers",
            where=f"first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint="correct those values, or prepare the column as categories from the start",
        )
    values: FloatArray = result.to_numpy()
    infinite = np.isinf(values)
    if infinite.any():
        raise InfiniteValueError(
            f"column {series.name!r}: {int(infinite.sum())} of {len(series)} values are infinite",
            where=f"first at {row_name(int(infinite.argmax()), ids)}",
            hint="replace them, or leave them out as missing",
        )
    return values


def as_levels(series: pl.Series) -> pl.Series:
    """A column's values as the text of their levels, null where missing.

    Raises:
        ColumnError: If they are real numbers, dates or the like.

    >>> as_levels(pl.Series("a", [1, 2])).to_list()
    ['1', '2']
    """
    kind = series.dtype
    if kind in (*TEXT, pl.Boolean, pl.Null) or kind.is_integer():
        return series.cast(pl.String)
    raise ColumnError(
        f"column {series.name!r} is {kind}, which cannot be categories",
        hint="turn it into text or whole numbers",
    )


def missing_error(name: str, missing: NDArray[np.bool_], ids: RowIds | None) -> MissingValueError:
    """The error for missing values that nothing fills."""
    return MissingValueError(
        f"column {name!r}: {int(missing.sum())} of {len(missing)} values are missing",
        where=f"first at {row_name(int(missing.argmax()), ids)}",
        hint='impute by "median" or "mean", or drop the rows or the column',
    )


def kind_error(series: pl.Series) -> ColumnError:
    """The error for a kind of column that no rule takes."""
    return ColumnError(
        f"column {series.name!r} is {series.dtype}: neither numbers, booleans nor text",
        hint="drop it, or turn it into a number such as days since a fixed date",
    )


def _clip_step(clip: float | None) -> list[str]:
    return [] if clip is None else [f"clipped to ±{clip:g}"]


def _require_finite(value: float, where: str) -> None:
    if not math.isfinite(value):
        raise ConfigError("a number must be finite", where=where, hint="give a finite number")


def _check_scale(scale: float, where: str) -> None:
    if not (math.isfinite(scale) and scale >= 0):
        raise ConfigError("a scale must be finite, 0 or more", where=where, hint="fit it again")


def check_clip(clip: float | None, where: str) -> None:
    """Refuse a clip that is not a positive number."""
    if clip is not None and not (math.isfinite(clip) and clip > 0):
        raise ConfigError(f"clip is {clip}", where=where, hint="use a positive number, or None")
