"""A raw column cut into bins that are large enough to be counted: nothing here sees a label.

How a column is cut is what its preparation says (``fitting``): numbers and dates at quantiles,
categories by level. Missing values are a bin of their own. Bins of fewer rows than the least are
merged, not left out: of one that is left out, the total minus the others would tell the count.

- numbers: with the smaller of its neighbours, again and again;
- categories: into ``(other)``, and where that is still too small, with the next smallest level;
- missing values that are too few join the smallest of the other bins.

**Guarantee.** Every row is in exactly one bin, and every bin has at least the least number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.binned_rule import BinnedRule
from taciturn.data.fitting import fit_column
from taciturn.data.ids import RowIds
from taciturn.data.prepare_settings import EVERY, PrepareSettings, of_column
from taciturn.data.rule_base import MISSING, OTHER
from taciturn.data.rules import CategoricalRule, NumericRule
from taciturn.errors import DataError
from taciturn.setting_syntax import Hint

DEFAULT_BINS = 10
LEAST_ROWS = 50
_LEAST_SHARE = 0.01


def default_least(rows: int) -> int:
    """Default for the fewest rows of a bin: 50, or one in a hundred, whichever is more.

    >>> default_least(455), default_least(120_000)
    (50, 1200)
    """
    return max(LEAST_ROWS, round(_LEAST_SHARE * rows))


@dataclass(frozen=True, slots=True, repr=False)
class Bins:
    """One column, cut.

    ``codes`` is the bin of each row. ``ordered`` says whether neighbours in the list are neighbours
    in value; ``merged`` counts the bins that were too small by themselves.
    """

    name: str
    labels: tuple[str, ...]
    codes: IntArray
    ordered: bool
    merged: int = 0

    @property
    def rows(self) -> IntArray:
        """Number of rows in each bin."""
        return np.bincount(self.codes, minlength=len(self.labels)).astype(np.int64)

    def __repr__(self) -> str:
        return f"Bins({self.name}: {len(self.labels)} of {len(self.codes)} rows)"


@dataclass(frozen=True, slots=True)
class CutTable:
    """Informative columns of a side, and remarks on the others."""

    columns: tuple[Bins, ...]
    notes: tuple[str, ...] = ()


def no_bins(least: int) -> DataError:
    """Error for a table without a column of two bins."""
    return DataError(
        f"no column of Alice's has two bins of {least:,} rows",
        setting="min_rows",
        hint=Hint("lower {min_rows}, or use more rows"),
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    """A column before small bins are merged; the last bin is that of missing values, if any is."""

    name: str
    codes: IntArray = field(repr=False)
    # The label of the bins from one place to another.
    words: Callable[[list[int]], str] = field(repr=False)
    bins: int
    ordered: bool
    # The place of a level that others may join.
    other: int | None = None


def cut_table(
    columns: Iterator[pl.Series],
    settings: PrepareSettings,
    least: int,
    *,
    vocabularies: Callable[[str], tuple[str, ...] | None] = lambda name: None,
    ids: RowIds | None = None,
    bins: int = DEFAULT_BINS,
) -> CutTable:
    """Cut every column into bins of at least ``least`` rows.

    ``bins`` holds where the settings do not say how many; 0 is a bin of each value.
    """
    cut: list[Bins] = []
    notes: list[str] = []
    for series in columns:
        parts, remarks = cut_column(series, settings, least, vocabularies(series.name), ids, bins)
        cut += parts
        notes += remarks
    return CutTable(tuple(cut), tuple(notes))


def cut_column(
    series: pl.Series,
    settings: PrepareSettings,
    least: int,
    vocabulary: tuple[str, ...] | None = None,
    ids: RowIds | None = None,
    bins: int = DEFAULT_BINS,
) -> tuple[list[Bins], list[str]]:
    """One raw column in bins, of which there are several for a date with its parts; and remarks.

    >>> ages = pl.Series("age", [20, 30, 40, 50, None, 60, 70, 80, 90])
    >>> (cut,), _ = cut_column(ages, PrepareSettings(), least=3)
    >>> dict(zip(cut.labels, cut.rows.tolist()))
    {'below 55, or missing': 5, '55 or more': 4}
    """
    # No more quantiles than can be large enough: merged ones would be larger than they need be.
    most = max(2, series.count() // (least + 1))
    asked = {EVERY: bins, **settings.bins}
    plain = replace(
        settings,
        bins={name: _at_most(choice, most) for name, choice in asked.items()},
        missing_indicator=True,
        min_frequency=0.0,
        drop_first=False,
        scale="none",
        impute="median",
        clip=None,
        winsorise={},
        transform={},
    )
    fitted = fit_column(series, plain, vocabulary, ids)
    cuts, notes = [], []
    for rule in fitted.rules:
        if isinstance(rule, CategoricalRule):
            whole = _of_levels(rule, series, ids)
        elif isinstance(rule, BinnedRule) or rule.scale:
            choice: object = of_column(plain.bins, series.name)
            count = choice if isinstance(choice, int) else 0
            whole = _of_numbers(rule, series, ids, count)
        else:
            notes.append(f"column {rule.name} does not vary: it has no bins")
            continue
        merged = _merged(whole, least)
        if len(merged.labels) < 2:
            notes.append(f"column {merged.name} has no two bins of {least:,} rows: it is left out")
        else:
            cuts.append(merged)
    return cuts, notes


def _at_most(choice: Any, most: int) -> Any:  # noqa: ANN401 - a number of bins, or their edges
    return min(choice, most) if isinstance(choice, int) else choice


def _of_numbers(
    rule: BinnedRule | NumericRule, series: pl.Series, ids: RowIds | None, bins: int
) -> _Cut:
    values = rule.reading.numbers(series, ids)
    missing = np.isnan(values)
    present = values[~missing]
    limits = rule.edges if isinstance(rule, BinnedRule) else _beside_a_spike(present, bins)
    last = len(limits)
    codes = np.searchsorted(limits, values, side="right").astype(np.int64)
    codes[missing] = last + 1
    edges = _shown(limits)

    def words(places: list[int]) -> str:
        inside = [place for place in places if place <= last]
        end = ", or missing" if last + 1 in places else ""
        if not inside:
            return MISSING
        low, high = min(inside), max(inside)
        if low == 0:
            return f"below {edges[high]}{end}" if high < last else f"any{end}"
        return f"{edges[low - 1]} {'or more' if high == last else f'to {edges[high]}'}{end}"

    return _Cut(rule.name, codes, words, last + 1 + bool(missing.any()), ordered=True)


def _shown(edges: Sequence[float]) -> list[str]:
    """Edges in six digits, or in as many as they need where two would look the same.

    >>> _shown([946.9599999999998, 2e6]), _shown([0.1, 0.10000001])
    (['946.96', '2e+06'], ['0.1', '0.10000001'])
    """
    short = [f"{edge:.6g}" for edge in edges]
    if len(set(short)) == len(short):
        return short
    return [repr(edge).removesuffix(".0") for edge in edges]


def _beside_a_spike(values: FloatArray, bins: int) -> tuple[float, ...]:
    """Edges where quantiles give none: the smallest value by itself, the others at quantiles.

    With no number of bins every value is one of its own.

    >>> _beside_a_spike(np.array([0.0] * 95 + [1.0, 2.0, 3.0, 4.0]), 3)
    (1.0, 2.5)
    """
    rest = values[values > values.min()]
    if bins < 1:
        return tuple(np.unique(rest).tolist())
    inner = np.percentile(rest, np.linspace(0, 100, bins)[:-1])
    return tuple(np.unique(inner).tolist())


def _of_levels(rule: CategoricalRule, series: pl.Series, ids: RowIds | None) -> _Cut:
    levels = [level for level in rule.kept if level != MISSING]
    places = {level: place for place, level in enumerate(levels)}
    # A row of no level is one whose value is missing, or is none of those that were fixed.
    codes = np.full(len(series), len(levels), dtype=np.int64)
    for level, marked in zip(rule.kept, rule.arrays(series, ids), strict=True):
        codes[marked == 1] = places.get(level, len(levels))
    absent = bool((codes == len(levels)).any())

    def words(group: list[int]) -> str:
        inside = [levels[place] for place in group if place < len(levels)]
        end = ", or missing" if len(levels) in group else ""
        if not inside:
            return MISSING
        return f"{inside[0] if len(inside) == 1 else OTHER}{end}"

    bins = len(levels) + absent
    return _Cut(rule.name, codes, words, bins, ordered=False, other=places.get(OTHER))


def _merged(cut: _Cut, least: int) -> Bins:
    sizes = np.bincount(cut.codes, minlength=cut.bins)
    missing = _missing_place(cut)
    values = [place for place in range(cut.bins) if place != missing]
    groups = _neighbours(values, sizes, least) if cut.ordered else _levels(cut, sizes, least)
    if missing is not None:
        groups = _with_missing(groups, missing, sizes, least)
    groups = [group for group in groups if sizes[group].sum()]
    codes = np.zeros(cut.bins, dtype=np.int64)
    for number, group in enumerate(groups):
        codes[group] = number
    small = int(np.count_nonzero((sizes > 0) & (sizes < least)))
    labels = tuple(map(cut.words, groups))
    return Bins(cut.name, labels, codes[cut.codes], cut.ordered, small)


def _missing_place(cut: _Cut) -> int | None:
    last = cut.bins - 1
    return last if last >= 0 and cut.words([last]) == MISSING else None


def _neighbours(places: list[int], sizes: IntArray, least: int) -> list[list[int]]:
    groups = [[place] for place in places]
    while len(groups) > 1:
        totals = [int(sizes[group].sum()) for group in groups]
        small = min(range(len(groups)), key=totals.__getitem__)
        if totals[small] >= least:
            break
        beside = [place for place in (small - 1, small + 1) if 0 <= place < len(groups)]
        with_ = min(beside, key=totals.__getitem__)
        first = min(small, with_)
        groups[first : first + 2] = [groups[first] + groups[first + 1]]
    return groups


def _levels(cut: _Cut, sizes: IntArray, least: int) -> list[list[int]]:
    missing = _missing_place(cut)
    places = [place for place in range(cut.bins) if place != missing]
    ranked = sorted(places, key=lambda place: (int(sizes[place]), place))
    merged = [place for place in ranked if sizes[place] < least]
    if cut.other is not None and cut.other not in merged and merged:
        merged.append(cut.other)
    rest = [place for place in ranked if place not in merged]
    while merged and rest and sizes[merged].sum() < least:
        merged.append(rest.pop(0))
    single = [[place] for place in sorted(rest)]
    return [*single, sorted(merged)] if merged else single


def _with_missing(
    groups: list[list[int]], missing: int, sizes: IntArray, least: int
) -> list[list[int]]:
    there = [group for group in groups if sizes[group].sum()]
    every = [*there, [missing]]
    totals = [int(sizes[group].sum()) for group in every]
    if not there or min(totals) >= least:
        return every
    smallest = min(range(len(there)), key=totals.__getitem__)
    every[smallest] = [*there[smallest], missing]
    return every[:-1]
