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

Whether predicted probabilities are true ones: groups, a line, and two tests.

- **Hosmer-Lemeshow** [HosmerLemeshow80]: rows in ``g`` groups of equal size by probability; with
  ``O`` ones, ``E`` the sum of probabilities and ``n`` rows in a group, ::

      H = sum (O - E)^2 / (E (1 - E/n))   ~ chi-square

  with ``g - 2`` degrees of freedom on the rows that the model was fitted to, and ``g`` on others.
- **Spiegelhalter's z** [Spiegelhalter86], from the Brier score and without groups::

      z = sum (y - p)(1 - 2p) / sqrt(sum (1 - 2p)^2 p (1 - p))   ~ normal

- **The calibration line** [Cox58]: ``logit P(y) = a + b logit p`` fitted by maximum likelihood; a
  model that is right has ``b = 1`` and ``a = 0``. ``b < 1``: the model is too sure of itself. *In
  the large* is the ``a`` with ``b`` held at 1: by how much the log-odds are too low.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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


_STEPS, _CLOSE = 50, 1e-10


@dataclass(frozen=True, slots=True)
class CalibrationGroup:
    """Rows of similar probability; ``low`` and ``high`` bound ``observed``, the rate of ones."""

    rows: int
    ones: int
    predicted: float
    observed: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class HosmerLemeshow:
    """Hosmer-Lemeshow test; ``p_value`` is how often chance alone gives a statistic as large."""

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True, slots=True)
class Spiegelhalter:
    """Spiegelhalter's two-sided test."""

    z: float
    p_value: float


@dataclass(frozen=True, slots=True)
class CalibrationLine:
    """Calibration line with standard errors; NaN where it does not exist.

    ``intercept`` is a, ``slope`` b, and ``in_the_large`` the a where b is 1.
    """

    intercept: float
    intercept_error: float
    slope: float
    slope_error: float
    in_the_large: float
    in_the_large_error: float


def calibration_groups(
    scores: FloatArray, labels: LabelArray, groups: int = 10
) -> tuple[CalibrationGroup, ...]:
    """Rows in about equal groups by log-odds, from low to high; equal scores stay together."""
    if groups < 1:
        raise ConfigError(
            f"a calibration test cannot have {groups} groups", where="groups", hint="use 10"
        )
    truth = truth_of(scores, labels)
    order = np.argsort(scores)
    ordered, ones = scores[order], truth[order]
    places = np.linspace(0, len(scores), min(groups, len(scores)) + 1)[1:-1].round()
    # A group begins with the first row of its score.
    starts = np.searchsorted(ordered, ordered[places.astype(np.int64)], side="left")
    starts = np.unique(np.append(0, starts))
    counts = np.diff(np.append(starts, len(scores)))
    sums = np.add.reduceat(sigmoid(ordered), starts)
    held = np.add.reduceat(ones.astype(np.int64), starts)
    return tuple(
        CalibrationGroup(int(n), int(k), float(p / n), int(k) / int(n), *wilson(int(k), int(n)))
        for n, k, p in zip(counts, held, sums, strict=True)
    )


def hosmer_lemeshow(groups: tuple[CalibrationGroup, ...], *, fitted: bool) -> HosmerLemeshow:
    """Hosmer-Lemeshow test; ``fitted`` where the model was fitted to these rows."""
    # Not scipy.stats, which has the same behind a second of imports.
    from scipy.special import chdtrc

    degrees = len(groups) - (2 if fitted else 0)
    if degrees < 1:
        return HosmerLemeshow(math.nan, max(degrees, 0), math.nan)
    statistic = 0.0
    for group in groups:
        variance = group.rows * group.predicted * (1 - group.predicted)
        gap = group.ones - group.rows * group.predicted
        if variance > 0:
            statistic += gap**2 / variance
        elif gap:
            # What was said to be impossible has happened.
            statistic = math.inf
    return HosmerLemeshow(statistic, degrees, float(chdtrc(degrees, statistic)))


def spiegelhalter(scores: FloatArray, labels: LabelArray) -> Spiegelhalter:
    """Spiegelhalter's test; NaN where every probability is 0, one half or 1."""
    truth, probabilities = truth_of(scores, labels), sigmoid(scores)
    lean = 1 - 2 * probabilities
    variance = float(np.sum(np.square(lean) * probabilities * (1 - probabilities)))
    if variance <= 0:
        return Spiegelhalter(math.nan, math.nan)
    z = float(np.sum((truth - probabilities) * lean)) / math.sqrt(variance)
    return Spiegelhalter(z, math.erfc(abs(z) / math.sqrt(2)))


def calibration_line(scores: FloatArray, labels: LabelArray) -> CalibrationLine:
    """Calibration line of scores, which are log-odds of a one."""
    truth = truth_of(scores, labels).astype(np.float64)
    ones = np.ones((len(scores), 1))
    large, large_error = _fitted(ones, scores, truth)
    line, errors = np.full(2, math.nan), np.full(2, math.nan)
    if not _separated(scores, truth > 0):
        line, errors = _fitted(np.column_stack([ones, scores]), np.zeros_like(scores), truth)
    values = (line[0], errors[0], line[1], errors[1], large[0], large_error[0])
    return CalibrationLine(*map(float, values))


def _separated(scores: FloatArray, truth: NDArray[np.bool]) -> bool:
    """Whether a threshold separates the classes: then the likelihood has no maximum."""
    ones, zeros = scores[truth], scores[~truth]
    if not (len(ones) and len(zeros)):
        return True
    return bool(zeros.max() <= ones.min() or ones.max() <= zeros.min())


def _fitted(
    design: FloatArray, offset: FloatArray, truth: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Maximum likelihood by Newton's method with halved steps, and standard errors."""
    none = np.full(design.shape[1], math.nan)
    if truth.min() == truth.max():
        return none, none
    # From what the model says of itself, which is near in most cases.
    at = np.zeros(design.shape[1])
    at[1:] = 1.0
    moved = design @ at + offset
    value = _likelihood(moved, truth)
    for _ in range(_STEPS):
        probabilities = sigmoid(moved)
        matrix = (design * (probabilities * (1 - probabilities))[:, None]).T @ design
        slope = design.T @ (truth - probabilities)
        try:
            step = np.linalg.solve(matrix, slope)
        except np.linalg.LinAlgError:
            return none, none
        if float(slope @ step) < _CLOSE:
            # The last step is as long as what is still wrong.
            return at + step, np.sqrt(np.diag(np.linalg.inv(matrix)))
        size = 1.0
        while True:
            moved = design @ (at + size * step) + offset
            reached = _likelihood(moved, truth)
            if reached >= value or size < _CLOSE:
                break
            size /= 2
        at, value = at + size * step, reached
    return none, none


def _likelihood(scores: FloatArray, truth: FloatArray) -> float:
    # log(1 + e^s) of minus the signed score: logaddexp, several times as fast.
    signed = scores * (1 - 2 * truth)
    return float(-(np.maximum(signed, 0.0) + np.log1p(np.exp(-np.abs(signed)))).sum())
