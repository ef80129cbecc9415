"""Runs one party again over a recording, with no peer present."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.driver import Driver, Keeping, discard
from taciturn.engine.transcript import Transcript
from taciturn.errors import CryptoError, ProtocolError, TranscriptError
from taciturn.protocol.messages import OTHER, Role
from taciturn.protocol.steps import ONLY, Program

R = TypeVar("R")


def replay(
    program: Program[R],
    transcript: Transcript,
    *,
    role: Role = "alice",
    verify: bool = True,
    observe: Observer = noop,
    keep: Keeping = discard,
    peers: Sequence[str] = (ONLY,),
) -> R:
    """Runs a program over the frames that its peer sent in a recording.

    The program needs the same tables and entropy as then. ``verify`` demands that it sends the same
    bytes again. ``peers`` are in the order of the recording's links. Raises ``TranscriptError``
    where program and recording differ.
    """
    other = OTHER[role]
    links = {peer: transcript.link(number) for number, peer in enumerate(peers)}
    then = {peer: enumerate(link.frames(role)) for peer, link in links.items()}

    def check(peer: str, frame: bytes) -> None:
        # At once: with other randomness the first difference shows before its effects.
        number, before = next(then[peer], (-1, b""))
        if verify and frame != before:
            where = f"{role}'s frame {number}" if number >= 0 else f"the end of {role}'s frames"
            raise TranscriptError(f"the replay differs from the recording at {where}")

    outlets = {peer: partial(check, peer) for peer in peers}
    driver = Driver(role, program, outlets, observe, keep)
    try:
        _feed(driver, {peer: link.frames(other) for peer, link in links.items()})
    finally:
        driver.close()
    if verify and any(next(frames, None) is not None for frames in then.values()):
        raise TranscriptError(f"the recording holds more of {role}'s frames than the replay sent")
    return driver.result


def _feed(driver: Driver[R], frames: Mapping[str, Iterator[bytes]]) -> None:
    try:
        driver.start()
        while not driver.finished:
            frame = next(frames[driver.awaits], None)
            if frame is None:
                raise TranscriptError(f"the recording ends where {driver.expects} was expected")
            driver.feed(frame)
    except (ProtocolError, CryptoError) as problem:
        raise TranscriptError(f"the recording cannot be replayed: {problem.message}") from None
    if any(next(rest, None) is not None for rest in frames.values()):
        raise TranscriptError("the recording continues after the program has finished")
