"""``Bulletin``: tells while a party works how it goes, whether or not anything happens.

A thread of its own publishes the figures each second, and rewrites the metrics file and the one for
Prometheus (``exposition``) every two. So a file that is not written any more is one of a process
that has gone, and not of one that waits.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from taciturn.engine.callbacks import Publish, unpublished
from taciturn.errors import OutputError, TaciturnError
from taciturn.files import write_private
from taciturn.party.config import PartyConfig
from taciturn.party.exposition import LinkSeen, Standing, exposition
from taciturn.results.live import LinkChanged, News, Setup
from taciturn.results.parties import PartyFigures
from taciturn.results.serialise import record_of

EVERY_SECONDS = 1.0
TICKS_A_FILE = 2
_INTERRUPTED, _BUG = 130, 1

Follow: TypeAlias = Callable[[], PartyFigures]
"""The figures as they are now; called from any thread."""


class Bulletin:
    """What a party publishes of itself while it works, to files and to ``publish``."""

    def __init__(
        self,
        metrics: Path | None = None,
        prometheus: Path | None = None,
        publish: Publish = unpublished,
    ) -> None:
        self._metrics, self._prometheus, self._publish = metrics, prometheus, publish
        self._setup: Setup | None = None
        self._follow: Follow | None = None
        self._links: dict[str, LinkSeen] = {}
        self._checkpoint: float | None = None
        self._started = _now()
        self._problem: OutputError | None = None
        # The thread and a link that changes may both want to write.
        self._writing = threading.Lock()

    def begin(self, setup: Setup) -> None:
        """Says what is about to run."""
        self._setup = setup
        self._publish(setup)

    def follow(self, figures: Follow) -> None:
        """Says from where the figures are to be had."""
        self._follow = figures

    def hear(self, news: News) -> None:
        """Takes note of a link's state, and passes on whatever is published."""
        if isinstance(news, LinkChanged):
            link = self._links.setdefault(news.peer, LinkSeen())
            link.state = news.state
            link.connections += news.state == "connected"
        self._publish(news)

    def checkpointed(self) -> None:
        """Takes note of a checkpoint."""
        self._checkpoint = _now()

    def require_written(self) -> None:
        """Insists that the files could be written so far."""
        if self._problem is not None:
            raise self._problem

    @classmethod
    def of(cls, config: PartyConfig, publish: Publish) -> Bulletin:
        """With the files that a party's settings name."""
        metrics, prometheus = (
            None if name is None else config.path(name)
            for name in (config.output.metrics, config.output.prometheus)
        )
        return cls(metrics, prometheus, publish)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Tells now and then until the end, and then how it ended."""
        if self._prometheus is None and self._publish is unpublished:
            yield
            return
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
                if ticks % TICKS_A_FILE == 0:
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
        """Publishes the figures as they are now."""
        if self._follow is not None:
            self._publish(self._follow())

    def _try_to_write(self) -> None:
        try:
            self._write()
        except OutputError as problem:
            # Raised where the training's own thread asks next.
            self._problem = problem

    def _write(self, exit_code: int | None = None) -> None:
        if self._metrics is None or self._prometheus is None or self._setup is None:
            return
        with self._writing:
            figures = None if self._follow is None else self._follow()
            if figures is not None:
                write_private(self._metrics, json.dumps(record_of(figures), indent=1) + "\n")
            links = {peer: replace(link) for peer, link in self._links.items()}
            standing = Standing(
                self._setup, self._started, _now(), figures, links, self._checkpoint, exit_code
            )
            write_private(self._prometheus, exposition(standing))


def exit_code_of(problem: BaseException) -> int:
    """With what the command ends where this is raised.

    >>> exit_code_of(OutputError("no room")), exit_code_of(KeyboardInterrupt())
    (74, 130)
    """
    if isinstance(problem, TaciturnError):
        return problem.exit_code
    return _INTERRUPTED if isinstance(problem, KeyboardInterrupt) else _BUG


def _now() -> float:
    return datetime.now(UTC).timestamp()
