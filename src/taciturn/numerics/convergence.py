"""Convergence of a training, from what Bob sees of it: loss and scores after each pass.

Where scores are shared he learns, after the last message, the change of the loss between the last
two passes, with noise, and only from enough rows on. It is compared with the tolerance at the loss
of the held-out rows, or at 0 if there is none; with fewer rows convergence is not measured.

::

    diverged     the loss is infinite, negative, or beyond twice that of no model at all: 2 log 2,
                 or twice that of a constant in other families; where it is not seen, held-out rows
                 are fitted worse than by their base rate, or scores lie beyond the range and the
                 opened change is not small
    converged    the last pass changed it by at most 0.001 (loss + 0.1), and by less than half of
                 what the passes changed it on average: slow progress alone is not convergence;
                 and none of the last two passes changed a row's probability by more than 0.05,
                 where he sees scores: a rare category hardly moves the loss

Two passes, since one may leave the rows of a rare category as they are. A search knows the
penalised loss too, which each pass lowers: there the passes to come would lower it by at most 0.001
(loss + 0.1), as a geometric series that goes on as the last passes did. The loss without penalty
can rest for a pass while that still falls, in tables of fewer than five rows a column. One opened
change says nothing of such a table.

Where the least possible loss is known, as in a simulation, the distance to it decides instead, by
the same measure: 4e-4 at a loss of 0.3, and no less than 1e-4 where a loss is next to nothing; and
no row's probability may be farther than 0.05 from that of the optimum. Bob cannot know that: rows
that no direction has reached yet rest as well, which happens where several Alices do not whiten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

MOST_LOSS = 2.0 * math.log(2.0)
"""Twice the loss of a model that says one half of every row."""

UNSEEN = "nobody saw a training loss"
UNMEASURED = "not measured: no loss is opened for so few training rows"
SEEN_ONCE = "it takes the training loss of two passes over the rows"
FEW = "one change of the loss does not show it"
_TOLERANCE, _LEAST_LOSS = 1e-3, 0.1
MOST_ROW_CHANGE = 0.05
"""Largest change of a row's probability, in one of the last two passes, that is convergence."""
FEW_ROWS = 5
"""Fewer rows a column than this, and one small change of the loss does not mean convergence."""
ENOUGH_PASSES = 112
"""Passes of a public schedule for such tables: four times as many as others take."""
_MORE_PASSES = f"with fewer than {FEW_ROWS} training rows a column, agree on {ENOUGH_PASSES} passes"
_ROW_PASSES = 2
_SERIES_PASSES = 6
# A search falls in fits and starts: a series that falls faster than this is not believed.
_LEAST_RATIO = 0.7
# Times the tolerance: a change of this size is no slow convergence.
_LARGE_CHANGE = 10.0
RESTS = 2.0**-14
"""A loss that changes by no more than this in a pass rests: more passes do not change it."""
# Below this part of the loss a change is rounding, whatever the changes before it were.
_LEAST_CHANGE = 1e-5


@dataclass(frozen=True, slots=True)
class Convergence:
    """Whether a training converged or diverged; None where nobody knows, with the reason.

    ``last_change`` is the decrease of the training loss in the last pass; None after fewer than
    two. ``row_change`` is the largest change of a row's probability in one of the last two passes;
    None where no scores were seen.
    """

    converged: bool | None = None
    diverged: bool | None = None
    last_change: float | None = None
    reason: str | None = None
    row_change: float | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """What Bob knows of the end of a training in which nobody sees a loss.

    ``change`` is the decrease of the loss in the last pass and ``beyond`` the least number of
    scores that may have wrapped; None where they are not opened. ``worse`` is whether the model
    fits held-out rows worse than their base rate, and ``few_rows`` whether there are fewer than
    ``FEW_ROWS`` rows a column.
    """

    change: float | None = None
    beyond: int | None = None
    worse: bool = False
    few_rows: bool = False

    def diverged(self, loss: float | None) -> bool:
        """Whether the training diverged; ``loss`` is that of held-out rows."""
        limit = _LARGE_CHANGE * tolerance(loss or 0.0)
        large = self.change is not None and not abs(self.change) <= limit
        return self.worse or (large and bool(self.beyond))

    def converged(self, loss: float | None) -> bool | None:
        """Whether the training converged; None where that is not known."""
        if self.change is None or (self.few_rows and abs(self.change) <= tolerance(loss or 0.0)):
            return None
        return abs(self.change) <= tolerance(loss or 0.0)

    @property
    def reason(self) -> str | None:
        """Why it is not known."""
        if self.few_rows:
            return f"{UNMEASURED if self.change is None else FEW}; {_MORE_PASSES}"
        return UNMEASURED if self.change is None else None


