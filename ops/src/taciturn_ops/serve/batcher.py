"""``RequestBatcher``: requests of callers wait here until a round with Alice takes them.

Requests that wait at the same time go in one round: a round takes about as long for thirty rows as
for one. A round that fails, because a side was restarted or the link broke, is asked again as long
as the requests in it may wait; a score never comes from anything but a whole round.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import PeerAbsent
from taciturn_ops.serve.rounds import MOST_ASKED, Verdict

MOST_FAILURES = 4
"""Number of failed rounds after which a request is refused."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of a histogram of seconds."""
# After so long without a request Alice is asked for nothing: she would take Bob to be gone.
BEAT_SECONDS = 1.0
STOPPING = "the service is being stopped"


@dataclass(slots=True)
class Histogram:
    """Durations, as Prometheus counts them."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[int(np.searchsorted(BUCKETS, seconds))] += 1
        self.total += seconds


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The verdict and the score of each row of a request; NaN where there is no score."""

    verdicts: tuple[Verdict, ...]
    scores: FloatArray = field(repr=False)


@dataclass(slots=True)
class ScoreRequest:
    """Rows that a caller waits for.

    ``values`` are Bob's columns in the coordinates of his weights; ``deadline`` is on the monotonic
    clock; ``failed`` counts the rounds with it that failed.
    """

    ids: tuple[str, ...] = field(repr=False)
    values: FloatArray = field(repr=False)
    deadline: float
    future: Future[BatchResult] = field(default_factory=Future)
    failed: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the request has an answer, or is past its deadline."""
        return self.future.done() or time.monotonic() > self.deadline

    def resolve(self, result: BatchResult) -> None:
        """Give the caller its scores, unless it has given up."""
        with suppress(InvalidStateError):
            self.future.set_result(result)

    def refuse(self, reason: str) -> None:
        """Give the caller an error, unless it has given up."""
        with suppress(InvalidStateError):
            self.future.set_exception(PeerAbsent(reason, hint="ask again later"))


@dataclass(slots=True)
class BatcherStats:
    """The connection and the rounds so far, for the metrics."""

    connected: bool = False
    reason: str = "not connected yet"
    meetings: int = 0
    rounds: int = 0
    rows: int = 0
    retried: int = 0
    seconds: Histogram = field(default_factory=Histogram)


class RequestBatcher:
    """The queue of requests that wait for Alice.

    ``failure`` is what has ended the thread that asks her. Nothing is taken once ``stop`` is set.
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop, self._waiting = stop, deque[ScoreRequest]()
        self._changed, self.stats = threading.Condition(), BatcherStats()
        self.failure: BaseException | None = None

    def submit(self, request: ScoreRequest) -> None:
        """Add a request to the queue."""
        if self.failure is not None or self._stop.is_set():
            request.refuse(STOPPING)
            return
        with self._changed:
            self._waiting.append(request)
            self._changed.notify()

    def refuse_all(self, reason: str = STOPPING) -> None:
        """Refuse all that wait, unless Alice is there to answer them."""
        with self._changed:
            if self.stats.connected:
                return
            waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            request.refuse(reason)

    def wake(self) -> None:
        """Let ``next_batch`` see that it is to stop."""
        with self._changed:
            self._changed.notify()

    def close(self) -> None:
        """Refuse all waiting requests, once no thread asks Alice any more."""
        for request in self._waiting:
            request.refuse(STOPPING)

    def away(self, reason: str) -> None:
        """Alice is away: refuse the requests whose time is over."""
        self.stats.connected, self.stats.reason = False, reason
        with self._changed:
            over = [request for request in self._waiting if request.is_over]
            self._waiting = deque(request for request in self._waiting if not request.is_over)
        for request in over:
            request.refuse("the partner is not connected")

    def next_batch(self) -> list[ScoreRequest]:
        """The requests of the next round; none after a while without any."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stop.is_set(), BEAT_SECONDS)
            batch: list[ScoreRequest] = []
            later = deque[ScoreRequest]()
            taken: set[str] = set()
            while self._waiting:
                request = self._waiting.popleft()
                if request.is_over or request.failed >= MOST_FAILURES:
                    request.refuse("the partner did not answer in time")
                elif request.failed and not batch:
                    # Alone: what makes a round fail must not take others along again.
                    batch.append(request)
                    later.extend(self._waiting)
                    break
                # A row stands in a round once; two requests may bring different columns for it.
                elif (
                    request.failed
                    or len(taken) + len(request.ids) > MOST_ASKED
                    or not taken.isdisjoint(request.ids)
                ):
                    later.append(request)
                else:
                    batch.append(request)
                    taken.update(request.ids)
            self._waiting = later
        return batch

    def put_back(self, requests: Sequence[ScoreRequest]) -> None:
        """Return the requests of a round that failed to the head of the queue."""
        with self._changed:
            waiting = [request for request in requests if not request.future.done()]
            for request in waiting:
                request.failed += 1
            self.stats.retried += len(waiting)
            self._waiting.extendleft(reversed(waiting))
