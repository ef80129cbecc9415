"""Partial scores on their way: finite, at their public scale, of the due iteration, one per row.

A score in full would carry 53 bits of Alice's columns to Bob. He needs as many digits as a residue
has: the sigmoid's slope is at most 1/4, so that rounding a score to the residues' grid moves a
residue by an eighth of its unit at most.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import DivergenceError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.protocol.masks import ZeroSum
from taciturn.protocol.messages import MaskedScores, PartialScores, ShareNumbers
from taciturn.protocol.steps import Program, receive_at, require_entries

# A whole number of this size is exact, and sixteen of them do not wrap.
_MOST = 2.0**53


def require_finite(scores: FloatArray) -> FloatArray:
    """The scores, unless the training has diverged.

    >>> require_finite(np.array([0.5, -2.0])).tolist()
    [0.5, -2.0]
    """
    if not np.isfinite(scores).all():
        raise DivergenceError(
            "a score is not finite: the training has diverged",
            setting="learning_rate",
            hint="lower the learning rate, or scale or clip the features",
        )
    return scores


def at_scale(scores: FloatArray, grid: FixedPoint) -> FloatArray:
    """Scores as they travel: the nearest points of their public grid; what is no number stays so.

    >>> at_scale(np.array([0.3, -0.1]), FixedPoint(bits=2)).tolist()
    [0.25, 0.0]
    """
    # Adding zero takes the sign off a zero, which would tell on which side the score lay.
    return grid.nearest(scores) * 2.0**-grid.bits + 0.0


def scores_message(
    iteration: int, scores: FloatArray, grid: FixedPoint, masks: ZeroSum
) -> PartialScores | MaskedScores:
    """Alice's scores as sent: rounded to their grid, and masked where there are other Alices.

    ``masks`` are hers, for this message alone. Raises ``DivergenceError`` where a score is not
    finite; under masks no error tells that.
    """
    if masks:
        return _under_masks(iteration, scores, grid, masks)
    return PartialScores(iteration, require_finite(at_scale(scores, grid)))


def _under_masks(
    iteration: int, scores: FloatArray, grid: FixedPoint, masks: ZeroSum
) -> MaskedScores:
    # What is no number is none under a mask either: it must not tell itself by an error.
    whole = np.clip(np.nan_to_num(grid.nearest(scores)), -_MOST, _MOST).astype(np.int64)
    return MaskedScores(iteration, ShareNumbers(masks.over(whole)))


def receive_scores(iteration: int, rows: int) -> Program[FloatArray]:
    """Waits for Alice's scores of the given number of rows."""
    scores = (yield from receive_at(PartialScores, iteration)).scores
    require_entries("scores", len(scores), rows)
    return scores
