"""Score bands: rows cut by score, the riskiest band first.

The edges of bands come from reference rows or from a
person; other rows are put into the same bands, so that two tables can be compared line by line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.intervals import UNKNOWN, wilson
from taciturn.numerics.sorted_scores import truth_of

MOST_BANDS = 100


@dataclass(frozen=True, slots=True)
class BandRow:
    """The rows of one band, with scores in ``[low, high)``.

    Rates have 95 % intervals and are NaN where the band is empty; ``..._so_far`` counts this band
    and those above.
    """

    low: float
    high: float
    rows: int
    fraction: float
    ones: int
    rate: float
    rate_low: float
    rate_high: float
    predicted: float
    rows_so_far: float
    ones_so_far: float
    rate_so_far: float


@dataclass(frozen=True, slots=True)
class Bands:
    """Score bands by strictly rising edges; each edge belongs to the band above it."""

    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.edges, self.edges[1:], strict=False))
        if not rising or not all(map(math.isfinite, self.edges)):
            raise ConfigError("band edges must be finite and ascending")
        if len(self.edges) >= MOST_BANDS:
            raise ConfigError(f"there are {len(self.edges) + 1} bands", hint="use 100 or fewer")

    @classmethod
    def from_quantiles(cls, scores: FloatArray, count: int) -> Bands:
        """At most ``count`` bands of about equally many rows; fewer where scores are equal."""
        if not 1 <= count <= MOST_BANDS:
            raise ConfigError(f"invalid number of bands: {count}", hint="use 2 to 100 of them")
        ordered = np.sort(scores)
        places = np.linspace(0, len(scores), count + 1)[1:-1].round().astype(np.int64)
        edges = np.unique(ordered[np.minimum(places, len(scores) - 1)])
        # A band without a row would be no band.
        return cls(tuple(edges[edges > ordered[0]].tolist()))

    def counts(self, scores: FloatArray) -> IntArray:
        """Number of rows in each band, the lowest band first."""
        return np.bincount(self._places(scores), minlength=len(self.edges) + 1)

    def rows(
        self, scores: FloatArray, labels: LabelArray, shift: float = 0.0
    ) -> tuple[BandRow, ...]:
        """Table of the bands, the riskiest first; ``shift`` is that of ``log_odds_shift``."""
        truth, places = truth_of(scores, labels), self._places(scores)
        count = len(self.edges) + 1
        held = np.bincount(places, minlength=count)
        ones = np.bincount(places[truth], minlength=count)
        sums = np.bincount(places, weights=sigmoid(scores - shift), minlength=count)
        ends = (-math.inf, *self.edges, math.inf)
        table: list[BandRow] = []
        rows_so_far = ones_so_far = 0
        for band in reversed(range(count)):
            rows, here = int(held[band]), int(ones[band])
            rows_so_far, ones_so_far = rows_so_far + rows, ones_so_far + here
            low, high = wilson(here, rows) if rows else UNKNOWN
            table.append(
                BandRow(
                    low=ends[band],
                    high=ends[band + 1],
                    rows=rows,
                    fraction=rows / len(scores),
                    ones=here,
                    rate=here / rows if rows else math.nan,
                    rate_low=low,
                    rate_high=high,
                    predicted=float(sums[band]) / rows if rows else math.nan,
                    rows_so_far=rows_so_far / len(scores),
                    ones_so_far=ones_so_far / int(ones.sum()) if ones.any() else math.nan,
                    rate_so_far=ones_so_far / rows_so_far if rows_so_far else math.nan,
                )
            )
        return tuple(table)

    def _places(self, scores: FloatArray) -> IntArray:
        return np.searchsorted(np.array(self.edges), scores, side="right").astype(np.int64)
