"""Whether the scores of new rows are spread like those of reference rows: the PSI, and a test.

With the fractions ``e_i`` of the reference rows and ``a_i`` of the new ones in band ``i`` of B::

    PSI = sum (a_i - e_i) ln(a_i / e_i)

By the usual rule of thumb below 0.1 nothing has changed, and above 0.25 much has [Siddiqi06]. The
rule knows no sample size. Where nothing has changed, n reference rows and m new ones give ::

    PSI / (1/n + 1/m)  ~  chi-square with B - 1 degrees of freedom             [YurdakulNaranjo20]

hence ``(B-1)(1/n + 1/m)`` on average: 100 new rows in ten bands come to 0.09 by chance alone. So
beside the PSI stand that average, the value that chance exceeds once in twenty, and Pearson's
chi-square test that both sets have one distribution.

An empty band counts half a row, in both sets, so that the logarithm exists; the test needs none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.errors import ShapeError

Rule = Literal["stable", "moved", "shifted"]
LITTLE, MUCH = 0.1, 0.25


@dataclass(frozen=True, slots=True)
class StabilityBand:
    """One band: its rows, as fractions, and its summand of the PSI."""

    reference: float
    new: float
    summand: float


@dataclass(frozen=True, slots=True)
class Stability:
    """Two sets of rows, set against each other.

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
    """Compares the counts of two sets of rows in the same bands.

    >>> alike = stability(np.array([50, 50]), np.array([500, 500]))
    >>> alike.psi, alike.p_value, alike.rule
    (0.0, 1.0, 'stable')
    >>> other = stability(np.array([500, 500]), np.array([250, 750]))
    >>> round(other.psi, 4), other.rule, other.p_value < 1e-9
    (0.2747, 'shifted', True)
    """
    # Not scipy.stats, which has the same behind a second of imports.
    from scipy.special import chdtrc, chdtri

    rows, new_rows = int(reference.sum()), int(new.sum())
    if reference.shape != new.shape or not (rows and new_rows):
        raise ShapeError("two sets of rows in the same bands are needed to compare them")
    expected, actual = _fractions(reference, new)
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


def _fractions(reference: IntArray, new: IntArray) -> tuple[FloatArray, FloatArray]:
    """The fractions in each band, none of them zero."""
    counts = [np.where(one == 0, 0.5, one.astype(np.float64)) for one in (reference, new)]
    first, second = (one / one.sum() for one in counts)
    return first, second


def _pearson(reference: IntArray, new: IntArray) -> float:
    table = np.stack([reference, new]).astype(np.float64)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float((np.square(table - expected) / expected).sum())
