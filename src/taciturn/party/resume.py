"""Drives one party's program across a link that may break and a process that may be stopped.

What the journal holds is played back first: received frames are fed again, and what the program
says is not sent but stands in the journal as it was first said. From there on the program is live.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.driver import Driver
from taciturn.errors import LocalProtocolError, MalformedFrame, StateError
from taciturn.party.journal import Checkpoint, Journal, Past
from taciturn.party.link import Link
from taciturn.protocol.codec import kind_of
from taciturn.protocol.events import Boundary, Event
from taciturn.protocol.messages import OTHER, Role
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY, Program
from taciturn.setting_syntax import Hint

R = TypeVar("R")
Freeze: TypeAlias = Callable[[TrainingState], bytes]


class LinkTap(Protocol):
    """Told each frame: who sent it, its bytes, and on which link, where that is not the first."""

    def __call__(self, sender: Role, frame: bytes, link: int = 0, /) -> None:
        """Hears one frame."""


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """Checkpoint interval: iterations, seconds or bytes, whichever comes first.

    A party that resumes holds all frames since the checkpoint in memory: of long messages there
    must not be many.
    """

    iterations: int = 100
    seconds: float = 30.0
    frame_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True)
class RunHooks:
    """What is called while a program runs, since its checkpoint.

    ``observe`` is called with each event, ``tap`` with each frame, ``note`` with each record that
    the program keeps; ``freeze`` turns a state into what a checkpoint holds.
    """

    observe: Observer = noop
    freeze: Freeze = TrainingState.to_bytes
    policy: CheckpointPolicy = CheckpointPolicy()
    tap: LinkTap = noop
    note: Callable[[bytes], None] = noop


NO_HOOKS = RunHooks()


class _CheckpointWriter:
    """Writes checkpoints when they are due."""

    def __init__(self, journal: Journal, links: Sequence[Link], hooks: RunHooks) -> None:
        self._journal, self._links = journal, links
        self._freeze, self._policy = hooks.freeze, hooks.policy
        self._passed, self._crossed = 0, self._total_bytes()
        self._last = time.monotonic()

    def _total_bytes(self) -> int:
        return sum(link.traffic.total_bytes for link in self._links)

    def passed(self, state: TrainingState) -> None:
        self._passed += 1
        waited = time.monotonic() - self._last
        crossed, policy = self._total_bytes(), self._policy
        if (
            self._passed < policy.iterations
            and waited < policy.seconds
            and crossed - self._crossed < policy.frame_bytes
        ):
            return
        (counts, pending), *further = [(link.counts, link.pending) for link in self._links]
        self._journal.checkpoint(
            Checkpoint(*counts, self._freeze(state)),
            pending,
            [(Checkpoint(*fields), frames) for fields, frames in further],
        )
        self._passed, self._crossed, self._last = 0, crossed, time.monotonic()


class _JournalReplay:
    """What the journal holds of frames, handed out in order.

    Whom the program speaks to and hears, and when, is the same every time. So it holds a beginning
    of all that was said: where one peer's frames are used up, so are the others'.
    """

    def __init__(self, past: Past, peers: Sequence[str]) -> None:
        pasts = {peer: past.link(place) for place, peer in enumerate(peers)}
        self._sent = {peer: deque(peer_past.sent) for peer, peer_past in pasts.items()}
        self._received = {peer: deque(peer_past.received) for peer, peer_past in pasts.items()}
        self._persisted = deque(past.persisted)

    @property
    def over(self) -> bool:
        return not (self._holds_frames or self._persisted)

    @property
    def _holds_frames(self) -> bool:
        return any(self._sent.values()) or any(self._received.values())

    def said(self, peer: str, frame: bytes) -> bytes | None:
        """What was said then in place of this; None where nothing had been said yet."""
        if not self._sent[peer]:
            self._require_live()
            return None
        # Only the kind is compared: a mask or noise may be drawn otherwise now, and what counts is
        # what was sent.
        before = self._sent[peer].popleft()
        try:
            fits = kind_of(before) is kind_of(frame)
        except MalformedFrame:
            # A journal of another version may hold frames that this one cannot read.
            fits = False
        if not fits:
            raise _unfit()
        return before

    def remembered(self) -> bytes | None:
        return self._persisted.popleft() if self._persisted else None

    def heard(self, peer: str) -> bytes | None:
        """Recorded frame from the peer; None where it is still to come."""
        if self._received[peer]:
            return self._received[peer].popleft()
        self._require_live()
        return None

    def _require_live(self) -> None:
        """Require that no frame was recorded after this."""
        if self._holds_frames:
            raise _unfit()


def _unfit() -> StateError:
    return StateError(
        "the journal does not fit the program: it was written by another version, or altered",
        hint=Hint(
            "finish with the version that started it, or start over on both sides with {fresh}",
            fresh=True,
        ),
    )


def run_program(
    role: Role,
    program: Program[R],
    link: Link | Mapping[str, Link],
    past: Past,
    journal: Journal | None = None,
    hooks: RunHooks = NO_HOOKS,
) -> R:
    """Runs one party to its end.

    ``program`` is started from the past's checkpoint. With several peers there is a link to each,
    by the name under which the program knows it, in the order of the journal's links.
    """
    links = link if isinstance(link, Mapping) else {ONLY: link}
    playback = _JournalReplay(past, tuple(links))
    keeper = None if journal is None else _CheckpointWriter(journal, tuple(links.values()), hooks)
    other = OTHER[role]
    places = {peer: [place] if place else [] for place, peer in enumerate(links)}

    def speak(peer: str, frame: bytes) -> None:
        before = playback.said(peer, frame)
        if before is None:
            links[peer].send(frame)
        hooks.tap(role, before or frame, *places[peer])

    def hear(peer: str) -> bytes:
        if peer not in links:
            raise LocalProtocolError(f"{role}'s program waits for a peer that is not there")
        before = playback.heard(peer)
        frame = links[peer].receive() if before is None else before
        hooks.tap(other, frame, *places[peer])
        return frame

    def seen(event: Event) -> None:
        hooks.observe(event)
        # During playback the link's counts are those of the end: a checkpoint would mix two times.
        if isinstance(event, Boundary) and keeper is not None and playback.over:
            keeper.passed(event.state)

    def keep(data: bytes) -> bytes:
        before = playback.remembered()
        if before is None and journal is not None:
            journal.persisted(data)
        persisted = data if before is None else before
        hooks.note(persisted)
        return persisted

    driver = Driver(role, program, {peer: partial(speak, peer) for peer in links}, seen, keep)
    try:
        driver.start()
        while not driver.finished:
            driver.feed(hear(driver.awaits))
    finally:
        driver.close()
    return driver.result
