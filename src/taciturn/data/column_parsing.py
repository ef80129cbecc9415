"""Column parsing: a raw column's values as numbers or as levels, whatever type they came in.

A date is read as the days since 1970-01-01, with a fraction where it has a time of day. Its year,
month and weekday can be read too; weekday 1 is Monday. Offsets from UTC are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.ids import RowIds, row_name
from taciturn.errors import (
    ColumnError,
    ConfigError,
    InfiniteValueError,
    MissingValueError,
    nearest,
)
from taciturn.setting_syntax import Hint

TEXT = (pl.String, pl.Categorical, pl.Enum)

DatePart: TypeAlias = Literal["year", "month", "weekday"]
ReadingKind: TypeAlias = Literal["number", "days", "year", "month", "weekday"]
PARTS: tuple[DatePart, ...] = get_args(DatePart)
KINDS: tuple[ReadingKind, ...] = get_args(ReadingKind)

_MICROSECONDS = 86_400_000_000
_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f")
_OTHER_FORMS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d")
_ISO_START = r"^\d{4}-\d{2}-\d{2}(?:$|[T ]\d{2}:\d{2})"


@dataclass(frozen=True, slots=True)
class Reading:
    """Parsing of a raw value; ``format`` is a ``strftime`` format of dates, None ISO 8601."""

    kind: ReadingKind = "number"
    format: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(
                f"a column cannot be read as {self.kind!r}",
                where="reading",
                hint=nearest(str(self.kind), KINDS),
            )

    def named(self, column: str) -> str:
        """Name of the parsed column: a part of a date has its own."""
        return f"{column}.{self.kind}" if self.kind in PARTS else column

    def numbers(self, series: pl.Series, ids: RowIds | None = None) -> FloatArray:
        """Values of a column as float64, NaN where missing."""
        if self.kind == "number":
            return numbers(series, ids)
        moments = dates(series, self.format, ids)
        if self.kind == "days":
            days: FloatArray = moments.to_physical().cast(pl.Float64).to_numpy() / _MICROSECONDS
            return days
        return self._part(moments).cast(pl.Float64).to_numpy()

    def levels(self, series: pl.Series) -> pl.Series:
        """Values of a column as the text of their levels, null where missing."""
        if self.kind == "number":
            return as_levels(series)
        return self._part(dates(series, self.format)).cast(pl.String)

    def _part(self, moments: pl.Series) -> pl.Series:
        if self.kind == "year":
            return moments.dt.year()
        return moments.dt.month() if self.kind == "month" else moments.dt.weekday()


NUMBER = Reading()


def looks_like_dates(series: pl.Series) -> bool:
    """Whether every value of a text column is missing or a date in ISO 8601.

    >>> looks_like_dates(pl.Series(["2026-11-16", None])), looks_like_dates(pl.Series(["2026"]))
    (True, False)
    """
    if series.dtype not in TEXT:
        return False
    text = series.drop_nulls().cast(pl.String)
    # The first is looked at before the rest: most columns of text are no dates.
    if not len(text) or not text.head(1).str.contains(_ISO_START).all():
        return False
    return text.str.contains(_ISO_START).all() and not _iso(text).null_count()


def other_date_form(series: pl.Series) -> str | None:
    """Date format of a text column, where it has dates that are not in ISO 8601.

    >>> other_date_form(pl.Series(["31.1.2026", None])), other_date_form(pl.Series(["1.2", "x"]))
    ('%d.%m.%Y', None)
    """
    text = series.drop_nulls()
    if not len(text) or not text.head(1).str.contains(r"^\d+[./-]\d+[./-]\d+$").all():
        return None
    for form in _OTHER_FORMS:
        if not text.str.to_date(form, strict=False).null_count():
            return form
    return None


def dates(series: pl.Series, form: str | None = None, ids: RowIds | None = None) -> pl.Series:
    """Values of a column as datetimes, null where missing; ``form`` is as in ``Reading.format``."""
    kind = series.dtype
    if kind == pl.Date:
        return series.cast(pl.Datetime("us"))
    if isinstance(kind, pl.Datetime):
        return series.dt.replace_time_zone(None).cast(pl.Datetime("us"))
    if not (kind in (*TEXT, pl.Null) or kind.is_integer()):
        raise ColumnError(
            f"column {series.name!r} is {kind}, which is not a date",
            setting="type",
            hint=Hint("leave it out of {type}"),
        )
    text = series.cast(pl.String)
    moments = _iso(text) if form is None else text.str.to_datetime(form, strict=False)
    wrong = moments.is_null() & text.is_not_null()
    if wrong.any():
        written = "in ISO 8601 (such as 2026-01-31)" if form is None else f"written as {form}"
        raise ColumnError(
            f"column {series.name!r}: {wrong.sum()} of {len(series)} values are not dates "
            f"{written}",
            where=f"first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint=Hint(
                "say how they are written: {date_format}; or correct them",
                date_format={series.name: "%d.%m.%Y"},
            ),
        )
    return moments


def _iso(text: pl.Series) -> pl.Series:
    plain = text.str.replace("T", " ", literal=True)
    plain = plain.str.replace(r"(:\d{2}(?:\.\d+)?)(?:Z|[+-]\d{2}:?\d{2})$", "${1}")
    result = plain.str.to_datetime(_ISO[0], strict=False, time_unit="us")
    for form in _ISO[1:]:
        if result.null_count() == text.null_count():
            break
        moments = plain.str.to_datetime(form, strict=False, time_unit="us")
        result = result.zip_with(result.is_not_null(), moments)
    return result


def numbers(series: pl.Series, ids: RowIds | None = None) -> FloatArray:
    """A column's numbers, booleans or text as float64, NaN where missing."""
    kind = series.dtype
    if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null, *TEXT)):
        raise kind_error(series)
    plain = series.cast(pl.String) if kind in (pl.Categorical, pl.Enum) else series
    result = plain.cast(pl.Float64, strict=False)
    wrong = result.is_null() & plain.is_not_null()
    if wrong.any():
        raise words_error(series, wrong, ids)
    values: FloatArray = result.to_numpy()
    infinite = np.isinf(values)
    if infinite.any():
        raise InfiniteValueError(
            f"column {series.name!r}: {int(infinite.sum())} of {len(series)} values are infinite",
            where=f"first at {row_name(int(infinite.argmax()), ids)}",
            hint=Hint(
                "replace them, leave them out as missing, or leave the column out: {drop}",
                drop=[series.name],
            ),
        )
    return values


