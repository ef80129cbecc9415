"""Fitting of bins: numbers that are cut into intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.binned_rule import BinnedRule
from taciturn.data.recognition import RawColumn
from taciturn.data.rules import NumericRule


def equal_bins(
    column: RawColumn, rule: NumericRule, inside: FloatArray, count: int
) -> BinnedRule | None:
    """Intervals of about equally many rows; None where all would be in one."""
    inner = np.percentile(inside, np.linspace(0, 100, count + 1)[1:-1])
    edges = tuple(np.unique(inner[inner > inside.min()]).tolist())
    return _binned(column, rule, edges) if edges else None


def given_bins(column: RawColumn, rule: NumericRule, edges: tuple[float, ...]) -> BinnedRule:
    """Intervals between given edges: as many outputs as were asked for, whatever the rows."""
    marked = rule.missing or column.settings.impute == "bin"
    binned = _binned(column, replace(rule, missing=marked), edges)
    unseen = [bin_.label for bin_ in binned.bins[: len(edges) + 1] if not bin_.share]
    if unseen:
        kept = "a column of zeros" if len(unseen) == 1 else "columns of zeros"
        column.note(f"{rule.name}: no training row is in {', '.join(unseen)}: kept as {kept}")
    return binned


def _binned(column: RawColumn, rule: NumericRule, edges: tuple[float, ...]) -> BinnedRule:
    # With a bin of their own there is nothing that missing values become.
    impute = None if column.settings.impute == "bin" else rule.impute
    binned = BinnedRule(rule.column, edges, impute, rule.missing, rule.clip, rule.reading)
    counts = np.bincount(binned.places(column.series), minlength=binned.count)
    return replace(binned, shares=tuple((counts / len(column.series)).tolist()))
