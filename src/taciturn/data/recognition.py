"""Recognition: how the numbers, dates and yes/no words of a text column are written.

A format is recognised only where every value has one meaning: "3,182.34" and "0,123" are clear,
"1,234" alone is not. Everything else is a ``Doubt``, which names an example and the setting that
decides. Nothing here looks at other columns; the caller may know the decimal mark of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

Mark: TypeAlias = Literal[".", ","]
Decimal: TypeAlias = Literal[".", ",", "either"]
MARKS: tuple[Mark, Mark] = (".", ",")
MARK_NAMES: dict[Decimal, str] = {".": "point", ",": "comma", "either": "point or comma"}
ISO = "iso"

# --- numbers -------------------------------------------------------------------------------------

_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|"
    "KRW|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|"
    "ZAR"
)
_CURRENCY = rf"(?i:[a-z]{{0,2}}\p{{Sc}}|(?:{_CODES})\b|euros?\b|sfr\.?|fr\.|kr\.?|zł|kč|ft\b|rs\.?)"
_UNIT = rf"(?:{_CURRENCY}|%)"
# Signs of one currency.
_SAME_CURRENCY = {
    **dict.fromkeys(("€", "euro", "euros"), "eur"),
    **dict.fromkeys(("$", "us$"), "usd"),
    **{"£": "gbp", "¥": "jpy", "zł": "pln", "kč": "czk", "ft": "huf"},
    **dict.fromkeys(("fr.", "sfr", "sfr."), "chf"),
    "kr.": "kr",
    "rs.": "rs",
}
_BLANK = r"['’\s]"


def _grammar(mark: str, between: str) -> str:
    # A group of thousands never begins with 0: "0,123" has a decimal comma.
    whole = (
        rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+|[1-9][0-9]{{0,2}}(?:{_BLANK}[0-9]{{3}})+"
        rf"|[1-9][0-9]?(?:{between}[0-9]{{2}})+{between}[0-9]{{3}})"
    )
    return rf"^[-+]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?$"


_GRAMMAR: dict[Mark, str] = {".": _grammar(r"\.", ","), ",": _grammar(",", r"\.")}
# One mark with three digits behind it, which both grammars take, for two numbers.
_UNCLEAR = {".": r"^[-+]?[1-9][0-9]{0,2}\.[0-9]{3}$", ",": r"^[-+]?[1-9][0-9]{0,2},[0-9]{3}$"}
_PLAIN = r"^[-+]?[0-9]+$"
_LEADING_ZERO = r"^[-+]?0[0-9]+$"
# So many values of three decimals, among whole numbers and without one of two decimals, are none.
_SURE = 100
# The steps that take a value to digits and marks: where it has such a sign, what becomes of it.
_STEPS = (
    ("[−–]", "[−–]", "-"),
    (r"[\p{L}\p{Sc}]", rf"^([-+(]*)\s*{_CURRENCY}\s*", "${1}"),
    (r"[\p{L}\p{Sc}%]", rf"\s*{_UNIT}\s*([)-]*)$", "${1}"),
    # Swiss for whole francs.
    (r"[.,]-", r"[.,]--?$", ""),
    (r"\(", r"^\(\s*([^()-]+?)\s*\)$", "-${1}"),
    (r"[0-9]\s*-", r"^([^-]*[0-9])\s*-$", "-${1}"),
    (r"[-+]\s", r"^([-+])\s+", "${1}"),
)


def _digits(text: pl.Series) -> pl.Series:
    """Values without currency and percent signs, a minus in front."""
    text = text.str.strip_chars()
    for sign, pattern, instead in _STEPS:
        # To look is ten times as fast as to replace, and most columns need few of the steps.
        if text.str.contains(sign).any():
            text = text.str.replace_all(pattern, instead)
    return text


def parsed_numbers(text: pl.Series, decimal: Decimal) -> pl.Series:
    """Numbers of a text column as float64, null where a value is none."""
    digits = _digits(text)
    if decimal != "either":
        return _parsed(digits, decimal)
    point, comma = (_parsed(digits, mark) for mark in MARKS)
    numbers = point.zip_with(point.is_not_null(), comma)
    return numbers.set((point != comma).fill_null(False), None)


def _parsed(digits: pl.Series, mark: Mark) -> pl.Series:
    plain = digits.set(~digits.str.contains(_GRAMMAR[mark]), None)
    if plain.str.contains(_BLANK).any():
        plain = plain.str.replace_all(_BLANK, "")
    if mark == ".":
        plain = plain.str.replace_all(",", "", literal=True)
    else:
        plain = plain.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)
    return plain.cast(pl.Float64, strict=False)


def number_text(value: str, decimal: Decimal | None) -> str:
    """A plain number's text in a column's notation, as ``parsed_numbers`` reads it.

    >>> number_text("1.234", ","), number_text("1.234", "either"), number_text("7", "either")
    ('1,234', '1.2340', '7')
    """
    if decimal == "either" and "." in value:
        # With four digits behind it, a point is decimal.
        mantissa, exponent, power = value.partition("e")
        return f"{mantissa}0{exponent}{power}"
    return value.replace(".", ",") if decimal == "," else value


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a column is not read: what its values look like, and the settings that decide.

    ``choices`` are pairs of a setting and its value for the column.
    """

    look: str
    example: str
    reason: str
    choices: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """Notation of a column's numbers.

    ``words`` masks the values that are no numbers. ``unclear`` is a value that a decimal comma and
    a decimal point make different numbers, if it was taken by convention; ``certain`` says whether
    some value has one meaning alone.
    """

    decimal: Decimal
    words: pl.Series
    example: str
    unit: str = ""
    unclear: str = ""
    certain: bool = False
    doubt: Doubt | None = None


