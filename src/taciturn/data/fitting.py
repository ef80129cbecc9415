"""Fitting: from one raw column of the training rows to its rules and remarks.

Nothing here sees a label. The standard deviation is the population's (divided by n).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.bin_fitting import equal_bins, given_bins
from taciturn.data.column_parsing import DatePart, Reading, filled
from taciturn.data.ids import RowIds
from taciturn.data.level_fitting import fit_fixed_levels, fit_levels, fit_text
from taciturn.data.number_formats import Mark
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.recognition import RawColumn, recognised
from taciturn.data.rules import NumericRule, Rule
from taciturn.data.transforms import fit_transform
from taciturn.errors import InfiniteValueError, spelled
from taciturn.setting_syntax import Hint

# Outliers dominate a column whose standard deviation is this many times that of its other rows.
_RULED = 3.0
_WIDE = 10.0
# The interquartile range of a normal column, in standard deviations.
_NORMAL_IQR = 1.349
_LEVELS: dict[DatePart, tuple[str, ...]] = {
    "month": tuple(str(month) for month in range(1, 13)),
    "weekday": tuple(str(day) for day in range(1, 8)),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """Rules fitted for one column, perhaps none, and remarks."""

    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()


def fit_column(
    series: pl.Series,
    settings: PrepareSettings,
    vocabulary: tuple[str, ...] | None = None,
    ids: RowIds | None = None,
    usual_mark: Callable[[], Mark | None] = lambda: None,
) -> Fitted:
    """Fit one column on its training rows, with a fixed ``vocabulary`` of levels or its own.

    ``usual_mark`` is asked for the decimal mark of other columns, where this one leaves it open.
    """
    column = RawColumn(series, settings, ids, usual_mark)
    rules = _rules(column) if vocabulary is None else [fit_fixed_levels(column, vocabulary)]
    return Fitted(tuple(rules), tuple(column.notes))


def _rules(column: RawColumn) -> list[Rule]:
    series = column.series
    if column.choice("type") == "text":
        column.note(f"{column.name} is left out: its type is text")
        return []
    plain = series.fill_nan(None) if series.dtype.is_float() else series
    if plain.null_count() == len(plain):
        return [_empty(column)]
    reading = recognised(column)
    if reading is None:
        return fit_text(column)
    rules: list[Rule] = [_fit_numbers(column, reading)]
    for part in column.settings.date_parts if reading.kind == "days" else ():
        of_part, levels = replace(reading, kind=part), _LEVELS.get(part)
        fitted = fit_levels(column, levels, of_part) if levels else _fit_numbers(column, of_part)
        rules.append(fitted)
    return rules


def _empty(column: RawColumn) -> Rule:
    rule = NumericRule(column.name, impute=0.0, clip=column.settings.clip)
    edges = column.choice("bins")
    if isinstance(edges, tuple):
        return given_bins(column, rule, edges)
    column.note(f"{column.name} is entirely missing on the training rows: ignored")
    return replace(rule, scale=0.0)


def _fit_numbers(column: RawColumn, reading: Reading) -> Rule:
    settings = column.settings
    values = reading.numbers(column.series, column.ids)
    missing = np.isnan(values)
    gaps = bool(missing.any())
    if settings.impute == "none":
        filled(column.name, values, None, column.ids)
    rule = NumericRule(column.name, clip=settings.clip, reading=reading)
    rule, inside = _held(column, rule, values[~missing] if gaps else values)
    bins = column.choice("bins") or 0
    if settings.impute != "none":
        centre = np.mean(inside) if settings.impute == "mean" else np.median(inside)
        frequent = gaps and int(missing.sum()) >= settings.min_frequency * len(missing)
        marked = bool(bins) if settings.impute == "bin" else False
        marked = marked or (settings.missing_indicator and frequent)
        rule = replace(rule, impute=_finite(float(centre), rule.name), missing=marked)
    if isinstance(bins, tuple):
        return given_bins(column, rule, bins)
    if inside.min() == inside.max():
        column.note(f"{rule.name} is constant on the training rows: ignored")
        return replace(rule, center=float(inside[0]), scale=0.0)
    binned = equal_bins(column, rule, inside, bins) if bins else None
    if binned is not None:
        return binned
    return _scaled(column, _transformed(column, rule, inside), values)


def _held(
    column: RawColumn, rule: NumericRule, present: FloatArray
) -> tuple[NumericRule, FloatArray]:
    """The rule with the bounds of winsorising, and the values within them."""
    share = column.choice("winsorise")
    if not share:
        if column.settings.scale != "none" and not column.choice("transform"):
            _note_wide(column, rule, present)
        return rule, present
    low, high = winsor_bounds(present, share)
    inside = np.clip(present, low, high)
    outside = int(np.count_nonzero(inside != present))
    if outside:
        with np.errstate(all="ignore"):
            before, after = float(present.std()), float(inside.std())
        if after and before > _RULED * after:
            column.note(
                f"{rule.name}: {outside:,} of {len(present):,} values lay beyond {low:g} and "
                f"{high:g} and were cut to these: with them its standard deviation would be "
                f"{before / after:.0f} times as large"
            )
    return replace(rule, lower=low, upper=high), inside


def _note_wide(column: RawColumn, rule: NumericRule, present: FloatArray) -> None:
    low, high = np.quantile(present, (0.25, 0.75))
    with np.errstate(all="ignore"):
        times = float(present.std()) / ((high - low) / _NORMAL_IQR) if high > low else 0.0
    if _WIDE < times < math.inf:
        way = Hint("{winsorise} or {transform}", winsorise=0.005, transform={rule.column: "log"})
        column.note(
            f"{rule.name}: a few values far out make its standard deviation {times:.0f} times what "
            "its middle half suggests, and the rest hardly differs after scaling "
            f"({spelled(way)} helps)"
        )


def winsor_bounds(values: FloatArray, share: float) -> tuple[float, float]:
    """Bounds of winsorising: the share at either end takes the next value inwards.

    Where nearly all rows have one value, the ends are those of the other rows: a column that is 1
    for a few rows and else 0 keeps both.
    """
    low, high = _ends(values, share)
    if low < high or not (others := values[values != low]).size:
        return low, high
    outer = _ends(others, share)
    return min(low, outer[0]), max(high, outer[1])


def _ends(values: FloatArray, share: float) -> tuple[float, float]:
    cut = int(share * len(values))
    ends = np.partition(values, [cut, len(values) - 1 - cut])
    return float(ends[cut]), float(ends[len(values) - 1 - cut])


def _transformed(column: RawColumn, rule: NumericRule, inside: FloatArray) -> NumericRule:
    choice = column.choice("transform")
    if choice in (None, "none"):
        return rule
    rule = replace(rule, transform=fit_transform(choice, inside))
    if choice != "yeo-johnson":
        return rule
    # A power of what lies far beyond the training rows is beyond any number.
    return replace(rule, lower=float(inside.min()), upper=float(inside.max()))


def _scaled(column: RawColumn, rule: NumericRule, values: FloatArray) -> NumericRule:
    """Fit centre and scale of a rule; its scale so far is 1 and its centre 0."""
    if column.settings.scale == "none":
        return rule
    shaped = rule.shaped(filled(column.name, values, rule.impute, column.ids))
    center = _finite(float(shaped.mean()), rule.name)
    scale = _finite(float(shaped.std()), rule.name)
    if not scale:
        # A spread too small for float64 to hold counts as none.
        column.note(f"{rule.name} hardly varies on the training rows: ignored")
    return replace(rule, center=center, scale=scale)


def _finite(value: float, name: str) -> float:
    if not math.isfinite(value):
        raise InfiniteValueError(
            f"column {name!r}: its values are too large to average in float64",
            hint="change its unit, or take its logarithm",
        )
    return value
