"""Free text: a note about a text column that is left out, with what it looks like."""

from __future__ import annotations

import polars as pl

from taciturn.data.date_formats import ANY_DATE
from taciturn.data.number_formats import CURRENCY
from taciturn.data.recognition import RawColumn, with_value

_CODES = ("codes with leading zeros", r"^[-+]?0[0-9]+$")
_LOOKS = (
    ("e-mail addresses", r"^\S+@\S+\.\S+$"),
    _CODES,
    ("dates", ANY_DATE),
    ("amounts of money", rf"^\W*{CURRENCY}\s*\W?\d|\d\s*{CURRENCY}\W*$"),
    ("percentages", r"\d\s*%$"),
    ("phone numbers", r"^\+?[(\d][\d\s()/.-]{6,}$"),
)


def note_free_text(column: RawColumn) -> None:
    """Note why a column is left out, and the setting that takes it."""
    present, name = column.series.cast(pl.String).drop_nulls(), column.name
    look, example = look_of(present) or ("", "")
    way = with_value(type={name: "category"})
    seen = f"looks like {look} (such as {example!r})"
    if look == "dates":
        way = f"{with_value(date_format={name: '%d.%m.%Y'})} reads them; {way}"
    elif look in ("codes with leading zeros", "amounts of money", "percentages"):
        way = f"{with_value(type={name: 'number'})} reads numbers; {way}"
    elif not look:
        distinct = present.n_unique()
        seen = f"is free text, {distinct:,} different values in {len(present):,} rows"
    column.note(f"{name} {seen}: left out ({way} keeps its most frequent values)")


def look_of(text: pl.Series) -> tuple[str, str] | None:
    """What most values of a text column look like, and an example; None for other text."""
    sample = text.gather_every(max(1, len(text) // 1000))
    # Among digits alone, one needless zero tells.
    digits = sample.str.contains(r"^[-+]?[0-9]+$").all()
    for look, pattern in _LOOKS:
        alike = sample.filter(sample.str.contains(pattern))
        one_tells = digits and (look, pattern) == _CODES
        if len(alike) and (one_tells or len(alike) * 2 > len(sample)):
            return look, str(alike[0])
    return None
