"""Fitting of categories: which levels a text column has, and what becomes of the others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.data.column_parsing import NUMBER, Reading, as_levels
from taciturn.data.doubt import Doubt
from taciturn.data.free_text import note_free_text
from taciturn.data.recognition import FEW_LEVELS, RawColumn, with_value
from taciturn.data.rule_base import MISSING, OTHER
from taciturn.data.rules import CategoricalRule, NumericRule, Rule
from taciturn.data.yes_no import NO, YES, is_yes_no
from taciturn.errors import ColumnError, spelled
from taciturn.setting_syntax import Hint

# Text is free text where more than this share of the values is distinct, and categories otherwise.
_FREE_SHARE = 0.5


def fit_text(column: RawColumn) -> list[Rule]:
    """Categories; or nothing, for free text."""
    for setting in ("transform", "bins", "winsorise"):
        if column.name in getattr(column.settings, setting):
            raise ColumnError(
                f"column {column.name!r} holds categories, and {setting} is for numbers",
                setting=setting,
                hint=Hint("leave it out there, or say {type}", type={column.name: "number"}),
            )
    text = as_levels(column.series)
    levels = _levels(column, text)
    left_out = False
    if column.choice("type") is None:
        free = levels.height > _FREE_SHARE * (len(text) - text.null_count())
        left_out = free and levels.height > FEW_LEVELS
    if column.doubt is not None:
        _note_doubt(column, column.doubt, "left out" if left_out else "taken as categories")
    elif left_out:
        note_free_text(column)
    return [] if left_out else [_fit_categories(column, text, levels)]


def _note_doubt(column: RawColumn, doubt: Doubt, fate: str) -> None:
    ways = " or ".join(with_value(**{name: {column.name: to}}) for name, to in doubt.choices)
    reason = f", but {doubt.reason}" if doubt.reason else ""
    verb = "reads" if len(doubt.choices) == 1 else "decides"
    column.note(
        f"{column.name} looks like {doubt.look} (such as {doubt.example!r}){reason}: {fate} "
        f"({ways} {verb} it)"
    )


def _spelling(column: RawColumn) -> Reading:
    return Reading(spelling="normalised") if column.settings.normalise_categories else NUMBER


def _levels(column: RawColumn, text: pl.Series) -> pl.DataFrame:
    """Levels, the most frequent first, with their rows, spellings and most frequent spelling."""
    # Spellings first: there are far fewer of them than rows.
    spellings = text.alias("text").drop_nulls().value_counts(name="len")
    spellings = spellings.with_columns(_spelling(column).spelled(spellings["text"]).alias("key"))
    # Of spellings and of levels that are equally frequent the first in order come first.
    order, descending = ("len", "text"), (True, False)
    spellings = spellings.sort(order, descending=descending)
    first = pl.col("text").first()
    if column.settings.normalise_categories:
        first = first.str.strip_chars()
    levels = spellings.group_by("key", maintain_order=True).agg(
        first, pl.col("len").sum(), pl.len().alias("spellings")
    )
    return levels.sort(order, descending=descending)


def _fit_categories(column: RawColumn, text: pl.Series, levels: pl.DataFrame) -> Rule:
    name, settings = column.name, column.settings
    if settings.normalise_categories and is_yes_no(levels["key"].head(FEW_LEVELS).to_list()):
        column.note(f"{name}: yes or no ({', '.join(sorted(levels['text'].to_list()))})")
        return fit_levels(column, (NO, YES), Reading(spelling="yes-no"))
    frequent = levels.filter(pl.col("len") >= settings.min_frequency * len(text))["text"]
    names = tuple(sorted(frequent.head(settings.max_levels).to_list()))
    rule = fit_levels(column, names, _spelling(column))
    if (spellings := levels["spellings"].sum()) > levels.height:
        way = with_value(normalise_categories=False)
        column.note(
            f"{name}: {levels.height:,} levels in {spellings:,} spellings, compared without case "
            f"and blanks ({way} keeps them apart)"
        )
    if levels.height > settings.max_levels:
        column.note(
            f"{name} has {levels.height:,} levels: the {len(names)} most frequent have a column "
            f"each, and the others are one level {OTHER} ({spelled(Hint('{max_levels}'))})"
        )
    return rule


def fit_levels(column: RawColumn, frequent: tuple[str, ...], reading: Reading) -> Rule:
    """A column per level; the others, and missing ones, are a level each if frequent."""
    settings, rows = column.settings, len(column.series)
    text = reading.levels(column.series)
    least, absent = max(1.0, settings.min_frequency * rows), text.null_count()
    rule = CategoricalRule(column.name, frequent, reading=reading)
    places = rule.places_of(text)
    others = int(np.count_nonzero(places == len(frequent))) - absent
    unknown = OTHER if others >= least else None
    missing = MISSING if settings.missing_indicator and absent >= least else None
    # Text that is called so already is of that level.
    levels = tuple(dict.fromkeys([*frequent, *filter(None, (unknown, missing))]))
    if unknown or missing:
        rule = replace(rule, levels=levels, unknown=unknown, missing=missing)
        places = rule.places_of(text)
    rule = replace(rule, dropped=_reference(column, levels))
    if not rule.outputs:
        _note_one_level(column, rule)
        return NumericRule(column.name, 0.0, scale=0.0, clip=settings.clip)
    # Of the rows that have a level: the others are to be their average.
    counts = np.bincount(places, minlength=len(levels) + 1)
    known = 1.0 - ((0 if unknown else others) + (0 if missing else absent)) / rows
    shares = dict(zip(levels, (counts / rows / known).tolist(), strict=False))
    rule = replace(rule, average=tuple(shares[level] for level in rule.kept))
    return _scaled_levels(column, rule, places)


def _note_one_level(column: RawColumn, rule: CategoricalRule) -> None:
    if rule.unknown is None:
        column.note(f"{rule.name} is constant on the training rows: ignored")
        return
    least = column.settings.min_frequency
    column.note(
        f"{rule.name}: each of its levels has less than {least:.2%} of the training rows: ignored "
        f"({with_value(min_frequency=least / 10)} keeps more of them)"
    )


def fit_fixed_levels(column: RawColumn, vocabulary: tuple[str, ...]) -> Rule:
    """Given levels only: any other value is 0 in all columns."""
    rule = CategoricalRule(column.name, vocabulary, _reference(column, vocabulary))
    return _scaled_levels(column, rule, rule.places(column.series))


def _reference(column: RawColumn, levels: tuple[str, ...]) -> str | None:
    return levels[0] if column.settings.drop_first and levels else None


def _scaled_levels(
    column: RawColumn, rule: CategoricalRule, places: NDArray[np.int64]
) -> CategoricalRule:
    if not rule.outputs:
        column.note(f"{rule.column} is constant on the training rows: ignored")
    if column.settings.scale_categories and column.settings.scale != "none":
        shares = tuple(float(marks.mean()) for marks in rule.columns_of(places))
        scales = tuple(math.sqrt(share * (1.0 - share)) for share in shares)
        rule = replace(rule, centers=shares, scales=scales)
        for output, scale in zip(rule.outputs, scales, strict=True):
            if scale == 0:
                column.note(f"{output} is constant on the training rows: ignored")
    return replace(rule, clip=column.settings.clip)
