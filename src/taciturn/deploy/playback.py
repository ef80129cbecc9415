"""Drives one party's program across a link that may break and a process that may be stopped.

What the journal holds is played back first: received frames are fed again, and what the program
says is not sent but stands in the journal as it was first said. From there on the program is live.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from taciturn.deploy.journal import Checkpoint, Journal, Past
from taciturn.deploy.link import Link
from taciturn.engine.callbacks import Observer, ignore
from taciturn.engine.driver import Driver, Tap
from taciturn.errors import MalformedFrame, StateError
from taciturn.faces import Hint
from taciturn.protocol.codec import kind_of
from taciturn.protocol.events import Boundary, Event
from taciturn.protocol.messages import Role
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program

R = TypeVar("R")
Freeze: TypeAlias = Callable[[TrainingState], bytes]


def unheard(sender: Role, frame: bytes) -> None:
    """Nobody listens in."""


def unnoted(data: bytes) -> None:
    """Nobody writes down what a party keeps."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often a checkpoint is written: by iterations, seconds or bytes, whichever comes first.

    Whoever resumes holds all frames since the checkpoint in memory: of long messages there must not
    be many.
    """

    iterations: int = 100
    seconds: float = 30.0
    frame_bytes: int = 64 << 20


USUAL = Rhythm()


class _Keeper:
    """Writes checkpoints when they are due."""

    def __init__(self, journal: Journal, link: Link, freeze: Freeze, rhythm: Rhythm) -> None:
        self._journal, self._link, self._freeze, self._rhythm = journal, link, freeze, rhythm
        self._passed, self._crossed = 0, link.traffic.total_bytes
        self._last = time.monotonic()

    def passed(self, state: TrainingState) -> None:
        self._passed += 1
        waited = time.monotonic() - self._last
        crossed, rhythm = self._link.traffic.total_bytes, self._rhythm
        if (
            self._passed < rhythm.iterations
            and waited < rhythm.seconds
            and crossed - self._crossed < rhythm.frame_bytes
        ):
            return
        sent, received = self._link.counts
        self._journal.checkpoint(
            Checkpoint(sent, received, self._freeze(state)), self._link.pending
        )
        self._passed, self._crossed, self._last = 0, crossed, time.monotonic()


class _Playback:
    """What the journal holds of frames, handed out in order."""

    def __init__(self, past: Past) -> None:
        self._sent, self._received = deque(past.sent), deque(past.received)
        self._kept = deque(past.kept)

    @property
    def over(self) -> bool:
        return not (self._sent or self._received or self._kept)

    def said(self, frame: bytes) -> bytes | None:
        """What was said then in place of this; None where nothing had been said yet."""
        if not self._sent:
            return None
        # Only the kind is compared: a mask or noise may be drawn otherwise now, and what counts is
        # what was sent.
        before = self._sent.popleft()
        try:
            fits = kind_of(before) is kind_of(frame)
        except MalformedFrame:
            # A journal of another version may hold frames that this one cannot read.
            fits = False
        if not fits:
            raise _unfit()
        return before

    def remembered(self) -> bytes | None:
        """What was kept then; None where nothing was."""
        return self._kept.popleft() if self._kept else None

    def heard(self) -> bytes | None:
        """What was received then; None where it is still to come."""
        if self._received:
            return self._received.popleft()
        if self._sent:
            # The program waits here, but the journal says that it spoke first.
            raise _unfit()
        return None


def _unfit() -> StateError:
    return StateError(
        "the journal does not fit the program: it was written by another version, or altered",
        hint=Hint(
            "finish with the version that started it, or start over on both sides with {fresh}",
            fresh=True,
        ),
    )


def run_party(
    role: Role,
    program: Program[R],
    link: Link,
    past: Past,
    *,
    journal: Journal | None = None,
    freeze: Freeze = TrainingState.to_bytes,
    rhythm: Rhythm = USUAL,
    tap: Tap = unheard,
    note: Callable[[bytes], None] = unnoted,
    observe: Observer = ignore,
) -> R:
    """Runs one party to its end.

    Args:
        role: Whose program it is.
        program: Started from the past's checkpoint.
        link: To the peer.
        past: What the journal says so far.
        journal: Where checkpoints go; None for none.
        freeze: Turns a state into what a checkpoint holds.
        rhythm: How often one is written.
        tap: Called with the sender and the bytes of each frame since the checkpoint.
        note: Called with what the program has kept since the checkpoint.
        observe: Called with each event since the checkpoint.

    Raises:
        TaciturnError: This side or the peer cannot continue; says why.
    """
    playback = _Playback(past)
    keeper = None if journal is None else _Keeper(journal, link, freeze, rhythm)
    peer: Role = "bob" if role == "alice" else "alice"

    def outlet(frame: bytes) -> None:
        before = playback.said(frame)
        if before is None:
            link.send(frame)
        tap(role, before or frame)

    def seen(event: Event) -> None:
        observe(event)
        # During playback the link's counts are those of the end: a checkpoint would mix two times.
        if isinstance(event, Boundary) and keeper is not None and playback.over:
            keeper.passed(event.state)

    def keep(data: bytes) -> bytes:
        before = playback.remembered()
        if before is None and journal is not None:
            journal.kept(data)
        kept = data if before is None else before
        note(kept)
        return kept

    driver = Driver(role, program, outlet, seen, keep)
    try:
        driver.start()
        while not driver.finished:
            frame = playback.heard()
            if frame is None:
                frame = link.receive()
            tap(peer, frame)
            driver.feed(frame)
    finally:
        driver.close()
    return driver.result
