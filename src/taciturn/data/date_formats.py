"""Date formats: how the dates of a text column are written, found out by ``strptime``.

A format is recognised only where every value has one meaning; what stays open is a ``Doubt``.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from taciturn.data.dates import ISO, are_iso_dates, parsed_dates
from taciturn.data.doubt import Doubt

# With points the day comes first.
_DAYS = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y", "%d %B %Y", "%d-%B-%Y", "%d-%B-%y",
    "%B %d, %Y", "%Y%m%d",
)  # fmt: skip
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_FORMATS = tuple(day + time for day in _DAYS for time in _TIMES)
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[A-Za-z]{0,6}"
ANY_DATE = (
    rf"^\d{{1,4}}[./-](?:\d{{1,2}}|{_MONTH})[./-]\d{{1,4}}(?:\b|T)|^(?:\d{{1,2}} )?{_MONTH} \d"
    r"|^(?:19|20)\d{6}$"
)
# Values that are no dates are searched for this often.
_STRAYS = 20
_YEARS = (1850, 2150)
# Two digits of a year whose century is open: 1931 or 2031.
_OPEN_YEARS = (2031, 2069)


@dataclass(frozen=True, slots=True)
class DateFormats:
    """Formats of a column's dates, the first that fits a value first; empty for ISO 8601 alone."""

    formats: tuple[str, ...]
    words: pl.Series
    doubt: Doubt | None = None


def date_formats(text: pl.Series) -> DateFormats | None:
    """Formats of a text column without missing values; None where most values are no dates.

    >>> str(date_formats(pl.Series(["31.1.2026", "2026-02-01"])))[:43]
    "DateFormats(formats=('iso', '%d.%m.%Y'), wo"
    """
    text = text.str.strip_chars()
    sample = text.gather_every(max(1, len(text) // 100))
    if 2 * sample.str.contains(ANY_DATE).sum() <= len(sample):
        return None
    rest, formats, doubt, strays = text.unique(maintain_order=True), list[str](), None, list[str]()
    looks = _look(rest)
    for _ in range(_STRAYS):
        if not len(rest):
            break
        same = looks == looks[0]
        group = rest.filter(same)
        fitting = _fitting_formats(group)
        if fitting:
            doubt = doubt or _date_doubt(group, fitting)
            formats.append(fitting[0])
        else:
            strays += group.to_list()
        rest, looks = rest.filter(~same), looks.filter(~same)
    words = text.is_in(strays)
    formats = [*dict.fromkeys(formats)]
    # Digits alone are dates only beside others.
    if len(rest) or {*formats} <= {"%Y%m%d"} or 10 * words.sum() > len(text):
        return None
    years = parsed_dates(text, formats).dt.year().drop_nulls()
    if 2 * years.is_between(*_YEARS).sum() < len(years):
        return None
    # A year of four digits first: %Y would not take "26", and %y would take "2026" for "20".
    formats.sort(key=lambda form: ("%Y" not in form and form != ISO, len(form)))
    return DateFormats(() if formats == [ISO] else tuple(formats), words, doubt)


def _look(text: pl.Series) -> pl.Series:
    """What dates of one format have in common: their signs, words, and numbers of four digits."""
    looks = text.str.replace_all(r"(?i)[a-z]+", "a")
    return looks.str.replace_all(r"\d{4}", "Y").str.replace_all(r"\d{1,2}", "0")


def _fitting_formats(group: pl.Series) -> list[str]:
    """Formats that take every value; the first is tried alone, as it tells most of them."""
    if are_iso_dates(group):
        return [ISO]
    fitting = list(_FORMATS)
    for rows in (group.head(1), group):
        fitting = [form for form in fitting if not parsed_dates(rows, [form]).null_count()]
    return fitting


def _date_doubt(group: pl.Series, fitting: list[str]) -> Doubt | None:
    choices = tuple(("date_format", form) for form in fitting)
    first, last = (parsed_dates(group, [form]) for form in (fitting[0], fitting[-1]))
    if (first != last).any():
        reason = "the day or the month may come first"
        return Doubt("dates", str(group.filter(first != last)[0]), reason, choices)
    open_ = first.dt.year().is_between(*_OPEN_YEARS)
    if "%y" in fitting[0] and open_.any():
        return Doubt("dates", str(group.filter(open_)[0]), "the century is open", choices)
    return None
