"""Column parsing: a raw column's values as numbers or as levels, whatever type they came in.

A date is read as the days since 1970-01-01, with a fraction where it has a time of day. Its year,
month and weekday can be read too; weekday 1 is Monday. Offsets from UTC are not looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.dates import ISO, parsed_dates
from taciturn.data.ids import RowIds, row_name
from taciturn.data.number_formats import MARK_NAMES, Decimal, parsed_numbers
from taciturn.data.yes_no import YES_NO
from taciturn.errors import (
    ColumnError,
    ConfigError,
    DataError,
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

Spelling: TypeAlias = Literal["exact", "normalised", "yes-no"]

_MICROSECONDS = 86_400_000_000
# Some 260,000 years before or after 1970: polars has no dates beyond.
_MOST_DAYS = 95_000_000
_TICKS_A_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True, slots=True)
class Reading:
    """Parsing of a raw value.

    ``formats`` are ``strftime`` formats of dates, or ``iso``; without one ISO 8601. ``decimal`` is
    the decimal mark of numbers with currency signs and thousands separators, "either" where each
    value decides; None for plain numbers. ``spelling`` says which texts are one level: "normalised"
    ignores case and surrounding blanks, "yes-no" takes any word for yes and no.
    """

    kind: ReadingKind = "number"
    formats: tuple[str, ...] = ()
    decimal: Decimal | None = None
    spelling: Spelling = "exact"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(
                f"a column cannot be read as {self.kind!r}",
                where="reading",
                hint=nearest(str(self.kind), KINDS),
            )

    @property
    def is_text(self) -> bool:
        """Whether raw values are needed as text, whatever they look like."""
        return self.kind != "number" or self.decimal is not None

    def named(self, column: str) -> str:
        """Name of the parsed column: a part of a date has its own."""
        return f"{column}.{self.kind}" if self.kind in PARTS else column

    def numbers(self, series: pl.Series, ids: RowIds | None = None) -> FloatArray:
        """Values of a column as float64, NaN where missing."""
        if self.kind == "number":
            return numbers(series, ids, self.decimal)
        moments = dates(series, self.formats, ids)
        if self.kind != "days":
            return self._part(moments).cast(pl.Float64).to_numpy()
        # By NumPy: polars multiplies by the reciprocal, which rounds otherwise.
        days: FloatArray = moments.to_physical().cast(pl.Float64).to_numpy() / _MICROSECONDS
        return days

    def levels(self, series: pl.Series) -> pl.Series:
        """Values of a column as the text of their levels, null where missing."""
        if self.kind != "number":
            return self._part(dates(series, self.formats)).cast(pl.String)
        return self.spelled(as_levels(series))

    def spelled(self, text: pl.Series) -> pl.Series:
        """Texts such that those of one level are equal."""
        if self.spelling == "exact":
            return text
        text = text.str.strip_chars().str.to_lowercase()
        return text.replace(YES_NO) if self.spelling == "yes-no" else text

    def _part(self, moments: pl.Series) -> pl.Series:
        part: pl.Series = getattr(moments.dt, self.kind)()
        return part


NUMBER = Reading()


def without_blanks(text: pl.Series) -> pl.Series:
    """Texts, null where one is empty: among numbers and dates that is a missing value."""
    blank = text.str.contains(r"^\s*$")
    return text.set(blank, None) if blank.any() else text


def dates(series: pl.Series, formats: tuple[str, ...] = (), ids: RowIds | None = None) -> pl.Series:
    """Values of a column as datetimes, null where missing; ``formats`` are as in ``Reading``."""
    kind = series.dtype
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        _require_in_calendar(series, ids)
        local = series if kind == pl.Date else series.dt.replace_time_zone(None)
        return local.cast(pl.Datetime("us"))
    if not (kind in (*TEXT, pl.Null) or kind.is_integer() or (kind.is_float() and formats)):
        raise ColumnError(
            f"column {series.name!r} is {kind}, which is not a date",
            setting="type",
            hint=Hint("leave it out of {type}"),
        )
    text = without_blanks(as_levels(series))
    moments = parsed_dates(text, formats)
    written = " or ".join(form.replace(ISO, "in ISO 8601") for form in formats)
    require_none(
        moments.is_null() & text.is_not_null(),
        f"not dates written {f'as {written}' if formats else 'in ISO 8601 (such as 2026-01-31)'}",
        ids,
        "say how they are written, with one format or a list: {date_format}; or which words mean "
        "that a value is missing: {na_values}",
        date_format={series.name: "%d.%m.%Y"},
        na_values=["WORD"],
    )
    return moments


def _require_in_calendar(series: pl.Series, ids: RowIds | None) -> None:
    """Raise ``ColumnError`` for dates beyond the calendar, on which polars panics."""
    kind = series.dtype
    ticks = 86_400 * _TICKS_A_SECOND[kind.time_unit] if isinstance(kind, pl.Datetime) else 1
    count, most = series.to_physical(), min(_MOST_DAYS * ticks, 2**63 - 1)
    wrong = (count > most) | (count < -most)
    require_none(wrong, "no dates of any calendar", ids, "write null where a date is missing")


def numbers(
    series: pl.Series, ids: RowIds | None = None, decimal: Decimal | None = None
) -> FloatArray:
    """A column's numbers, booleans or text as float64, NaN where missing.

    ``decimal`` is as in ``Reading``.
    """
    kind = series.dtype
    if not (kind.is_numeric() or kind in (pl.Boolean, pl.Null, *TEXT)):
        raise kind_error(series)
    plain = without_blanks(series.cast(pl.String)) if kind in TEXT else series
    if decimal is not None and plain.dtype == pl.String:
        result = parsed_numbers(plain, decimal)
    else:
        result = plain.cast(pl.Float64, strict=False)
    require_no_words(result.is_null() & plain.is_not_null(), ids, decimal)
    way_out = "replace them, leave them out as missing, or leave the column out: {drop}"
    infinite = result.is_infinite()
    require_none(infinite, "infinite", ids, way_out, InfiniteValueError, drop=[series.name])
    return result.to_numpy()


def as_levels(series: pl.Series) -> pl.Series:
    """Values of a column as the text of their levels, null where missing."""
    kind = series.dtype
    if kind in (*TEXT, pl.Boolean, pl.Null) or kind.is_integer():
        return series.cast(pl.String)
    if kind.is_float():
        # Whole numbers become real ones in pandas where a value is missing.
        plain = series.fill_nan(None)
        whole = plain.cast(pl.Int64, strict=False)
        if whole.null_count() == plain.null_count() and (whole.cast(kind) == plain).all():
            return whole.cast(pl.String)
    raise ColumnError(
        f"column {series.name!r} is {kind}, which cannot be categories",
        setting="type",
        hint=Hint(
            "cut it into intervals: {bins}; or turn it into text or whole numbers",
            bins={series.name: 5},
        ),
    )


# --- errors --------------------------------------------------------------------------------------


def require_none(
    wrong: pl.Series,
    problem: str,
    ids: RowIds | None,
    hint: str,
    error: type[DataError] = ColumnError,
    **values: object,
) -> None:
    """Raise an error that says how many values of a column are wrong, and where the first is.

    ``hint`` is the template of a ``Hint`` with these values.
    """
    if wrong.any():
        raise error(
            f"column {wrong.name!r}: {wrong.sum()} of {len(wrong)} values are {problem}",
            where=f"first at {row_name(int(wrong.arg_max() or 0), ids)}",
            hint=Hint(hint, **values),
        )


def require_no_words(wrong: pl.Series, ids: RowIds | None, decimal: Decimal | None = None) -> None:
    """Refuse words among numbers; ``decimal`` is as in ``Reading``."""
    mark = "" if decimal is None else f" with a decimal {MARK_NAMES[decimal]}"
    require_none(
        wrong,
        f"not numbers{mark}",
        ids,
        "correct them; or say which words mean that a value is missing: {na_values}; or take the "
        "column as categories: {type}",
        na_values=["WORD"],
        type={wrong.name: "category"},
    )


def filled(name: str, values: FloatArray, impute: float | None, ids: RowIds | None) -> FloatArray:
    """Numbers with their missing ones imputed; ``impute`` None refuses them."""
    missing = np.isnan(values)
    if not missing.any():
        return values
    if impute is None:
        require_none(
            pl.Series(name, missing),
            "missing",
            ids,
            "fill them in: {impute}; or drop the rows, or the column: {drop}",
            MissingValueError,
            impute=("median", "mean"),
            drop=[name],
        )
        return values
    return np.where(missing, impute, values)


def kind_error(series: pl.Series) -> ColumnError:
    """Error for a type of column that no rule takes."""
    return ColumnError(
        f"column {series.name!r} is {series.dtype}: neither numbers, booleans, dates nor text",
        hint=Hint("leave it out: {drop}", drop=[series.name]),
    )
