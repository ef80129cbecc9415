"""``MetricsPublisher``: publishes a party's progress at regular intervals.

A thread of its own publishes the figures each second, and hands a snapshot to the observers of the
run (``taciturn.party.observers``) every two.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeAlias

from taciturn.engine.callbacks import Publish, noop
from taciturn.errors import OutputError, TaciturnError
from taciturn.party.config import PartyConfig
from taciturn.party.observers import PartyObserver, party_observers
from taciturn.results.parties import LinkChanged, LinkState, News, PartyFigures, Setup


@dataclass(slots=True)
class LinkSeen:
    """The link to one peer: its state, and how often it was connected since this start."""

    state: LinkState = "waiting"
    connections: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """Snapshot of a running party; times are seconds since 1970."""

    setup: Setup
    started: float
    written: float
    figures: PartyFigures | None = None
    links: Mapping[str, LinkSeen] = field(default_factory=dict)
    checkpoint: float | None = None
    exit_code: int | None = None


EVERY_SECONDS = 1.0
TICKS_A_SNAPSHOT = 2
_INTERRUPTED, _BUG = 130, 1

Follow: TypeAlias = Callable[[], PartyFigures]
"""The figures as they are now; called from any thread."""


class MetricsPublisher:
    """Publisher of a running party's metrics, to observers and to ``publish``."""

    def __init__(self, observers: Sequence[PartyObserver] = (), publish: Publish = noop) -> None:
        self._observers, self._publish = tuple(observers), publish
        self._setup: Setup | None = None
        self._follow: Follow | None = None
        self._links: dict[str, LinkSeen] = {}
        self._checkpoint: float | None = None
        self._started = _now()
        self._problem: OutputError | None = None
        # The thread and a link that changes may both want to write.
        self._writing = threading.Lock()

    def begin(self, setup: Setup) -> None:
        """Publish what is about to run."""
        self._setup = setup
        self._publish(setup)

    def follow(self, figures: Follow) -> None:
        """Set the source of the figures."""
        self._follow = figures

    def hear(self, news: News) -> None:
        """Record a link's state, and pass on everything that is published."""
        if isinstance(news, LinkChanged):
            link = self._links.setdefault(news.peer, LinkSeen())
            link.state = news.state
            link.connections += news.state == "connected"
        self._publish(news)

    def checkpointed(self) -> None:
        """Record a checkpoint."""
        self._checkpoint = _now()

    def require_written(self) -> None:
        """Raise the error of a file that could not be written."""
        if self._problem is not None:
            raise self._problem

    @classmethod
    def from_config(cls, config: PartyConfig, publish: Publish) -> MetricsPublisher:
        """With the installed observers that a party's settings ask for."""
        return cls(party_observers(config), publish)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Publish regularly until the end, and then the exit code."""
        if not self._observers and self._publish is noop:
            yield
            return
        for observer in self._observers:
            observer.begin()
        self._write()
        with self._ticking():
            try:
                yield
            except BaseException as problem:
                # Why it ends is of more interest than that a file lacks it.
                with suppress(OutputError):
                    self._tell(exit_code=exit_code_of(problem))
                raise
        self._tell(exit_code=0)

    @contextmanager
    def _ticking(self) -> Iterator[None]:
        ended = threading.Event()

        def tick() -> None:
            ticks = 0
            while not ended.wait(EVERY_SECONDS):
                ticks += 1
                self.announce()
                if ticks % TICKS_A_SNAPSHOT == 0:
                    self._try_to_write()

        thread = threading.Thread(target=tick, name="taciturn-bulletin", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _tell(self, exit_code: int | None = None) -> None:
        self.announce()
        self._write(exit_code)

    def announce(self) -> None:
        """Publish the current figures."""
        if self._follow is not None:
            self._publish(self._follow())

    def _try_to_write(self) -> None:
        try:
            self._write()
        except OutputError as problem:
            # Raised where the training's own thread asks next.
            self._problem = problem

    def _write(self, exit_code: int | None = None) -> None:
        if not self._observers or self._setup is None:
            return
        with self._writing:
            figures = None if self._follow is None else self._follow()
            links = {peer: replace(link) for peer, link in self._links.items()}
            snapshot = Standing(
                self._setup, self._started, _now(), figures, links, self._checkpoint, exit_code
            )
            for observer in self._observers:
                observer.write(snapshot)


def exit_code_of(problem: BaseException) -> int:
    """Exit code of a command that ends with this exception.

    >>> exit_code_of(OutputError("no room")), exit_code_of(KeyboardInterrupt())
    (74, 130)
    """
    if isinstance(problem, TaciturnError):
        return problem.exit_code
    return _INTERRUPTED if isinstance(problem, KeyboardInterrupt) else _BUG


def _now() -> float:
    return datetime.now(UTC).timestamp()