def number_format(
    text: pl.Series, given: Mark | None = None, usual: Mark | None = None
) -> NumberFormat | None:
    """Notation of a text column without missing values; None where most values are no numbers.

    ``given`` is the column's decimal mark, where it is known; ``usual`` decides only where the
    values leave it open.
    """
    if not len(text) or _fitting(text.gather_every(max(1, len(text) // 1000)))[2] <= 0.5:
        return None
    digits, fits, share = _fitting(text)
    if share <= 0.5:
        return None
    point, comma = fits
    known = point | comma
    # Values with one meaning alone: those that one grammar takes.
    alone = {".": bool((point & ~comma).any()), ",": bool((comma & ~point).any())}
    unclear = {mark: digits.str.contains(_UNCLEAR[mark]) for mark in MARKS}
    marked = unclear["."] | unclear[","]
    unit, doubt = _unit_of(text, digits, known)
    if not unit:
        doubt = doubt or _phone_numbers(text, digits)
    shown = text.filter(known & digits.str.contains("[.,]"))
    example = str(shown[0] if len(shown) else text.filter(known)[0])
    decimal: Decimal = given or usual or "."
    if given is not None:
        known = point if given == "." else comma
    elif alone["."] and alone[","]:
        decimal = "either"
        if marked.any():
            reason = "some have a decimal comma, some a decimal point, and this may have either"
            choices = tuple(("decimal", mark) for mark in MARKS)
            doubt = doubt or Doubt(_look(unit), str(text.filter(marked)[0]), reason, choices)
    elif alone["."] or alone[","]:
        decimal = "." if alone["."] else ","
    elif usual is None and marked.any():
        return _by_convention(text, digits, unclear, ~known, unit, doubt)
    certain = alone["."] != alone[","]
    return NumberFormat(decimal, ~known, example, unit, certain=certain, doubt=doubt)


def _by_convention(
    text: pl.Series,
    digits: pl.Series,
    unclear: Mapping[Mark, pl.Series],
    words: pl.Series,
    unit: str,
    doubt: Doubt | None,
) -> NumberFormat:
    """Notation of a column in which every mark may be decimal or between thousands."""
    comma, point = int(unclear[","].sum()), int(unclear["."].sum())
    whole = int(digits.str.contains(_PLAIN).sum())
    mixed = bool(whole)
    if comma and point:
        decimal: Decimal = "."
        example = str(text.filter(unclear[","])[0])
        choices = (("decimal", "."), ("decimal", ","))
        doubt = doubt or Doubt(
            _look(unit), example, "commas and points may both be decimal", choices
        )
    elif comma:
        decimal, example = ".", str(text.filter(unclear[","])[0])
    else:
        # Whole numbers have no decimals, and the others all three: these are thousands.
        decimal = "," if mixed and point >= _SURE else "."
        example = str(text.filter(unclear["."])[0])
        if not mixed:
            # All a thousand times as large, or none: after scaling it is the same column.
            return NumberFormat(decimal, words, example, unit, doubt=doubt)
    return NumberFormat(decimal, words, example, unit, unclear=example, doubt=doubt)


def _fitting(text: pl.Series) -> tuple[pl.Series, tuple[pl.Series, pl.Series], float]:
    digits = _digits(text)
    point, comma = (digits.str.contains(_GRAMMAR[mark]) for mark in MARKS)
    return digits, (point, comma), float((point | comma).mean() or 0.0)  # type: ignore[arg-type]


def _unit_of(text: pl.Series, digits: pl.Series, known: pl.Series) -> tuple[str, Doubt | None]:
    """The column's unit, empty for none; and a doubt where values have different ones."""
    if not text.str.contains(r"[\p{L}\p{Sc}%]").any():
        return "", None
    units = text.filter(known).str.extract(f"({_UNIT})").str.strip_chars().str.to_lowercase()
    kinds = {_SAME_CURRENCY.get(unit, unit) for unit in units.drop_nulls().unique().to_list()}
    choices: tuple[tuple[str, object], ...] = (("type", "number"),)
    if len(kinds) > 1:
        second = str(text.filter(known).filter(units != units.drop_nulls()[0])[0])
        reason = "they have different units"
        return min(kinds), Doubt(_look(min(kinds)), second, reason, choices)
    unit = next(iter(kinds), "")
    if unit == "%":
        # 0 is 0 with the sign and without.
        plain = text.filter(known & ~text.str.contains("%") & ~digits.str.contains(r"^[0.,]+$"))
        if len(plain):
            reason = "some of them have no percent sign"
            return unit, Doubt(_look(unit), str(plain[0]), reason, choices)
    return unit, None


def _phone_numbers(text: pl.Series, digits: pl.Series) -> Doubt | None:
    """A doubt about digits in blocks that are all of one length, as numbers seldom are."""
    if not digits.str.contains(r"\d\s\d").all() or digits.str.contains("[.,]").any():
        return None
    lengths = digits.str.replace_all(r"\D", "").str.len_bytes()
    if lengths.n_unique() > 1 and not digits.str.contains(r"^\+").any():
        return None
    return Doubt("phone numbers or codes", str(text[0]), "", (("type", "number"),))


def _look(unit: str) -> str:
    if unit == "%":
        return "percentages"
    return "amounts of money" if unit else "numbers"


def are_codes(text: pl.Series) -> bool:
    """Whether a text column has digits alone, of which some begin with a needless 0."""
    return bool(text.str.contains(_LEADING_ZERO).any() and text.str.contains(_PLAIN).all())


def may_be_thousands(text: pl.Series) -> bool:
    """Whether every point of a column of numbers may stand between thousands, and there is one."""
    pattern = r"^[-+]?[1-9]\d{0,2}(?:\.\d{3})?$|^0$"
    # One other value tells, and most columns have it among the first.
    if not text.head(100).str.contains(pattern).all() or not text.str.contains(pattern).all():
        return False
    return bool(text.str.contains(".", literal=True).any())


# --- dates ---------------------------------------------------------------------------------------

_ISO_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S%.f")
_ISO_START = r"^\d{4}-\d{2}-\d{2}(?:$|[T ]\d{2}:\d{2})"
_TIMES = (
    ("", ""),
    (r" \d{1,2}:\d{2}", " %H:%M"),
    (r" \d{1,2}:\d{2}:\d{2}", " %H:%M:%S"),
    (r" \d{1,2}:\d{2} ?[AaPp][Mm]", " %I:%M %p"),
    (r" \d{1,2}:\d{2}:\d{2} ?[AaPp][Mm]", " %I:%M:%S %p"),
)
_NAME = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[A-Za-z]{0,6}"
_COMPACT = r"(?:19|20)\d{6}"
# Dates of one look, with the formats that they may have. With points the day comes first.
_DATES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\d{4}-\d{1,2}-\d{1,2}", ("%Y-%m-%d",)),
    (r"\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", ("%Y.%m.%d",)),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", ("%d.%m.%Y",)),
    (r"\d{1,2}/\d{1,2}/\d{4}", ("%d/%m/%Y", "%m/%d/%Y")),
    (r"\d{1,2}-\d{1,2}-\d{4}", ("%d-%m-%Y", "%m-%d-%Y")),
    (r"\d{1,2}\.\d{1,2}\.\d{2}", ("%d.%m.%y",)),
    (r"\d{1,2}/\d{1,2}/\d{2}", ("%d/%m/%y", "%m/%d/%y")),
    (r"\d{1,2}-\d{1,2}-\d{2}", ("%d-%m-%y", "%m-%d-%y")),
    (rf"\d{{1,2}} {_NAME} \d{{4}}", ("%d %B %Y",)),
    (rf"\d{{1,2}}-{_NAME}-\d{{4}}", ("%d-%B-%Y",)),
    (rf"\d{{1,2}}-{_NAME}-\d{{2}}", ("%d-%B-%y",)),
    (rf"{_NAME} \d{{1,2}}, \d{{4}}", ("%B %d, %Y",)),
    (_COMPACT, ("%Y%m%d",)),
)
_ANY_DATE = (
    rf"^\d{{1,4}}[./-](?:\d{{1,2}}|{_NAME})[./-]\d{{1,4}}(?:\b|T)|^(?:\d{{1,2}} )?{_NAME} \d"
    rf"|^{_COMPACT}$"
)
# Values that are no dates are searched for this often.
_STRAYS = 20
# So many different numbers are dates by chance with a probability of less than 1e-14.
_COMPACT_LEAST = 10
_YEARS = (1850, 2150)
# Two digits of a year whose century is open: 1931 or 2031.
_OPEN_YEARS = (2031, 2069)


@dataclass(frozen=True, slots=True)
class DateFormats:
    """Formats of a column's dates, the first that fits a value first; empty for ISO 8601 alone."""

    formats: tuple[str, ...]
    words: pl.Series
    doubt: Doubt | None = None


def parsed_dates(text: pl.Series, formats: Iterable[str]) -> pl.Series:
    """Datetimes of a text column, null where no format fits; without formats ISO 8601."""
    first, *others = (*formats,) or (ISO,)
    result = _dates(text, first)
    for form in others:
        if result.null_count() > text.null_count():
            result = result.zip_with(result.is_not_null(), _dates(text, form))
    return result


def _dates(text: pl.Series, form: str) -> pl.Series:
    if form == ISO:
        return _iso(text)
    moments = text.str.strip_chars().str.to_datetime(form, strict=False, time_unit="us")
    # With %Y, "26" would be a year of antiquity.
    return moments.set((moments.dt.year() < 1000).fill_null(False), None)


def _iso(text: pl.Series) -> pl.Series:
    plain = text.str.replace("T", " ", literal=True)
    plain = plain.str.replace(r"(:\d{2}(?:\.\d+)?)(?:Z|[+-]\d{2}:?\d{2})$", "${1}")
    result = plain.str.to_datetime(_ISO_FORMATS[0], strict=False, time_unit="us")
    for form in _ISO_FORMATS[1:]:
        if result.null_count() == text.null_count():
            break
        moments = plain.str.to_datetime(form, strict=False, time_unit="us")
        result = result.zip_with(result.is_not_null(), moments)
    return result


def looks_like_dates(series: pl.Series) -> bool:
    """Whether every value of a text column is missing or a date in ISO 8601.

    >>> looks_like_dates(pl.Series(["2026-11-16", None])), looks_like_dates(pl.Series(["2026"]))
    (True, False)
    """
    text = series.drop_nulls()
    # The first is looked at before the rest: most columns of text are no dates.
    if not len(text) or not text.head(1).str.contains(_ISO_START).all():
        return False
    return text.str.contains(_ISO_START).all() and not _iso(text).null_count()


def compact_dates(series: pl.Series) -> bool:
    """Whether whole numbers are dates such as 20260131."""
    present = series.drop_nulls()
    low, high = present.min(), present.max()
    if not isinstance(low, int) or not isinstance(high, int):
        return False
    if low < 19000101 or high > 20991231 or present.n_unique() < _COMPACT_LEAST:
        return False
    return not _dates(present.cast(pl.String), "%Y%m%d").null_count()


def date_formats(text: pl.Series) -> DateFormats | None:
    """Formats of a text column without missing values; None where most values are no dates.

    >>> str(date_formats(pl.Series(["31.1.2026", "2026-02-01"])))[:43]
    "DateFormats(formats=('iso', '%d.%m.%Y'), wo"
    """
    text = text.str.strip_chars()
    sample = text.gather_every(max(1, len(text) // 100))
    if not len(text) or 2 * int(sample.str.contains(_ANY_DATE).sum()) <= len(sample):
        return None
    rest, formats, doubt = text, list[str](), None
    words = pl.repeat(False, len(text), eager=True)
    for _ in range(_STRAYS):
        if not len(rest):
            break
        family = _family(str(rest[0]))
        same = rest.str.contains(family[0]) if family else rest == rest[0]
        group = rest.filter(same)
        fitting = _fitting_formats(group, family[1]) if family else []
        if fitting:
            doubt = doubt or _date_doubt(group, fitting)
            formats.append(fitting[0])
        else:
            words |= text.is_in(group.unique().implode())
        rest = rest.filter(~same)
    # Digits alone are dates only beside others.
    if len(rest) or {*formats} <= {"%Y%m%d"} or 10 * int(words.sum()) > len(text):
        return None
    moments = parsed_dates(text, formats).drop_nulls()
    if 2 * int(moments.dt.year().is_between(*_YEARS).sum()) < len(moments):
        return None
    # A year of four digits first: %Y would not take "26", and %y would take "2026" for "20".
    formats.sort(key=lambda form: ("%Y" not in form and form != ISO, len(form)))
    return DateFormats(() if formats == [ISO] else tuple(formats), words, doubt)


def _family(value: str) -> tuple[str, tuple[str, ...]] | None:
    if re.match(_ISO_START, value):
        return _ISO_START, (ISO,)
    for look, forms in _DATES:
        for time, suffix in _TIMES:
            pattern = f"^{look}{time}$"
            if re.match(pattern, value):
                return pattern, tuple(form + suffix for form in forms)
    return None


def _fitting_formats(group: pl.Series, forms: tuple[str, ...]) -> list[str]:
    return [form for form in forms if not _dates(group, form).null_count()]


def _date_doubt(group: pl.Series, fitting: list[str]) -> Doubt | None:
    first = _dates(group, fitting[0])
    choices = tuple(("date_format", form) for form in fitting)
    if len(fitting) > 1 and not first.equals(_dates(group, fitting[1])):
        other = (first != _dates(group, fitting[1])).arg_max() or 0
        reason = "the day or the month may come first"
        return Doubt("dates", str(group[int(other)]), reason, choices)
    if "%y" in fitting[0] and first.dt.year().is_between(*_OPEN_YEARS).any():
        open_ = first.dt.year().is_between(*_OPEN_YEARS).arg_max() or 0
        return Doubt("dates", str(group[int(open_)]), "the century is open", choices)
    return None


# --- words ---------------------------------------------------------------------------------------

_YES_NO = (
    ("yes", "no"),
    ("y", "n"),
    ("true", "false"),
    ("t", "f"),
    ("1", "0"),
    ("on", "off"),
    ("ja", "nein"),
    ("j", "n"),
    ("ja", "nee"),
    ("oui", "non"),
    ("sí", "no"),
    ("si", "no"),
    ("sim", "não"),
)
YES, NO = "yes", "no"
YES_NO = {word: NO for _, word in _YES_NO} | {word: YES for word, _ in _YES_NO}


def is_yes_no(words: Iterable[str]) -> bool:
    """Whether normalised words are yes and no, in more than one way of saying so.

    >>> is_yes_no(["yes", "no", "y"]), is_yes_no(["yes", "no"]), is_yes_no(["n", "t", "o"])
    (True, False, False)
    """
    present = {*words}
    paired = any(present >= {*pair} for pair in _YES_NO)
    return paired and len(present) > 2 and present <= YES_NO.keys()


_PHONE = r"^\+?[(\d][\d\s()/.-]{6,}$"
_LOOKS = (
    ("e-mail addresses", r"^\S+@\S+\.\S+$"),
    ("codes with leading zeros", _LEADING_ZERO),
    ("dates", _ANY_DATE),
    ("amounts of money", rf"^\W*{_CURRENCY}\s*\W?\d|\d\s*{_CURRENCY}\W*$"),
    ("percentages", r"\d\s*%$"),
    ("phone numbers", _PHONE),
)


def look_of(text: pl.Series) -> tuple[str, str] | None:
    """What most values of a text column look like, and an example; None for other text."""
    sample = text.gather_every(max(1, len(text) // 1000))
    for look, pattern in _LOOKS:
        alike = sample.filter(sample.str.contains(pattern))
        least = 1 if pattern == _LEADING_ZERO and sample.str.contains(_PLAIN).all() else 2
        if len(alike) and len(alike) * 2 > (0 if least == 1 else len(sample)):
            return look, str(alike[0])
    return None
