"""Dates: text parsed as datetimes, in ISO 8601 or in formats of ``strftime``."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

ISO = "iso"
_ISO_START = r"^\d{4}-\d{2}-\d{2}(?:$|[T ]\d{2}:\d{2})"
_ISO_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f")
# So many different numbers are dates by chance with a probability of less than 1e-14.
_COMPACT_LEAST = 10


def parsed_dates(text: pl.Series, formats: Iterable[str]) -> pl.Series:
    """Datetimes of a text column, null where no format fits; without formats ISO 8601."""
    first, *others = (*formats,) or (ISO,)
    result = _iso_dates(text) if first == ISO else _dates(text, first)
    if others and result.null_count() > text.null_count():
        result = result.zip_with(result.is_not_null(), parsed_dates(text, others))
    return result


def _dates(text: pl.Series, form: str) -> pl.Series:
    moments = text.str.strip_chars().str.to_datetime(form, strict=False, time_unit="us")
    # With %Y, "26" would be a year of antiquity.
    return moments.set((moments.dt.year() < 1000).fill_null(False), None)


def _iso_dates(text: pl.Series) -> pl.Series:
    """Dates in ISO 8601; a time's offset from UTC is not looked at."""
    plain = text.str.replace("T", " ", literal=True)
    plain = plain.str.replace(r"(:\d{2}(?:\.\d+)?)(?:Z|[+-]\d{2}:?\d{2})$", "${1}")
    result = plain.str.to_datetime(_ISO_FORMATS[0], strict=False, time_unit="us")
    for form in _ISO_FORMATS[1:]:
        if result.null_count() > text.null_count():
            moments = plain.str.to_datetime(form, strict=False, time_unit="us")
            result = result.zip_with(result.is_not_null(), moments)
    return result


def are_iso_dates(text: pl.Series) -> bool:
    """Whether every value of a text column is missing or a date in ISO 8601.

    >>> are_iso_dates(pl.Series(["2026-11-16", None])), are_iso_dates(pl.Series(["2026"]))
    (True, False)
    """
    present = text.drop_nulls()
    # The first is looked at before the rest: most columns of text are no dates.
    for rows in (present.head(1), present):
        if not (len(rows) and rows.str.contains(_ISO_START).all()):
            return False
    return not _iso_dates(present).null_count()


def are_compact_dates(series: pl.Series) -> bool:
    """Whether whole numbers are dates such as 20260131."""
    present = series.drop_nulls()
    if not present.is_between(19000101, 20991231).all() or present.n_unique() < _COMPACT_LEAST:
        return False
    return not _dates(present.cast(pl.String), "%Y%m%d").null_count()
