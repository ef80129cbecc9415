"""Labels of single rows from the counts of ones in bins of several columns.

A count is one linear equation in the labels, and the bins of many columns overlap.

**Certain rows.** A bin without ones, or of ones only, says the label of every row in it. Rows that
are known are taken out of the bins of the other columns, where they may leave one label only, and
so on until nothing changes. This is sound, and not all that the equations imply: bounds by linear
programming could prove more rows.

**The likeliest labels.** Of all distributions of independent labels that have the given counts, the
one of largest entropy has ``P(y_i = 1) = sigma(sum of one number for each of row i's bins)``: it is
the logistic regression of the labels on the bins, whose likelihood depends on the labels through
these counts alone. So whoever has the counts can fit the very model that the two parties would have
trained together, without a label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit

from taciturn.arrays import FloatArray, IntArray
from taciturn_audit.attacks.base import LabelGuess

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
