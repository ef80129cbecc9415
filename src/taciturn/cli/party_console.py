"""Console of the commands that connect to a peer: progress and interrupts."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.console import Meter, progress_bar
from taciturn.errors import PeerAbsent, PeerStopped, rendering_errors_as

if TYPE_CHECKING:
    from taciturn.engine.callbacks import Callbacks
    from taciturn.party.config import PartyConfig

# How long a process that was interrupted ignores further signals, so that it can notify its peer.
PATIENCE_SECONDS = 10.0
INTERRUPTED = 130
NormaliseIds = Annotated[
    str | None,
    typer.Option(
        help="Normalisation of ids, the same on both sides: none, or any of trim, case, nfkc and "
        "zeros (leading zeros), separated by commas (default: the party's file, or none)."
    ),
]


@contextmanager
def shown(
    settings: PartyConfig, bar: AbstractContextManager[Meter] | None = None
) -> Iterator[Callbacks]:
    """Show what one side does while it waits for the peer and works with it.

    ``bar`` is ``watched_side``'s; None for the screen alone.
    """
    from taciturn.engine.callbacks import Callbacks, noop
    from taciturn.party.link import BROKEN, CONNECTED
    from taciturn.party.log import Log, on_change
    from taciturn.transport.corelog import handshake_reasons

    link = settings.link
    limit = f"{link.connect_seconds:g} s at most"
    with bar or progress_bar(settings.role) as meter:
        meter.announce(f"waiting for {settings.peer}, {limit}")

        def announce(text: str) -> None:
            # Where there are several peers, it is said whose link it is.
            peer, _, event = text.rpartition(": ")
            if event == CONNECTED:
                meter.announce(f"connected to {peer or settings.peer}")
            elif event == BROKEN:
                meter.announce(f"waiting for {peer or settings.peer}, {limit}")
            meter.say(text)

        log = Log.from_config(settings, announce)
        failed = on_change(lambda why: log("a connection failed in its handshake", reason=why))
        # Why callers fail before they are callers, which the side that calls has none of; this
        # command owns its process.
        listens = link.listen is not None
        with handshake_reasons(failed if listens else None, for_good=True):
            publish = meter.publish if meter.watched else noop
            yield Callbacks(announce, meter.observe, meter.progress, publish)


@contextmanager
def stateless_side(
    command: str, settings: PartyConfig, bar: AbstractContextManager[Meter] | None = None
) -> Iterator[Callbacks]:
    """Callbacks for one side of a command that stores nothing; after a stop, what to do."""
    with rendering_errors_as(settings.syntax):
        try:
            with stoppable(), shown(settings, bar) as callbacks:
                yield callbacks
        except KeyboardInterrupt:
            print(
                "stopped; only what was charged is stored: run the command again on both sides",
                file=sys.stderr,
            )
            raise
        except PeerStopped as problem:
            raise PeerStopped(
                problem.message,
                where=problem.where,
                hint="fix what it reports, then run both sides again",
            ) from None
        except PeerAbsent as problem:
            raise PeerAbsent(
                problem.message,
                where=problem.where,
                hint=f"run taciturn {command} on both sides, {settings.peer}'s too, at about the "
                "same time",
            ) from None


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into one interrupt: the peer is notified, the state is kept.

    Further signals would cut that short, and are ignored; after ``PATIENCE_SECONDS`` one ends the
    process at once. On Windows nothing is changed.
    """
    if sys.platform == "win32":
        yield
        return
    stop = _Interrupt()
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        # After a signal this process ends: its last words must not be cut short either.
        if stop.since is None:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Interrupt:
    """Signal handler that interrupts once."""

    def __init__(self) -> None:
        self.since: float | None = None

    def __call__(self, number: int, frame: object) -> None:
        if self.since is None:
            self.since = time.monotonic()
            raise KeyboardInterrupt
        if time.monotonic() - self.since > PATIENCE_SECONDS:
            os._exit(INTERRUPTED)
