"""Population stability index: how far the scores of new rows have moved from reference rows.

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

from dataclasses import dataclass
from typing import Literal

import numpy as np

from taciturn.arrays import IntArray
from taciturn.errors import ShapeError

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
    counts = [
        np.where(rows_per_band == 0, 0.5, rows_per_band.astype(np.float64))
        for rows_per_band in (reference, new)
    ]
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
