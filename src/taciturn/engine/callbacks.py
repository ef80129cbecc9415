"""Callbacks of a running command, channels to a peer, and progress estimates.

A channel is one live link to the peer; an endpoint makes channels, one after the other, since links
break. Neither knows which role the party has, nor what is in a frame.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeAlias

from taciturn.protocol.events import Advance, Event, PartDone
from taciturn.results.parties import News

Announce: TypeAlias = Callable[[str], None]
"""Told in words what runs now, or what has happened."""
Observer: TypeAlias = Callable[[Event], None]
"""Told each event of a program."""
ReportProgress: TypeAlias = Callable[[int, int], None]
"""Told how much of some work is done, and of how much."""
Publish: TypeAlias = Callable[[News], None]
"""Told figures, the state of links, what it costs: now and then, from any thread."""


def noop(*arguments: object) -> None:
    """Do nothing, as a callback that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks for messages, events, progress and telemetry; by default they do nothing."""

    announce: Announce = noop
    observe: Observer = noop
    progress: ReportProgress = noop
    publish: Publish = noop


SILENT = Callbacks()
"""Callbacks that do nothing."""


class Channel(Protocol):
    """One live link: whole frames, in order, both ways."""

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Sends a frame; blocks while too many bytes are in flight.

        ``wait=False`` queues a few bytes behind them without blocking. After ``ConnectionLost`` it
        is unknown whether the frame arrived; ``LocalProtocolError`` means that it is too large for
        the link.
        """

    def receive(self, timeout: float) -> bytes:
        """The next frame; those that arrived whole before the link broke are still returned.

        Raises ``PeerSilent`` after ``timeout`` seconds without a frame, ``ConnectionLost`` where
        the link is broken or closed, and ``MalformedFrame``, which ends the link, where the peer
        violates the format.
        """

    def close(self) -> None:
        """Ends the link once what was sent is out, or after a bounded time. May be repeated."""


class Endpoint(Protocol):
    """Serves or dials: makes channels to one named peer."""

    def connect(self, timeout: float) -> Channel:
        """A channel to the peer, whose certificate was verified.

        Raises ``PeerAbsent`` after ``timeout`` seconds, ``PeerRefused`` where one side rejects the
        other (a retry does not help), and ``TransportError`` where the address cannot be used.
        """

    def close(self) -> None:
        """Ends everything that was opened. May be repeated."""


Endpoints: TypeAlias = Endpoint | Mapping[str, Endpoint]
"""The way to the only peer, or one for each of several, by name."""


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
