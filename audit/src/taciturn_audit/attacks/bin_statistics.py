"""Labels from bin statistics that are handed over: each bin's count of ones, and what follows.

The usual way to bin a partner's columns hands the feature party a statistic of every bin: its
weight of evidence, or its share of ones. She knows the bins' sizes, for the bins are hers.

**The root.** With ``n_b`` rows in bin b, smoothing s, ``a_b = exp(WOE_b)``, and x the odds
``(P + k s) / (Q + k s)`` of ones to zeros over all rows, ``p_b + s = (n_b + 2 s) a_b x / (1 + a_b
x)``, and the counts add up to P where

    psi(x) = sum_b (n_b + 2 s) (1 - a_b) (1 + x) / (1 + a_b x) = 0

Each summand rises in x: its derivative is ``(n_b + 2 s) (1 - a_b)^2 / (1 + a_b x)^2``. So psi is
the derivative of a convex function, has one root, and the weights alone determine how many ones
there are, in all and in every bin.

**Rounded weights.** A total P is possible where every bin has a whole number of ones whose weight,
rounded as the given one is, equals it, and these numbers can add up to P. Columns of the same rows
have one P. A count is *exact* where all possible totals leave one number for it.

**Certain rows.** A count is one linear equation in the labels, and the bins of many columns
overlap. A bin without ones, or of ones only, says the label of every row in it. Rows that are known
are taken out of the bins of the other columns, where they may leave one label only, and so on until
nothing changes. This is sound, and not all that the equations imply: bounds by linear programming
could prove more rows.

**The likeliest labels.** Of all distributions of independent labels that have the given counts, the
one of largest entropy has ``P(y_i = 1) = sigma(sum of one number for each of row i's bins)``: it is
the logistic regression of the labels on the bins, whose likelihood depends on the labels through
these counts alone. So anyone who has the counts can fit the very model that the two parties would
have trained together, without a label.

**Assumes.** Known are the formula, the smoothing, the number of digits, and the size of every bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn_audit.attacks.base import LabelGuess

# What floating point may cost a weight that is not rounded.
_SLACK = 1e-9
# Odds from e^-40 to e^40 are those of any table.
_WIDEST = 40.0
# More totals than this are not tried one by one: the nearest to the root are.
_MOST_TOTALS = 20_000
# Number of bounds that are examined at a time.
_MOST_NUMBERS = 4_000_000


@dataclass(frozen=True, slots=True)
class PublishedStatistics:
    """Bin statistics of one column as the feature party receives them, and the bins' sizes.

    Statistics are weights of evidence, or shares of ones with ``shares``; ``digits`` is None where
    they are not rounded.
    """

    rows: IntArray = field(repr=False)
    statistics: FloatArray = field(repr=False)
    smoothing: float = 0.0
    digits: int | None = None
    shares: bool = False

    @property
    def half_step(self) -> float:
        """The most by which rounding moves a statistic."""
        return _SLACK if self.digits is None else 0.5 * 10.0**-self.digits + _SLACK


@dataclass(frozen=True, slots=True)
class Counted:
    """The most likely count of ones in each bin of a column, and where it is exact."""

    ones: IntArray = field(repr=False)
    exact: BoolArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Recovered:
    """The counts of all columns, the number of possible totals of ones, and the total taken."""

    columns: tuple[Counted, ...]
    totals: int
    total: int


def total_ones(column: PublishedStatistics) -> float:
    """The total number of ones that the weights of one column give: the root.

    >>> from taciturn_risk.woe.weights import weights_of_evidence
    >>> ones, rows = np.array([3, 40, 7]), np.array([50, 80, 70])
    >>> published = PublishedStatistics(rows, weights_of_evidence(ones, rows), smoothing=0.5)
    >>> round(total_ones(published), 6)
    50.0
    """
    bins, extra = len(column.rows), column.smoothing
    sizes = column.rows + 2 * extra
    if column.shares:
        return float((column.statistics * column.rows).sum())
    weights = column.statistics
    full, rest = np.isposinf(weights), ~np.isposinf(weights)
    factors = np.exp(weights[rest])

    def rising(odds: float) -> float:
        x = np.exp(odds)
        # Divided by 1 + x, which keeps the sign; a bin of ones only is the limit of a large factor.
        terms = sizes[rest] * (1 - factors) / (1 + factors * x)
        return float(terms.sum() - sizes[full].sum() / x)

    low, high = rising(-_WIDEST), rising(_WIDEST)
    if low >= 0 or high <= 0:
        # All bins have one weight, which says nothing; or the table has one label.
        return float("nan")
    odds = brentq(rising, -_WIDEST, _WIDEST, xtol=1e-13)
    return float(expit(odds) * sizes.sum() - bins * extra)


def recover_counts(columns: Sequence[PublishedStatistics]) -> Recovered:
    """The count of ones in every bin of several columns of the same rows."""
    totals = _possible_totals(columns)
    if not len(totals):
        # Nothing fits: what was handed over is not what it is said to be.
        ends = [_bounds(column, np.array([_nearest_total(columns)])) for column in columns]
        counted = [_counted(*pair) for pair in zip(columns, ends, strict=True)]
        none = tuple(
            Counted(column_counts.ones, np.zeros_like(column_counts.exact))
            for column_counts in counted
        )
        return Recovered(none, 0, _nearest_total(columns))
    nearest = int(totals[np.argmin(np.abs(totals - _nearest_total(columns)))])
    result = []
    for column in columns:
        blocks = [_bounds(column, block) for block in _blocks(column, totals)]
        fewest = np.min([low.min(axis=0) for low, _ in blocks], axis=0)
        exact = fewest == np.max([high.max(axis=0) for _, high in blocks], axis=0)
        best = _counted(column, _bounds(column, np.array([nearest])))
        result.append(Counted(best.ones, exact))
    return Recovered(tuple(result), len(totals), nearest)


def _counted(column: PublishedStatistics, ends: tuple[IntArray, IntArray]) -> Counted:
    low, high = ends
    middle = np.clip((low[0] + high[0]) // 2, 0, column.rows)
    return Counted(middle.astype(np.int64), low[0] == high[0])


def _nearest_total(columns: Sequence[PublishedStatistics]) -> int:
    rows = int(columns[0].rows.sum())
    roots = np.array([total_ones(column) for column in columns])
    known = roots[np.isfinite(roots)]
    if not len(known):
        return rows // 2
    return int(np.clip(np.rint(np.median(known)), 1, rows - 1))


def _possible_totals(columns: Sequence[PublishedStatistics]) -> IntArray:
    rows, near = int(columns[0].rows.sum()), _nearest_total(columns)
    # Both labels occur: weights of evidence compare the two.
    first = max(1, min(near - _MOST_TOTALS // 2, rows - _MOST_TOTALS))
    totals = np.arange(first, min(rows, first + _MOST_TOTALS), dtype=np.int64)
    # Those of few bins first: where they leave few totals, the others have little to look at.
    for column in sorted(columns, key=lambda one: len(one.rows)):
        if not len(totals):
            break
        fits = [_fitting(column, block) for block in _blocks(column, totals)]
        totals = totals[np.concatenate(fits)]
    return totals


def _fitting(column: PublishedStatistics, totals: IntArray) -> BoolArray:
    low, high = _bounds(column, totals)
    inside = (low.sum(axis=1) <= totals) & (totals <= high.sum(axis=1))
    fits: BoolArray = (low <= high).all(axis=1) & inside
    return fits


def _blocks(column: PublishedStatistics, totals: IntArray) -> list[IntArray]:
    return np.array_split(totals, -(-len(totals) * len(column.rows) // _MOST_NUMBERS) or 1)


def _bounds(column: PublishedStatistics, totals: IntArray) -> tuple[IntArray, IntArray]:
    """The fewest and the most ones of each bin, totals by bins."""
    rows, off = column.rows, column.half_step
    if column.shares:
        low, high = (rows * (column.statistics + sign * off) for sign in (-1, 1))
        shape = (len(totals), len(rows))
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
    else:
        extra, bins = column.smoothing, len(rows)
        with np.errstate(divide="ignore"):
            odds = np.log(totals + bins * extra) - np.log(rows.sum() - totals + bins * extra)
        scores = column.statistics + odds[:, None]
        sizes = rows + 2 * extra
        low, high = (sizes * expit(scores + sign * off) - extra for sign in (-1, 1))
    # A whole number on the edge is inside.
    fewest = np.ceil(np.maximum(low, 0) - 1e-6).astype(np.int64)
    most = np.floor(np.minimum(high, rows) + 1e-6).astype(np.int64)
    return fewest, most


UNKNOWN = -1
# Keeps the numbers of a bin of one label finite; far too small to move a row across another.
_RIDGE = 1e-3
_STEPS = 500


def certain_labels(columns: Sequence[IntArray], ones: Sequence[IntArray]) -> IntArray:
    """The label of each row that the counts prove, and -1 for the others.

    ``columns`` holds the bin of each row, ``ones`` the ones in each bin, both column by column.

    >>> first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    >>> certain_labels([first, second], [np.array([0, 1]), np.array([0, 1])]).tolist()
    [0, 0, -1, -1]
    """
    labels = np.full(len(columns[0]), UNKNOWN, dtype=np.int64)
    known = -1
    while known < (known := int(np.count_nonzero(labels != UNKNOWN))):
        for codes, counts in zip(columns, ones, strict=True):
            open_rows = np.bincount(codes[labels == UNKNOWN], minlength=len(counts))
            left = counts - np.bincount(codes[labels == 1], minlength=len(counts))
            settled = np.where(left <= 0, 0, np.where(left >= open_rows, 1, UNKNOWN))
            here = labels == UNKNOWN
            labels[here] = settled[codes[here]]
    return labels


def likeliest_labels(columns: Sequence[IntArray], ones: Sequence[IntArray]) -> LabelGuess:
    """The guess of largest entropy that has the counts, certain where they prove a label."""
    scores = _entropy_scores(columns, ones)
    proven = certain_labels(columns, ones)
    sure = proven != UNKNOWN
    beyond = 1.0 + float(np.abs(scores).max())
    scores = np.where(sure, np.where(proven == 1, beyond, -beyond), scores)
    bins = sum(map(len, ones))
    remark = f"{bins:,} counts of {len(columns):,} columns, {int(sure.sum()):,} rows proven"
    return LabelGuess(scores, np.ones(len(scores), dtype=bool), sure, remark)


def majority_labels(columns: Sequence[IntArray], ones: Sequence[IntArray]) -> LabelGuess:
    """The commoner label of each row's most lopsided bin: the information in a single count."""
    best = np.zeros(len(columns[0]))
    for codes, counts in zip(columns, ones, strict=True):
        sizes = np.bincount(codes, minlength=len(counts))
        # How far beyond chance a guess is by this bin alone, with a sign.
        lean = counts / np.maximum(sizes, 1) - 0.5
        best = np.where(np.abs(lean[codes]) > np.abs(best), lean[codes], best)
    sure = np.abs(best) >= 0.5
    return LabelGuess(best, np.ones(len(best), dtype=bool), sure)


def _entropy_scores(columns: Sequence[IntArray], ones: Sequence[IntArray]) -> FloatArray:
    """The log-odds of each row, by L-BFGS on the dual, which is a logistic likelihood."""
    patterns, place = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    weights = np.bincount(place.ravel()).astype(np.float64)
    widths = np.array([len(counts) for counts in ones])
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    cells, wide = patterns.shape
    where = (patterns + starts).ravel()
    design = csr_matrix(
        (np.ones(len(where)), where, np.arange(0, len(where) + 1, wide)),
        shape=(cells, int(widths.sum())),
    )
    target = np.concatenate([np.asarray(counts, dtype=np.float64) for counts in ones])

    def dual(numbers: FloatArray) -> tuple[float, FloatArray]:
        scores = design @ numbers
        value = weights @ np.logaddexp(0, scores) - target @ numbers
        slope = design.T @ (weights * expit(scores)) - target
        return float(value + _RIDGE / 2 * numbers @ numbers), slope + _RIDGE * numbers

    fitted = minimize(
        dual, np.zeros(len(target)), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
    )
    scores: FloatArray = (design @ fitted.x)[place.ravel()]
    return scores
