"""Partial scores on their way: finite, of the due iteration, one per row."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import DivergenceError, RemoteProtocolError
from taciturn.protocol.messages import PartialScores
from taciturn.protocol.steps import Program, receive, require_turn


def require_finite(scores: FloatArray) -> FloatArray:
    """The scores, unless the training has diverged.

    >>> require_finite(np.array([0.5, -2.0])).tolist()
    [0.5, -2.0]

    Raises:
        DivergenceError: A score is infinite or no number.
    """
    if not np.isfinite(scores).all():
        raise DivergenceError(
            "a score is not finite: the training has diverged",
            hint="lower the learning rate, or scale or clip the features",
        )
    return scores


def receive_scores(iteration: int, rows: int) -> Program[FloatArray]:
    """Waits for Alice's scores of the given number of rows.

    Raises:
        RemoteProtocolError: They are of another iteration or number.
    """
    message = yield from receive(PartialScores)
    require_turn("PartialScores", message.iteration, iteration)
    if len(message.scores) != rows:
        raise RemoteProtocolError(
            f"the peer scored {len(message.scores)} rows where {rows} are expected"
        )
    return message.scores
