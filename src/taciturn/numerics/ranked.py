"""Rows in the order of their scores, the highest first: what curves and tables count on.

Rows of equal score have no order among them. Whoever takes the first ``r`` of a run of ``k`` equal
rows takes ``r/k`` of its ones, which is what a random order among them gives on average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray, LabelArray
from taciturn.numerics.metrics import truth_of


@dataclass(frozen=True, slots=True)
class Ranked:
    """Number of rows and of ones at or above each distinct score, the highest first."""

    levels: FloatArray
    rows: IntArray
    ones: IntArray

    @classmethod
    def of(cls, scores: FloatArray, labels: LabelArray) -> Ranked:
        """Sort rows by score.

        >>> ranked = Ranked.of(np.array([0.5, 2.0, 0.5]), np.array([0, 1, 1]))
        >>> ranked.levels.tolist(), ranked.rows.tolist(), ranked.ones.tolist()
        ([2.0, 0.5], [1, 3], [1, 2])
        """
        truth = truth_of(scores, labels)
        order = np.argsort(scores)[::-1]
        ordered, counts = scores[order], np.cumsum(truth[order], dtype=np.int64)
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
    def both_classes(self) -> bool:
        """Whether there are ones and zeros."""
        return 0 < self.total_ones < self.total

    def ones_among(self, first: FloatArray) -> FloatArray:
        """The ones among the first so many rows; equal rows share theirs.

        >>> Ranked.of(np.zeros(4), np.array([0, 1, 0, 1])).ones_among(np.array([1.0])).tolist()
        [0.5]
        """
        held: FloatArray = np.interp(first, np.append(0, self.rows), np.append(0, self.ones))
        return held

    def above(self, score: float) -> tuple[int, int]:
        """How many rows, and how many ones, lie above a score.

        >>> Ranked.of(np.array([0.5, 2.0, 1.0]), np.array([0, 1, 1])).above(0.5)
        (2, 2)
        """
        # The levels fall: those above the score are the first.
        place = int(np.searchsorted(-self.levels, -score, side="left"))
        return (0, 0) if place == 0 else (int(self.rows[place - 1]), int(self.ones[place - 1]))
