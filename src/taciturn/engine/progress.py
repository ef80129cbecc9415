"""Progress of a task and its remaining time, for log lines and dashboards."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import timedelta

from taciturn.protocol.events import Advance, PartDone


class ProgressEstimate:
    """Progress of a task, for log lines where there is no terminal.

    >>> now = [0.0]
    >>> estimate = ProgressEstimate(lambda: now[0])
    >>> estimate.begin("training")
    >>> estimate.advance("training", 20, 120)
    >>> now[0] = 60.0
    >>> estimate.advance("training", 45, 120)
    >>> estimate.line()
    'training: 45 of 120, 0:01:00 elapsed, about 0:03:00 remaining'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.activity, self._start = "starting", clock()
        self._first: tuple[float, float] | None = None
        self._done: float = 0
        self._total = 0

    def begin(self, activity: str) -> None:
        """Begin another kind of work, of which nothing is done yet."""
        self.activity, self._start = activity, self._clock()
        self._first, self._done, self._total = None, 0, 0

    def observe(self, event: Advance) -> bool:
        """Record an event; False for a part of a pass that is no further than what is known.

        In a simulation both sides tell of the parts of a pass, and one may be behind the other.
        """
        if isinstance(event, PartDone) and event.reach <= self._done:
            return False
        self.advance(event.work, event.reach, event.total)
        return True

    def advance(self, activity: str, done: float, total: int) -> None:
        """Set the completed amount and the total; another ``activity`` begins anew."""
        if activity != self.activity:
            self.begin(activity)
        # A resumed training is not at its beginning: the pace is that of what is done from here on.
        self._first = self._first or (self._clock(), done)
        self._done, self._total = done, total

    @property
    def reach(self) -> tuple[float, int]:
        """Completed amount and total; 0 of 0 if unknown."""
        return self._done, self._total

    def line(self) -> str:
        """Completed amount, elapsed time and estimated remaining time."""
        now = self._clock()
        parts = [self.activity]
        if self._total:
            parts = [f"{self.activity}: {math.floor(self._done):,} of {self._total:,}"]
        parts.append(f"{_duration(now - self._start)} elapsed")
        left = self.remaining()
        if left is not None:
            parts.append(f"about {_duration(left)} remaining")
        return ", ".join(parts)

    def remaining(self) -> float | None:
        """The seconds that are left at the pace so far; None where there is none yet."""
        now = self._clock()
        since, done = self._first or (now, self._done)
        if not done < self._done < self._total:
            return None
        return (now - since) * (self._total - self._done) / (self._done - done)


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
