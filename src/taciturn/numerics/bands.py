"""Score bands and population stability.

Bands cut rows by score, the riskiest band first. Their edges come from reference rows or from a
person; other rows are put into the same bands, so that two tables can be compared line by line.

The population stability index compares the score distributions of new and of reference rows. With
the fractions ``e_i`` of the reference rows and ``a_i`` of the new ones in band ``i`` of B::

    PSI = sum (a_i - e_i) ln(a_i / e_i)

By the usual rule of thumb below 0.1 nothing has changed, and above 0.25 much has [Siddiqi06]. The
rule knows no sample size. Where nothing has changed, n reference rows and m new ones give ::

    PSI / (1/n + 1/m)  ~  chi-square with B - 1 degrees of freedom             [YurdakulNaranjo20]

hence ``(B-1)(1/n + 1/m)`` on average: 100 new rows in ten bands come to 0.09 by chance alone. So
the result also has that average, the value that chance exceeds once in twenty, and Pearson's
chi-square test that both sets have one distribution.

An empty band counts half a row, in both sets, so that the logarithm exists; the test needs none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.errors import ConfigError, ShapeError
from taciturn.numerics.intervals import UNKNOWN, wilson
from taciturn.numerics.logistic import sigmoid
from taciturn.numerics.metrics import truth_of

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
        """Bands of equally many rows; fewer where scores are equal."""
        if not 1 <= count <= MOST_BANDS:
            raise ConfigError(f"{count} bands are not possible", hint="use 2 to 100 of them")
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


Rule = Literal["stable", "moved", "shifted"]
LITTLE, MUCH = 0.1, 0.25


@dataclass(frozen=True, slots=True)
class StabilityBand:
    """Fractions of the rows in one band, and its summand of the PSI."""

    reference: float
    new: float
    summand: float


@dataclass(frozen=True, slots=True)
class Stability:
    """Comparison of the score distributions of two sets of rows.

    ``expected`` is the PSI's mean where nothing has changed, and ``critical`` what chance exceeds
    once in twenty times; ``chi_square`` and ``p_value`` are Pearson's. Bands begin with the lowest
    scores.
    """

    psi: float
    rule: Rule
    expected: float
    critical: float
    chi_square: float
    degrees: int
    p_value: float
    reference_rows: int
    new_rows: int
    bands: tuple[StabilityBand, ...]


def stability(reference: IntArray, new: IntArray) -> Stability:
    """Population stability index of the counts of two sets of rows in the same bands."""
    # Not scipy.stats, which has the same behind a second of imports.
    from scipy.special import chdtrc, chdtri

    rows, new_rows = int(reference.sum()), int(new.sum())
    if reference.shape != new.shape or not (rows and new_rows):
        raise ShapeError("two sets of rows in the same bands are needed to compare them")
    # None of them is zero.
    counts = [np.where(one == 0, 0.5, one.astype(np.float64)) for one in (reference, new)]
    expected, actual = (count / count.sum() for count in counts)
    summands = (actual - expected) * np.log(actual / expected)
    psi = float(summands.sum())
    scale = 1 / rows + 1 / new_rows
    # A band that nobody is in says nothing.
    used = (reference + new) > 0
    degrees = max(int(used.sum()) - 1, 0)
    statistic = _pearson(reference[used], new[used])
    return Stability(
        psi=psi,
        rule="stable" if psi < LITTLE else "moved" if psi < MUCH else "shifted",
        expected=degrees * scale,
        critical=float(chdtri(degrees, 0.05)) * scale if degrees else 0.0,
        chi_square=statistic,
        degrees=degrees,
        p_value=float(chdtrc(degrees, statistic)) if degrees else 1.0,
        reference_rows=rows,
        new_rows=new_rows,
        bands=tuple(
            StabilityBand(*band)
            for band in zip(
                (reference / rows).tolist(),
                (new / new_rows).tolist(),
                summands.tolist(),
                strict=True,
            )
        ),
    )


def _pearson(reference: IntArray, new: IntArray) -> float:
    table = np.stack([reference, new]).astype(np.float64)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float((np.square(table - expected) / expected).sum())