def assess_convergence(
    losses: Sequence[float],
    gap: tuple[float, float] | None = None,
    end: float | None = None,
    row_changes: Sequence[float] = (),
    row_gap: float | None = None,
    most_loss: float = MOST_LOSS,
    opened: Opened | None = None,
    objectives: Sequence[float] = (),
) -> Convergence:
    """Whether a training converged or diverged.

    ``losses`` are mean training losses per pass, empty where nobody saw one. ``gap`` is the
    distance to the least penalised loss, and that loss. ``end`` is the model's training loss where
    no pass was seen, or that of held-out rows. ``row_changes`` are the largest changes of a row's
    probability by pass, and ``row_gap`` is the largest distance of one to that of the optimum.
    Beyond ``most_loss`` it has diverged. ``opened`` is what is known where nobody sees a loss on
    the way. ``objectives`` are penalised losses by pass, where a search knows them.
    """
    verdict = _by_loss(losses, gap, end, most_loss, opened, objectives)
    largest = max(row_changes[-_ROW_PASSES:], default=None)
    if largest is None:
        return verdict
    # A known distance decides, of a row too.
    settled = verdict.converged and (largest if row_gap is None else row_gap) <= MOST_ROW_CHANGE
    return replace(verdict, converged=settled, row_change=largest)


def _by_loss(
    losses: Sequence[float],
    gap: tuple[float, float] | None,
    end: float | None,
    most_loss: float,
    opened: Opened | None,
    objectives: Sequence[float],
) -> Convergence:
    last = losses[-1] if losses else end
    # What is no number is not below the bound either.
    diverged = None if last is None else not -tolerance(0.0) <= last <= most_loss
    if opened is not None and opened.diverged(end):
        diverged = True
    change = losses[-2] - losses[-1] if len(losses) > 1 else None
    if opened is not None and opened.change is not None:
        change = opened.change
    if diverged:
        return Convergence(False, True, change)
    if gap is not None:
        return Convergence(gap[0] <= tolerance(gap[1]), diverged, change)
    if opened is not None and not losses:
        return Convergence(opened.converged(end), diverged, change, opened.reason)
    if change is None:
        return Convergence(None, diverged, None, SEEN_ONCE if losses else UNSEEN)
    settled = _falls_no_more(objectives) if len(objectives) > 2 else _settled(losses, change)
    return Convergence(settled, diverged, change)


def tolerance(loss: float) -> float:
    """Largest change of a loss, or distance to its optimum, that counts as converged."""
    return _TOLERANCE * (loss + _LEAST_LOSS)


def _settled(losses: Sequence[float], change: float) -> bool:
    if abs(change) <= _LEAST_CHANGE * losses[-1]:
        return True
    usual = (losses[0] - losses[-1]) / (len(losses) - 1)
    creeps = len(losses) > 2 and change >= usual / 2
    return abs(change) <= tolerance(losses[-1]) and not creeps


def _falls_no_more(objectives: Sequence[float]) -> bool:
    """Whether later passes would lower the penalised loss by no more than the tolerance.

    Each is taken to lower it by the ratio of the last passes' decreases, their median.
    """
    falls = np.maximum(-np.diff(np.asarray(objectives, dtype=np.float64)), 0.0)
    # That of flipped labels may be negative.
    last = max(objectives[-1], 0.0)
    limit = tolerance(last)
    if falls[-2:].max() <= _LEAST_CHANGE * limit:
        return True
    earlier = falls[-_SERIES_PASSES - 1 : -1][::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (falls[-1] / earlier) ** (1.0 / np.arange(1, len(earlier) + 1))
    ratio = max(float(np.median(np.nan_to_num(ratios, nan=1.0))), _LEAST_RATIO)
    if ratio >= 1.0:
        return bool(falls[-1] <= _LEAST_CHANGE * last)
    remaining = max(falls[-1], falls[-2] * ratio) * ratio / (1.0 - ratio)
    return bool(remaining <= limit)
