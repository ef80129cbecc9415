"""Rows sorted by score, and the metrics that are counted along them.

With ``TP`` and ``FP`` counted at each distinct score used as a threshold, ``P`` ones and ``N``
zeros::

    AUC    = share of (one, zero) pairs in the right order, ties count half
    PR-AUC = sum (recall_i - recall_(i-1)) precision_i, the average precision of scikit-learn
    KS     = max |TP/P - FP/N|                                                          [Smirnov48]

AUC and KS are computed in integers and divided once, hence exact to the last rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.errors import LabelValueError, MissingValueError, ShapeError
from taciturn.memmap import over_blocks

Truth: TypeAlias = NDArray[np.bool]


@dataclass(frozen=True, slots=True)
class SortedScores:
    """Number of rows and of ones at or above each distinct score, the highest first.

    Metrics that compare the two classes are NaN where one is absent.
    """

    levels: FloatArray
    rows: IntArray
    ones: IntArray

    @classmethod
    def from_scores(cls, scores: FloatArray, labels: LabelArray) -> SortedScores:
        """Sort rows by score; raises ``DataError`` unless both are fit for use."""
        return cls.from_truth(scores, truth_of(scores, labels))

    @classmethod
    def from_truth(cls, scores: FloatArray, truth: Truth) -> SortedScores:
        """Sort rows by score, with labels that ``truth_of`` has checked."""
        order = np.argsort(scores)[::-1]
        ordered, counts = scores[order], np.cumsum(truth[order], dtype=np.int64)
        # Of long tables each array takes much memory.
        del order
        # Rows of equal score pass a threshold together, so only the last of each run counts.
        last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
        return cls(ordered[last], last + 1, counts[last])

    @property
    def total(self) -> int:
        """Number of rows."""
        return int(self.rows[-1])

    @property
    def total_ones(self) -> int:
        """Number of ones."""
        return int(self.ones[-1])

    @property
    def total_zeros(self) -> int:
        """Number of zeros."""
        return self.total - self.total_ones

    @property
    def both_classes(self) -> bool:
        """Whether there are ones and zeros."""
        return 0 < self.total_ones < self.total

    def auc(self) -> float:
        """Area under the ROC curve, ties counting half."""
        if not self.both_classes:
            return math.nan

        def twice(place: slice) -> int:
            # A zero is in the right order with the ones above it and half so with the ones it ties
            # with; counting both thresholds around it gives twice that, in integers.
            true, above = _from_before(self.ones, place)
            rows, before = _from_before(self.rows, place)
            return int(np.sum((rows - true - before + above) * (true + above)))

        return sum(over_blocks(twice, len(self.rows))) / (2 * self.total_ones * self.total_zeros)

    def pr_auc(self) -> float:
        """Average precision; NaN if there is no one."""
        if not self.total_ones:
            return math.nan

        def precise(place: slice) -> float:
            true, before = _from_before(self.ones, place)
            return float(np.sum((true - before) * (true / self.rows[place])))

        return sum(over_blocks(precise, len(self.rows))) / self.total_ones

    def ks(self) -> float:
        """Kolmogorov-Smirnov distance between ones and zeros."""
        if not self.both_classes:
            return math.nan
        ones, zeros = self.total_ones, self.total_zeros

        def most(place: slice) -> int:
            true = self.ones[place]
            return int(np.abs(true * zeros - (self.rows[place] - true) * ones).max())

        return max(over_blocks(most, len(self.rows))) / (ones * zeros)


def _from_before(counts: IntArray, place: slice) -> tuple[IntArray, IntArray]:
    """Counts at some thresholds, and those at the threshold before each."""
    first = counts[place.start - 1] if place.start else 0
    return counts[place], np.concatenate(([first], counts[place.start : place.stop - 1]))


def truth_of(values: FloatArray, labels: LabelArray) -> Truth:
    """The labels as booleans; raises ``DataError`` unless scores and labels are fit for use."""
    if values.ndim != 1 or values.shape != labels.shape:
        raise ShapeError(f"scores of shape {values.shape}, labels of {labels.shape}")
    if not len(values):
        raise ShapeError("no rows to score")
    if np.isnan(values).any():
        raise MissingValueError("a score is NaN", hint="did training diverge?")
    truth = np.equal(labels, 1)
    if not np.all(truth | np.equal(labels, 0)):
        raise LabelValueError("a label is neither 0 nor 1")
    return truth
