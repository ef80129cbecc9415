"""Convergence of a training, from what Bob sees of it: the training loss of each pass.

Where scores are shared he learns the loss of the last two passes, after the last message.

::

    diverged     the loss is infinite or beyond twice that of no model at all: 2 log 2, or twice
                 that of a constant in other families
    converged    the last pass changed it by at most 0.001 (loss + 0.1), and by less than half of
                 what the passes changed it on average: slow progress alone is not convergence

Where the least possible loss is known, as in a simulation, the distance to it decides instead, by
the same measure: 4e-4 at a loss of 0.3, and no less than 1e-4 where a loss is next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_LOSS = 2.0 * math.log(2.0)
"""Twice the loss of a model that says one half of every row."""

UNSEEN = "nobody saw a training loss"
SEEN_ONCE = "it takes the training loss of two passes over the rows"
_TOLERANCE, _LEAST_LOSS = 1e-3, 0.1
# Below this part of the loss a change is rounding, whatever the changes before it were.
_LEAST_CHANGE = 1e-5


@dataclass(frozen=True, slots=True)
class Convergence:
    """Whether a training converged or diverged; None where nobody knows, with the reason.

    ``last_change`` is the decrease of the training loss in the last pass; None after fewer than
    two.
    """

    converged: bool | None
    diverged: bool | None
    last_change: float | None
    reason: str | None = None


def assess_convergence(
    losses: Sequence[float],
    gap: tuple[float, float] | None = None,
    end: float | None = None,
    most_loss: float = MOST_LOSS,
) -> Convergence:
    """Whether a training converged or diverged.

    ``losses`` are mean training losses per pass, empty where nobody saw one. ``gap`` is the
    distance to the least penalised loss, and that loss. ``end`` is the model's training loss where
    no pass was seen. ``most_loss`` is beyond which it has diverged.
    """
    last = losses[-1] if losses else end
    # What is no number is not below the bound either.
    diverged = None if last is None else not last <= most_loss
    change = losses[-2] - losses[-1] if len(losses) > 1 else None
    if diverged:
        return Convergence(False, True, change)
    if gap is not None:
        return Convergence(gap[0] <= tolerance(gap[1]), diverged, change)
    if change is None:
        return Convergence(None, diverged, None, SEEN_ONCE if losses else UNSEEN)
    return Convergence(_settled(losses, change), diverged, change)


def tolerance(loss: float) -> float:
    """Largest change of a loss, or distance to its optimum, that counts as converged."""
    return _TOLERANCE * (loss + _LEAST_LOSS)


def _settled(losses: Sequence[float], change: float) -> bool:
    if abs(change) <= _LEAST_CHANGE * losses[-1]:
        return True
    usual = (losses[0] - losses[-1]) / (len(losses) - 1)
    creeps = len(losses) > 2 and change >= usual / 2
    return abs(change) <= tolerance(losses[-1]) and not creeps
