"""Recognition: what a raw column is taken for, and how its values are read.

A column of text holds numbers or dates where every value has one meaning. Where one is open
(``Doubt``) or is a word, the column is categories, or refused with the place of the first word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from taciturn.data.column_parsing import (
    NUMBER,
    TEXT,
    Reading,
    as_levels,
    dates,
    kind_error,
    require_no_words,
    without_blanks,
)
from taciturn.data.column_types import are_codes
from taciturn.data.date_formats import date_formats
from taciturn.data.dates import ISO, are_compact_dates, are_iso_dates, parsed_dates
from taciturn.data.doubt import Doubt
from taciturn.data.ids import RowIds
from taciturn.data.number_formats import (
    MARK_NAMES,
    Mark,
    NumberFormat,
    number_format,
    parsed_numbers,
)
from taciturn.data.prepare_settings import EVERY, PrepareSettings, of_column
from taciturn.errors import ColumnError, spelled
from taciturn.setting_syntax import Hint

# Text of at most so many different values is categories, whatever else it is.
FEW_LEVELS = 20
DAYS = Reading("days")


@dataclass(slots=True)
class RawColumn:
    """One column of the training rows while it is fitted; remarks go to its notes.

    ``usual_mark`` is asked for the decimal mark of other columns, where this one leaves it open.
    """

    series: pl.Series
    settings: PrepareSettings
    ids: RowIds | None = None
    usual_mark: Callable[[], Mark | None] = lambda: None
    notes: list[str] = field(default_factory=list)
    doubt: Doubt | None = None

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.series.name

    def choice(self, setting: str) -> Any:  # noqa: ANN401 - that of the setting
        """Value of a by-column setting for this column."""
        return of_column(getattr(self.settings, setting), self.name)

    def note(self, text: str) -> None:
        """Add a remark."""
        self.notes.append(f"column {text}")


def with_value(**value: object) -> str:
    """A setting with its value, in the spelling of the user's settings."""
    return " ".join(spelled(Hint(f"{{{name}}}", **value)) for name in value)


def usual_decimal_mark(columns: Iterable[pl.Series]) -> Mark | None:
    """Decimal mark of the columns that leave no choice; None where there are none, or both."""
    texts = (series.cast(pl.String).drop_nulls() for series in columns if series.dtype in TEXT)
    forms = filter(None, map(number_format, texts))
    marks = {form.decimal for form in forms if form.certain and form.decimal != "either"}
    return marks.pop() if len(marks) == 1 else None


def recognised(column: RawColumn) -> Reading | None:
    """How a column is read as numbers or dates; None for categories, with ``doubt`` where open."""
    series, kind, wanted = column.series, column.series.dtype, column.choice("type")
    if wanted is None and column.name in column.settings.date_format:
        wanted = "date"
    if wanted == "date":
        return _wanted_dates(column)
    if wanted == "category":
        return None
    if wanted is None and kind.is_integer() and are_compact_dates(series):
        return _compact(column)
    if kind.is_numeric() or kind == pl.Boolean:
        return NUMBER
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        return DAYS
    if kind not in TEXT:
        raise kind_error(series)
    text = without_blanks(series.cast(pl.String))
    if wanted is None:
        if are_iso_dates(text):
            return DAYS
        # Numbers and dates have digits, and most text has none.
        digits = 2 * text.str.contains(r"\d").sum() > text.count()
        if not digits and column.name not in column.settings.decimal:
            return None
        reading = _text_dates(column, text.drop_nulls())
        if reading is not None or column.doubt is not None:
            return reading
    return _text_numbers(column, text)


# --- dates ---------------------------------------------------------------------------------------


def _wanted_dates(column: RawColumn) -> Reading:
    """A column that is said to have dates."""
    series, formats = column.series, column.choice("date_format")
    whole = series.dtype.is_integer()
    if formats is not None or not (series.dtype in TEXT or whole):
        return Reading("days", formats or ())
    if whole and are_compact_dates(series):
        return _compact(column)
    form = date_formats(without_blanks(as_levels(series)).drop_nulls())
    if form is None or form.words.any():
        # It says which values are no dates, and where the first of them is.
        dates(series, () if form is None else form.formats, column.ids)
        return DAYS
    if form.doubt is not None:
        written = {column.name: str(form.doubt.choices[0][1])}
        raise ColumnError(
            f"column {column.name!r} has dates in which {form.doubt.reason}",
            setting="date_format",
            hint=Hint("say how they are written: {date_format}", date_format=written),
        )
    return _written_as(column, form.formats)


def _text_dates(column: RawColumn, present: pl.Series) -> Reading | None:
    given = column.choice("date_format")
    if given and not parsed_dates(present, given).null_count():
        return Reading("days", given)
    form = date_formats(present)
    if form is None:
        return None
    if form.words.any():
        # Refused with the place of the first value that is no date.
        dates(column.series, form.formats, column.ids)
    column.doubt = form.doubt
    return None if form.doubt is not None else _written_as(column, form.formats)


def _written_as(column: RawColumn, formats: tuple[str, ...]) -> Reading:
    if not formats:
        return DAYS
    column.note(f"{column.name}: dates written as {' or '.join(formats)}")
    # ISO 8601 has one meaning beside any of them.
    return Reading("days", tuple(dict.fromkeys((*formats, ISO))))


def _compact(column: RawColumn) -> Reading:
    way = with_value(type={column.name: "number"})
    column.note(f"{column.name}: dates written as %Y%m%d ({way} takes them as numbers)")
    return Reading("days", ("%Y%m%d",))


# --- numbers -------------------------------------------------------------------------------------


def _text_numbers(column: RawColumn, text: pl.Series) -> Reading | None:
    decimal = column.settings.decimal
    present, given, usual = text.drop_nulls(), decimal.get(column.name), decimal.get(EVERY)
    forced = given is not None or column.choice("type") == "number"
    form = number_format(present, given, usual)
    if form is not None and form.unclear and (usual := column.usual_mark()) is not None:
        form = replace(number_format(present, given, usual) or form, unclear=form.unclear)
    if form is None or (not forced and are_codes(present)):
        return NUMBER if forced else None
    if not forced:
        few = form.words.any() and present.n_unique() <= FEW_LEVELS
        if form.doubt is not None or few or form.words.sum() * 2 > len(present):
            column.doubt = form.doubt
            return None
    if form.words.any():
        places = text.is_not_null().arg_true().gather(form.words.arg_true())
        words = pl.repeat(False, len(text), eager=True).scatter(places, True)
        require_no_words(words.alias(column.name), column.ids, given)
    plain = form.decimal == "." and not present.cast(pl.Float64, strict=False).null_count()
    if not plain or form.unclear:
        _note_numbers(column, form, decided=usual is not None)
    return NUMBER if plain else Reading(decimal=form.decimal)


def _note_numbers(column: RawColumn, form: NumberFormat, *, decided: bool) -> None:
    """Note what was read, with an example; and the setting where it could be read otherwise."""
    example = form.unclear or form.example
    shown = parsed_numbers(pl.Series([example]), form.decimal)[0]
    kind = {"%": "percentages", "": "numbers"}.get(form.unit, "amounts of money")
    other = with_value(decimal={column.name: "," if form.decimal == "." else "."})
    way = f" ({other} if that is wrong)" if form.unclear and not decided else ""
    column.note(
        f"{column.name}: {kind} with a decimal {MARK_NAMES[form.decimal]}, {example!r} is "
        f"{shown:.10g}{way}"
    )
