"""``BinnedRule``: a numeric column that is cut into intervals, one output column each."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.data.column_parsing import NUMBER, Reading, filled
from taciturn.data.ids import RowIds
from taciturn.data.rule_base import (
    MISSING,
    Bin,
    OneHotRule,
    check_clip,
    clip_step,
    clipped,
    described,
    gap_step,
    kind_step,
    missing_step,
    require,
    require_finite,
)


@dataclass(frozen=True, slots=True)
class BinnedRule(OneHotRule):
    """Rule of a numeric column that is cut into intervals.

    Bins are counted from 0: the intervals from low to high, then that of missing values, where
    there is one. Each has an output column but the reference, which is the first that a training
    row was in.

    An edge belongs to the interval that begins there. ``impute`` None refuses missing values
    without a bin. ``shares`` are those of the training rows in each bin; empty where they were not
    counted.
    """

    column: str
    edges: tuple[float, ...]
    impute: float | None = None
    missing: bool = False
    clip: float | None = None
    reading: Reading = NUMBER
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_finite(self.column, "impute", self.impute)
        require_finite(self.column, "edges", *self.edges)
        require(self.edges, self.column, "there are no edges")
        rising = all(low < high for low, high in pairwise(self.edges))
        require(rising, self.column, "the edges are not in ascending order")
        sound = all(0 <= share <= 1 for share in self.shares)
        fitting = sound and len(self.shares) in (0, self.count)
        require(fitting, self.column, "the shares do not fit the bins")
        check_clip(self.clip, f"rule of column {self.column!r}")

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.edges) + 1 + self.missing

    @property
    def reference(self) -> int:
        """The bin without a column: the first that a training row was in."""
        return next((place for place, share in enumerate(self.shares) if share), 0)

    @property
    def bins(self) -> tuple[Bin, ...]:
        """Every bin, in order, the reference included."""
        name, words, edges = self.name, self._words(), self._short_edges()
        middle = (f"{low} ≤ {name} < {high}" for low, high in pairwise(edges))
        labels = [f"{name} < {edges[0]}", *middle, f"{edges[-1]} ≤ {name}", f"{name} missing"]
        return tuple(
            Bin(
                labels[place],
                None if place == self.reference else f"{name}={words[place]}",
                self.shares[place] if self.shares else None,
            )
            for place in range(self.count)
        )

    def _words(self) -> list[str]:
        """Exact names of the bins, so that two of them never look the same."""
        edges = [repr(edge).removesuffix(".0") for edge in self.edges]
        middle = (f"{low} to {high}" for low, high in pairwise(edges))
        return [f"below {edges[0]}", *middle, f"{edges[-1]} or more", MISSING]

    def _short_edges(self) -> list[str]:
        """Edges with as many digits as tell them apart.

        >>> BinnedRule("x", (54.379999999999995, 59.0, 1234567.0))._short_edges()
        ['54.38', '59', '1234567']
        """
        for digits in (6, 9, 12):
            texts = [f"{edge:.{digits}g}" for edge in self.edges]
            if len({*texts}) == len(texts) and "e" not in "".join(texts):
                return texts
        return [repr(edge).removesuffix(".0") for edge in self.edges]

    def describe(self) -> str:
        """One-line description of the rule."""
        unseen = [bin_.label for bin_ in self.bins if bin_.share == 0]
        return described(
            self.name,
            f"{kind_step(self.reading)} in {len(self.edges) + 1} intervals, one-hot",
            f"{self._words()[self.reference]} gets no column",
            None if self.missing else gap_step(self.impute),
            f"no training row in {', '.join(unseen)}: zeros" if unseen else None,
            clip_step(self.clip),
            missing_step(self.missing),
        )

    def places(self, series: pl.Series, ids: RowIds | None = None) -> NDArray[np.int64]:
        """Bin of each row."""
        values = self.reading.numbers(series, ids)
        known = values if self.missing else filled(series.name, values, self.impute, ids)
        places = np.searchsorted(self.edges, known, side="right").astype(np.int64)
        return np.where(np.isnan(values), self.count - 1, places) if self.missing else places

    def table(self) -> FloatArray:
        """Output values of each bin: bins by columns."""
        values = np.eye(self.count)
        if self.shares:
            shares = np.array(self.shares)
            values[shares == 0] = shares
        return clipped(np.delete(values, self.reference, axis=1), self.clip)
