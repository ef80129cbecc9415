"""Bob's side of a service: requests wait at a desk, and one thread asks Alice for them together.

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
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.channel import Endpoints
from taciturn.errors import PeerAbsent
from taciturn.party.config import PartyConfig
from taciturn.party.serving.standing import (
    BEAT_SECONDS,
    StandingModel,
    StandingSession,
)
from taciturn.party.session import Meeting
from taciturn.protocol.bob.serve import Requester, Round
from taciturn.protocol.serving import MOST_ASKED, ROUNDS, Verdict
from taciturn.rng import KeyedEntropy

MOST_FAILURES = 4
"""A job that was in so many rounds that failed is refused."""
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper ends of a histogram of seconds."""


@dataclass(slots=True)
class Histogram:
    """How long something took, as Prometheus counts it."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Counts once."""
        self.counts[int(np.searchsorted(BUCKETS, seconds))] += 1
        self.total += seconds


@dataclass(slots=True)
class Job:
    """Rows that a request waits for.

    ``values`` are Bob's columns in the coordinates of his weights; ``deadline`` is on the monotonic
    clock; ``failed`` counts the rounds with it that failed.
    """

    ids: tuple[str, ...] = field(repr=False)
    values: FloatArray = field(repr=False)
    deadline: float
    future: Future[Answered] = field(default_factory=Future)
    failed: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any more."""
        return self.future.done() or time.monotonic() > self.deadline


@dataclass(frozen=True, slots=True)
class Answered:
    """The verdict and the score of each row of a job; NaN where there is no score."""

    verdicts: tuple[Verdict, ...]
    scores: FloatArray = field(repr=False)


@dataclass(slots=True)
class Seen:
    """What the desk has seen, for whoever watches."""

    connected: bool = False
    reason: str = "not connected yet"
    meetings: int = 0
    rounds: int = 0
    rows: int = 0
    retried: int = 0
    seconds: Histogram = field(default_factory=Histogram)


class Desk:
    """Bob's queue of requests that wait for Alice."""

    def __init__(
        self,
        config: PartyConfig,
        model: StandingModel,
        endpoint: Endpoints,
        callbacks: Callbacks,
    ) -> None:
        self._model, self.seen = model, Seen()
        self._stop, self._jobs = threading.Event(), deque[Job]()
        self._changed = threading.Condition()
        self._session = StandingSession(config, endpoint, callbacks, self._stop)
        self._thread = threading.Thread(target=self._work, name="taciturn-desk", daemon=True)
        self.coordinates = model.coordinates()
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Begins to look for Alice."""
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Puts a job in line."""
        if self.failure is not None or self._stop.is_set():
            _refuse(job, "the service is being stopped")
            return
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()

    def refuse_all(self, reason: str) -> None:
        """Refuses who waits, where nobody is there to answer."""
        with self._changed:
            if self.seen.connected:
                return
            waiting, self._jobs = self._jobs, deque()
        for job in waiting:
            _refuse(job, reason)

    def close(self, seconds: float = 10.0) -> None:
        """Stops after the round under way; whoever still waits is refused."""
        self._stop.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(seconds)
        for job in self._jobs:
            _refuse(job, "the service is being stopped")

    def _work(self) -> None:
        try:
            self._session.run(self._stay, self._away)
        except BaseException as problem:
            # A bug, or an interrupt: whoever runs the service sees it and ends.
            self.failure = problem
            self._away(type(problem).__name__)

    def _away(self, reason: str) -> None:
        self.seen.connected, self.seen.reason = False, reason
        with self._changed:
            over = [job for job in self._jobs if job.is_over]
            self._jobs = deque(job for job in self._jobs if not job.is_over)
        for job in over:
            _refuse(job, "the partner is not connected")

    def _stay(self, meeting: Meeting) -> None:
        requester = meeting.run(self._model.open_bob(KeyedEntropy.from_system()))
        self._session.met()
        self._session.say("serving")
        self.seen.connected, self.seen.reason = True, ""
        self.seen.meetings += 1
        while requester.rounds < ROUNDS and not self._stop.is_set():
            jobs = self._next()
            try:
                self._session.require_in_time()
                self._ask(meeting, requester, jobs)
            except BaseException:
                self._put_back(jobs)
                raise

    def _next(self) -> list[Job]:
        """The jobs of the next round; none after a while without any."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._stop.is_set(), BEAT_SECONDS)
            jobs: list[Job] = []
            later = deque[Job]()
            taken: set[str] = set()
            while self._jobs:
                job = self._jobs.popleft()
                if job.is_over or job.failed >= MOST_FAILURES:
                    _refuse(job, "the partner did not answer in time")
                elif job.failed:
                    # Alone: what makes a round fail must not take others along again.
                    if jobs:
                        later.append(job)
                        continue
                    return self._alone(job, later)
                # A row stands in a round once; two requests may bring different columns for it.
                elif len(taken) + len(job.ids) > MOST_ASKED or not taken.isdisjoint(job.ids):
                    later.append(job)
                else:
                    jobs.append(job)
                    taken.update(job.ids)
            self._jobs = later
        return jobs

    def _alone(self, job: Job, later: deque[Job]) -> list[Job]:
        later.extend(self._jobs)
        self._jobs = later
        return [job]

    def _put_back(self, jobs: Sequence[Job]) -> None:
        with self._changed:
            waiting = [job for job in jobs if not job.future.done()]
            for job in waiting:
                job.failed += 1
            self.seen.retried += len(waiting)
            self._jobs.extendleft(reversed(waiting))

    def _ask(self, meeting: Meeting, requester: Requester, jobs: Sequence[Job]) -> None:
        start = time.perf_counter()
        ids = [name for job in jobs for name in job.ids]
        width = len(self._model.used.model.columns)
        values = np.concatenate([np.empty((0, width)), *(job.values for job in jobs)])
        result = meeting.run(requester.ask(ids, values))
        self.seen.rounds += 1
        self.seen.rows += len(result.due)
        if ids:
            self.seen.seconds.add(time.perf_counter() - start)
        _hand_out(jobs, result)


def _hand_out(jobs: Sequence[Job], result: Round) -> None:
    scores = np.full(len(result.verdicts), np.nan)
    scores[result.due] = result.scored.scores
    start = 0
    for job in jobs:
        part = slice(start, start + len(job.ids))
        start = part.stop
        # The request may have been given up in this moment.
        with suppress(InvalidStateError):
            job.future.set_result(Answered(result.verdicts[part], scores[part]))


def _refuse(job: Job, reason: str) -> None:
    with suppress(InvalidStateError):
        job.future.set_exception(PeerAbsent(reason, hint="ask again later"))
