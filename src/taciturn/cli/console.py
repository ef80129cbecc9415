"""Progress display on standard error.

On a terminal that is a bar; elsewhere, such as in the journal of a service, a line a minute.

A service manager is notified by the protocol of sd_notify:
https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from taciturn.errors import counted
from taciturn.files import to_json

if TYPE_CHECKING:
    from rich.progress import Progress

    from taciturn.party.observers import LivePage
    from taciturn.protocol.events import Event
    from taciturn.report.blocks import Block
    from taciturn.results.parties import News
    from taciturn.results.serialise import Result

ALIVE = b"WATCHDOG=1"


def main_thread_seconds() -> float:
    """Processor time of the main thread; elapsed time where it is unknown."""
    thread = threading.main_thread().ident
    if sys.platform == "win32" or thread is None:
        return time.monotonic()
    return time.clock_gettime(time.pthread_getcpuclockid(thread))


class Watchdog:
    """Notify the service manager while the main thread runs.

    A thread of its own says so, and therefore only where the main thread has used processor time
    since the last look: after an error that leaves it waiting for good, such as one for lack of
    memory, nothing is said any more, and the service manager starts the program again.

    ``seconds`` grows while the main thread runs.
    """

    def __init__(
        self, address: str | None = None, seconds: Callable[[], float] = main_thread_seconds
    ) -> None:
        given = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        # An abstract socket is written with an at sign.
        self._address = f"\0{given[1:]}" if given.startswith("@") else given
        self._seconds, self._last = seconds, -1.0

    def look(self) -> None:
        """Notify it if the main thread has run since the last look."""
        used = self._seconds()
        if self._address and used > self._last:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
                link.sendto(ALIVE, self._address)
        self._last = used


WIDTH = 100
BEAT_SECONDS = 60.0
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print every figure and setting.")]


def show(result: Result, as_json: bool, brief: Callable[[], Iterable[Block]] | None = None) -> None:
    """Print a result as JSON, or as blocks: those of ``brief`` where it is given."""
    show_record(result.to_dict(), as_json, brief or result.blocks)


def show_record(
    record: Mapping[str, Any], as_json: bool, blocks: Callable[[], Iterable[Block]]
) -> None:
    """Print a record as JSON, or as blocks."""
    if as_json:
        typer.echo(to_json(record))
        return
    from taciturn.report.terminal import render

    console().print(render(blocks()))


def console(*, error: bool = False) -> Console:
    """A console no wider than 100 columns; colours only on a terminal."""
    default = Console(stderr=error, highlight=False)
    width = min(default.width, WIDTH) if default.is_terminal else WIDTH
    return Console(stderr=error, highlight=False, width=width)


class Meter:
    """Turns a run's events into a progress bar, or into a line now and then."""

    def __init__(
        self, progress: Progress | None, name: str = "", page: LivePage | None = None
    ) -> None:
        # Imported here: the engine takes longer to load than most commands to run.
        from taciturn.engine.progress import ProgressEstimate

        self._progress, self._name, self._page = progress, name, page
        self._task = None if progress is None else progress.add_task("training", total=None)
        self._pulse = ProgressEstimate()

    def observe(self, event: Event) -> None:
        """Show the progress of a training, a prediction or an alignment."""
        from taciturn.protocol.events import Advance, ClusterJoined

        if self._page is not None:
            self._page.observe(event)
        if isinstance(event, ClusterJoined):
            seen = f", seen at {event.dashboard}" if event.dashboard else ""
            self.print(f"a cluster of {counted(event.workers, 'worker')} computes{seen}")
        if isinstance(event, Advance) and self._pulse.observe(event):
            self._update(description=event.work, completed=event.reach, total=event.total)

    def announce(self, activity: str) -> None:
        """Show what runs now."""
        self._pulse.begin(activity)
        if self._page is not None:
            self._page.announce(activity)
        self._update(description=activity, completed=0, total=None)

    @property
    def watched(self) -> bool:
        """Whether a live page shows it too."""
        return self._page is not None

    def publish(self, news: News) -> None:
        """Show news that only a live page has room for."""
        if self._page is not None:
            self._page.publish(news)

    def say(self, line: str) -> None:
        """Show a line above the bar, and on the live page."""
        if self._page is not None:
            self._page.say(line)
        self.print(line)

    def print(self, line: str) -> None:
        """Show a line above the bar; without a terminal, write it to standard error."""
        text = f"{self._name}: {line}" if self._name else line
        if self._progress is not None:
            # Not broken into lines here: an address must stay in one piece.
            self._progress.console.print(text, markup=False, style="dim", soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)

    def progress(self, done: int, total: int) -> None:
        """Show the fraction that is done."""
        self._pulse.advance(self._pulse.activity, done, total)
        if self._page is not None:
            self._page.progress(done, total)
        self._update(completed=done, total=total)

    def _update(self, **shown: Any) -> None:  # noqa: ANN401 - as the bar takes it
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, **shown)

    def beat(self) -> None:
        """Print the progress; a live page shows it anyway."""
        self.print(self._pulse.line())


@contextmanager
def progress_bar(name: str = "", page: LivePage | None = None) -> Iterator[Meter]:
    """Progress on standard error: a bar on a terminal, and else a line a minute."""
    if not sys.stderr.isatty():
        with _beating(Meter(None, name, page)) as meter:
            yield meter
        return
    # Loaded here: without a terminal there is no bar.
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("elapsed,"),
        TimeRemainingColumn(),
        TextColumn("remaining"),
    )
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        yield Meter(progress, name, page)


@contextmanager
def _beating(meter: Meter) -> Iterator[Meter]:
    """Print a line each minute until the end, and notify the service manager."""
    ended, watchdog = threading.Event(), Watchdog()

    def beat() -> None:
        while not ended.wait(BEAT_SECONDS):
            watchdog.look()
            # A reader of standard error that has gone is no reason to end the work.
            with suppress(OSError, ValueError):
                meter.beat()

    thread = threading.Thread(target=beat, name="taciturn-heartbeat", daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        ended.set()
        thread.join()
