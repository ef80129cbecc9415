"""Monotone bins: Bob's own intervals, merged until the share of positives only rises or falls.

Neighbouring bins that break the order are pooled (pool adjacent violators), and then those with too
few rows join the neighbour whose share is nearer.

**Guarantee.** A column gives as many columns as before: zeros hold the places of bins that were
merged, so that the number of columns, which Alice learns, says nothing about labels. Only labels of
training rows are used.

**Assumes.** The caller has made sure that nothing else which Alice sees depends on Bob's columns,
or that nothing is promised (``Mechanism.against_label_bins``): where the bins end depends on
labels, and no ledger counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from taciturn.arrays import IntArray, LabelArray
from taciturn.data.choices import Monotone, PrepareSettings, of_column
from taciturn.data.rules import BinnedRule, Rule
from taciturn.errors import ConfigError
from taciturn.faces import Hint

LEAST_SHARE = 0.05
"""Of the rows that have a value: a bin with fewer is merged with a neighbour."""
_WORDS = {"increasing": "rises", "decreasing": "falls"}


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of one column's rules, and remarks."""

    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()


def merge_bins(
    rules: tuple[Rule, ...], series: pl.Series, settings: PrepareSettings, labels: LabelArray
) -> Merged:
    """Merges the bins of one column, where the settings ask for it.

    Args:
        rules: What was fitted on these rows, without labels.
        series: The column's training rows.
        settings: Which columns, and which way.
        labels: The training rows' labels.

    Raises:
        ConfigError: The column is named and not cut into bins.
    """
    direction = of_column(settings.monotone, series.name)
    if direction is None or direction == "none":
        return Merged(rules)
    if not of_column(settings.bins, series.name):
        if series.name in settings.monotone:
            raise _no_bins(series.name)
        return Merged(rules)
    merged = [
        _merged(rule, series, labels, direction) if isinstance(rule, BinnedRule) else (rule, None)
        for rule in rules
    ]
    return Merged(
        tuple(rule for rule, _ in merged), tuple(note for _, note in merged if note is not None)
    )


def require_own(settings: PrepareSettings, own: Collection[str], others: Collection[str]) -> None:
    """Insists that every column whose bins are merged by labels is Bob's alone.

    Args:
        settings: Which columns.
        own: The source columns that give Bob a prepared column.
        others: Those that give Alice one.

    Raises:
        ConfigError: One that is named is hers, or both have a part of it.
    """
    for name, direction in settings.monotone.items():
        if direction == "none" or name not in others:
            continue
        whose = "is partly Alice's" if name in own else "is Alice's"
        raise ConfigError(
            f"column {name!r} {whose}, and monotone bins are made with labels, which she has not",
            setting="monotone",
            hint="leave it out there; taciturn woe tells Bob what can be known of her columns",
        )


def _no_bins(name: str) -> ConfigError:
    return ConfigError(
        f"column {name!r} is not cut into bins, and monotone is about those",
        setting="monotone",
        hint=Hint("say how many to begin with: {bins}", bins={name: 10}),
    )


def _merged(
    rule: BinnedRule, series: pl.Series, labels: LabelArray, direction: Monotone
) -> tuple[BinnedRule, str | None]:
    """The rule with fewer bins and as many columns, and a remark where one bin is left."""
    places, intervals = rule.places(series), len(rule.edges) + 1
    rows = np.bincount(places, minlength=rule.count)[:intervals]
    ones = np.bincount(places[labels == 1], minlength=rule.count)[:intervals]
    starts, way = monotone_starts(rows, ones, direction)
    edges = tuple(rule.edges[start - 1] for start in starts[1:])
    shares = np.add.reduceat(np.array(rule.shares[:intervals]), starts)
    kept = replace(
        rule,
        edges=edges,
        # In the last digit a sum of shares may be more than 1.
        shares=(*np.minimum(shares, 1.0).tolist(), *rule.shares[intervals:]),
        padding=rule.padding + len(rule.edges) - len(edges),
    )
    if edges:
        return kept, None
    return kept, (
        f"column {rule.name}: the share of positives {_WORDS[way]} between no two of its "
        f"{intervals} intervals: kept as zeros"
    )


def monotone_starts(
    rows: IntArray, ones: IntArray, direction: Monotone
) -> tuple[list[int], Monotone]:
    """Which of neighbouring bins begin a merged one.

    Args:
        rows: How many rows each bin has.
        ones: How many of them are positive.
        direction: Which way the share is to go; with "auto" the way that it goes on the whole.

    Returns:
        The first bin of each merged one, and the direction.

    >>> monotone_starts(np.array([10, 10, 10]), np.array([1, 5, 4]), "auto")
    ([0, 1], 'increasing')
    """
    way = _trend(rows, ones) if direction == "auto" else direction
    sign = 1.0 if way == "increasing" else -1.0
    blocks: list[_Block] = []
    for start, (count, positive) in enumerate(zip(rows.tolist(), ones.tolist(), strict=True)):
        blocks.append(_Block(start, count, sign * positive))
        while len(blocks) > 1 and not blocks[-2].below(blocks[-1]):
            last = blocks.pop()
            blocks[-1] = blocks[-1].with_next(last)
    least = LEAST_SHARE * float(rows.sum())
    return [block.start for block in _large(blocks, lambda block: block.rows >= least)], way


def _trend(rows: IntArray, ones: IntArray) -> Monotone:
    """The way that the share of positives goes over the bins, by the sign of its covariance."""
    total = max(float(rows.sum()), 1.0)
    places = np.arange(len(rows)) - float(np.arange(len(rows)) @ rows) / total
    return "decreasing" if float(places @ ones) < 0 else "increasing"


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring bins in one, with the sum of what is to rise from one to the next."""

    start: int
    rows: float
    total: float

    @property
    def share(self) -> float:
        return self.total / self.rows

    def below(self, following: _Block) -> bool:
        """Whether both have rows, and the share rises to the next."""
        return bool(self.rows and following.rows) and self.share < following.share

    def with_next(self, following: _Block) -> _Block:
        return _Block(self.start, self.rows + following.rows, self.total + following.total)


def _large(blocks: list[_Block], enough: Callable[[_Block], bool]) -> list[_Block]:
    """Joins each block that is too small with the neighbour of the nearer share, smallest first."""
    while len(blocks) > 1 and not all(map(enough, blocks)):
        place = min(range(len(blocks)), key=lambda at: blocks[at].rows)
        small = blocks[place]
        gaps = {
            at: abs(blocks[at].share - small.share)
            for at in (place - 1, place + 1)
            if 0 <= at < len(blocks)
        }
        first = min(place, min(gaps, key=gaps.__getitem__))
        blocks[first : first + 2] = [blocks[first].with_next(blocks[first + 1])]
    return blocks
