"""Weight of evidence and information value of binned columns.

With ``p_b`` of a bin's ``n_b`` rows of label 1, ``k`` bins, ``P`` and ``Q`` rows of label 1 and 0
in all, and ``s`` the smoothing, which is added to both counts of every bin::

    share of ones    f_b = (p_b + s) / (P + k s)
    share of zeros   g_b = (n_b - p_b + s) / (Q + k s)
    WOE_b = ln(f_b / g_b)                 above 0 where label 1 is commoner than over all rows
    IV    = sum_b (f_b - g_b) WOE_b       0 where the column says nothing

Without smoothing the weight of a bin that has one label only is infinite, and so is the column's
information value.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.errors import ConfigError

DEFAULT_SMOOTHING = 0.5


def check_smoothing(smoothing: float) -> None:
    """Refuse smoothing that is negative or not finite."""
    if not (math.isfinite(smoothing) and smoothing >= 0):
        raise ConfigError(
            f"invalid smoothing {smoothing:g}",
            setting="smoothing",
            hint="use 0.5, say; 0 leaves the weight of a bin of one label infinite",
        )


def bin_shares(
    ones: IntArray, rows: IntArray, smoothing: float = DEFAULT_SMOOTHING
) -> tuple[FloatArray, FloatArray]:
    """Share of all ones, and of all zeros, in each bin.

    >>> ones, zeros = bin_shares(np.array([1, 3]), np.array([5, 5]), smoothing=0.0)
    >>> ones.tolist(), zeros.round(3).tolist()
    ([0.25, 0.75], [0.667, 0.333])
    """
    check_smoothing(smoothing)
    hits, misses = ones + smoothing, rows - ones + smoothing
    # Labels of a single class carry no information.
    with np.errstate(invalid="ignore"):
        return hits / hits.sum(), misses / misses.sum()


def weights_of_evidence(
    ones: IntArray, rows: IntArray, smoothing: float = DEFAULT_SMOOTHING
) -> FloatArray:
    """Weight of evidence of each bin.

    >>> weights_of_evidence(np.array([20, 80]), np.array([100, 100]), 0.0).round(4).tolist()
    [-1.3863, 1.3863]
    """
    hits, misses = bin_shares(ones, rows, smoothing)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights: FloatArray = np.log(hits) - np.log(misses)
    return weights


def information_value(
    ones: IntArray, rows: IntArray, smoothing: float = DEFAULT_SMOOTHING
) -> float:
    """Information value of a binned column.

    >>> round(information_value(np.array([20, 80]), np.array([100, 100]), 0.0), 4)
    1.6636
    """
    hits, misses = bin_shares(ones, rows, smoothing)
    weights = weights_of_evidence(ones, rows, smoothing)
    # An empty bin has no share of either, and no weight that counts.
    with np.errstate(invalid="ignore"):
        parts = (hits - misses) * weights
    return float(np.where((hits == 0) & (misses == 0), 0.0, parts).sum())


def mutual_bits(ones: IntArray, rows: IntArray) -> float:
    """Mutual information of bin and label, in bits a row.

    >>> mutual_bits(np.array([0, 5]), np.array([5, 5]))
    1.0
    """
    joint = np.stack([rows - ones, ones]) / rows.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float((joint[there] * np.log2(joint[there] / apart[there])).sum())
