"""Number formats: how the numbers of a text column are written, with marks, units and signs.

A format is recognised only where every value has one meaning: "3,182.34" and "0,123" are clear,
"1,234" alone is not. So each value is parsed with a decimal point and with a decimal comma, and the
two numbers are compared. What stays open is a ``Doubt``. Nothing here looks at other columns; the
caller may know the decimal mark of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from taciturn.data.doubt import Doubt

Mark: TypeAlias = Literal[".", ","]
Decimal: TypeAlias = Literal[".", ",", "either"]
MARKS: tuple[Mark, Mark] = (".", ",")
MARK_NAMES: dict[Decimal, str] = {".": "point", ",": "comma", "either": "point or comma"}

_CODES = (
    "AED|ARS|AUD|BGN|BRL|CAD|CHF|CLP|CNY|COP|CZK|DKK|EGP|EUR|GBP|HKD|HUF|IDR|ILS|INR|ISK|JPY|KES|"
    "KRW|MAD|MXN|MYR|NGN|NOK|NZD|PEN|PHP|PKR|PLN|RON|RSD|RUB|SAR|SEK|SGD|THB|TRY|TWD|UAH|USD|VND|"
    "ZAR"
)
CURRENCY = rf"(?i:[a-z]{{0,2}}\p{{Sc}}|(?:{_CODES})\b|euros?\b|sfr\.?|fr\.|kr\.?|zł|kč|ft\b|rs\.?)"
_UNIT = rf"(?:{CURRENCY}|%)"
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
# So many values of three decimals, among whole numbers and without one of two decimals, are none.
_MIN_THOUSANDS_EVIDENCE = 100
# The steps that take a value to digits and marks: where it has such a sign, what becomes of it.
_STEPS = (
    ("[−–]", "[−–]", "-"),
    (r"[\p{L}\p{Sc}]", rf"^([-+(]*)\s*{CURRENCY}\s*", "${1}"),
    (r"[\p{L}\p{Sc}%]", rf"\s*{_UNIT}\s*([)-]*)$", "${1}"),
    # Swiss for whole francs.
    (r"[.,]-", r"[.,]--?$", ""),
    (r"\(", r"^\(\s*([^()-]+?)\s*\)$", "-${1}"),
    (r"[0-9]\s*-", r"^([^-]*[0-9])\s*-$", "-${1}"),
    (r"[-+]\s", r"^([-+])\s+", "${1}"),
)


def _number_pattern(mark: str, between: str) -> str:
    # A group of thousands never begins with 0: "0,123" has a decimal comma. The last are lakhs.
    whole = (
        rf"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:(?:{between}[0-9]{{3}})+|(?:{_BLANK}[0-9]{{3}})+)"
        rf"|[1-9][0-9]?(?:{between}[0-9]{{2}})+{between}[0-9]{{3}})"
    )
    return rf"^[-+]?(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?$"


_PATTERNS: dict[Mark, str] = {".": _number_pattern(r"\.", ","), ",": _number_pattern(",", r"\.")}


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
        return _with_mark(digits, decimal)
    point, comma = (_with_mark(digits, mark) for mark in MARKS)
    numbers = point.zip_with(point.is_not_null(), comma)
    return numbers.set((point != comma).fill_null(False), None)


def _with_mark(digits: pl.Series, mark: Mark) -> pl.Series:
    plain = digits.set(~digits.str.contains(_PATTERNS[mark]), None)
    if plain.str.contains(_BLANK).any():
        plain = plain.str.replace_all(_BLANK, "")
    plain = plain.str.replace_all("," if mark == "." else ".", "", literal=True)
    return plain.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)


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
    # A sample first: most columns of text are no numbers.
    for rows in (text.gather_every(max(1, len(text) // 1000)), text):
        digits = _digits(rows)
        point, comma = (_with_mark(digits, mark) for mark in MARKS)
        known = point.is_not_null() | comma.is_not_null()
        if 2 * known.sum() <= len(rows):
            return None
    marks = _Marks(text, point, comma, known)
    unit, doubt = _unit_of(text.filter(known), point.fill_null(comma).filter(known))
    if not unit:
        doubt = doubt or _phone_numbers(text, digits)
    marked = known & digits.str.contains("[.,]")
    example = str(text.filter(marked if marked.any() else known)[0])
    decimal: Decimal = given or usual or "."
    unclear = ""
    if given is not None:
        known = (point if given == "." else comma).is_not_null()
    elif marks.certain == MARKS:
        decimal, doubt = "either", doubt or marks.doubt_between(unit)
    elif marks.certain:
        (decimal,) = marks.certain
    elif usual is None:
        decimal, unclear, convention = marks.by_convention(unit)
        example, doubt = unclear or example, doubt or convention
    certain = len(marks.certain) == 1
    return NumberFormat(decimal, ~known, example, unit, unclear, certain, doubt)


_BOTH_MARKS = tuple(("decimal", mark) for mark in MARKS)


class _Marks:
    """What the values of a column say about its decimal mark."""

    def __init__(
        self, text: pl.Series, point: pl.Series, comma: pl.Series, known: pl.Series
    ) -> None:
        self.text, self.known = text, known
        alone = {".": comma.is_null() & known, ",": point.is_null() & known}
        # Marks that some value leaves no choice.
        self.certain = tuple(mark for mark in MARKS if alone[mark].any())
        # Three digits behind the only mark: thousands with one decimal mark, thousandths with the
        # other one.
        self.commas = (point.abs() > comma.abs()).fill_null(False)
        self.points = (point.abs() < comma.abs()).fill_null(False)
        self.open = self.commas | self.points

    def doubt_between(self, unit: str) -> Doubt | None:
        """A doubt where both marks occur as decimal, and some value may have either."""
        if not self.open.any():
            return None
        reason = "some have a decimal comma, some a decimal point, and this may have either"
        return Doubt(_look(unit), str(self.text.filter(self.open)[0]), reason, _BOTH_MARKS)

    def by_convention(self, unit: str) -> tuple[Mark, str, Doubt | None]:
        """Mark of a column in which every mark may be decimal or between thousands.

        And a value that this decides, and a doubt.
        """
        if not self.open.any():
            return ".", "", None
        if self.commas.any():
            first = str(self.text.filter(self.commas)[0])
            reason = "commas and points may both be decimal"
            both = Doubt(_look(unit), first, reason, _BOTH_MARKS) if self.points.any() else None
            return ".", first, both
        if not (self.known & ~self.open).any():
            # All a thousand times as large, or none: after scaling it is the same column.
            return ".", "", None
        # Whole numbers have no decimals, and the others all three: many such are thousands.
        thousands = self.points.sum() >= _MIN_THOUSANDS_EVIDENCE
        return "," if thousands else ".", str(self.text.filter(self.points)[0]), None


def _unit_of(text: pl.Series, numbers: pl.Series) -> tuple[str, Doubt | None]:
    """The unit of a column's numbers, empty for none; a doubt where they have different ones."""
    if not text.str.contains(r"[\p{L}\p{Sc}%]").any():
        return "", None
    units = text.str.extract(f"({_UNIT})").str.strip_chars().str.to_lowercase()
    units = units.replace(_SAME_CURRENCY)
    kinds, choices = {*units.drop_nulls()}, (("type", "number"),)
    unit = min(kinds, default="")
    if len(kinds) > 1:
        second = str(text.filter(units != units.drop_nulls()[0])[0])
        return unit, Doubt(_look(unit), second, "they have different units", choices)
    if unit == "%":
        # 0 is 0 with the sign and without.
        plain = text.filter(units.is_null() & (numbers != 0))
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
    return {"%": "percentages", "": "numbers"}.get(unit, "amounts of money")
