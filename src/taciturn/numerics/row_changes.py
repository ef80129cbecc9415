"""Changes of the training rows' probabilities from pass to pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taciturn.arrays import FloatArray
from taciturn.families.binomial import sigmoid
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.memmap import row_blocks


class RowChanges:
    """Follows the training rows' probabilities: the largest change of one in each pass.

    Of labels that are no classes there are none.
    """

    def __init__(self, family: str = BINOMIAL) -> None:
        self._classes = FAMILIES[family].has_classes
        self._before: NDArray[np.float32] | None = None

    def note(self, scores: FloatArray) -> float | None:
        """The largest change since the scores of the pass before; None where there are none.

        >>> changes = RowChanges()
        >>> changes.note(np.array([0.0, 9.0])), round(changes.note(np.array([0.0, -9.0])), 3)
        (None, 1.0)
        """
        if not self._classes:
            return None
        before, self._before = self._before, np.empty(len(scores), dtype=np.float32)
        for place, part in row_blocks(scores):
            # What is no number is far from any probability.
            self._before[place] = np.nan_to_num(sigmoid(part), nan=-1.0)
        if before is None or len(before) != len(scores):
            return None
        return float(np.max(np.abs(self._before - before), initial=0.0))