def as_levels(series: pl.Series) -> pl.Series:
    """Values of a column as the text of their levels, null where missing."""
    kind = series.dtype
    if kind in (*TEXT, pl.Boolean, pl.Null) or kind.is_integer():
        return series.cast(pl.String)
    if kind.is_float():
        # Whole numbers become real ones in pandas where a value is missing.
        plain = series.fill_nan(None)
        whole = plain.cast(pl.Int64, strict=False)
        if (whole.cast(kind) == plain).fill_null(True).all() and not (
            whole.is_null() & plain.is_not_null()
        ).any():
            return whole.cast(pl.String)
    raise ColumnError(
        f"column {series.name!r} is {kind}, which cannot be categories",
        setting="type",
        hint=Hint(
            "cut it into intervals: {bins}; or turn it into text or whole numbers",
            bins={series.name: 5},
        ),
    )


def words_error(series: pl.Series, wrong: pl.Series, ids: RowIds | None) -> ColumnError:
    """Error for words among numbers."""
    return ColumnError(
        f"column {series.name!r}: {wrong.sum()} of {len(series)} values are not numbers",
        where=f"first at {row_name(int(wrong.arg_max() or 0), ids)}",
        hint=Hint(
            "correct them; or say which words mean that a value is missing: {na_values}; or take "
            "the column as categories: {type}",
            na_values=["WORD"],
            type={series.name: "category"},
        ),
    )


def missing_error(name: str, missing: NDArray[np.bool_], ids: RowIds | None) -> MissingValueError:
    """Error for missing values that are not imputed."""
    return MissingValueError(
        f"column {name!r}: {int(missing.sum())} of {len(missing)} values are missing",
        where=f"first at {row_name(int(missing.argmax()), ids)}",
        hint=Hint(
            "fill them in: {impute}; or drop the rows, or the column: {drop}",
            impute=("median", "mean"),
            drop=[name],
        ),
    )


def kind_error(series: pl.Series) -> ColumnError:
    """Error for a type of column that no rule takes."""
    return ColumnError(
        f"column {series.name!r} is {series.dtype}: neither numbers, booleans, dates nor text",
        hint=Hint("leave it out: {drop}", drop=[series.name]),
    )
