"""Runs one party again over a recording, with no peer present."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from taciturn.engine.callbacks import Observer, ignore
from taciturn.engine.driver import Driver, Keeping, forget
from taciturn.engine.transcript import Transcript
from taciturn.errors import CryptoError, ProtocolError, TranscriptError
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import Program

R = TypeVar("R")


def replay(
    program: Program[R],
    transcript: Transcript,
    *,
    role: Role = "alice",
    verify: bool = True,
    observe: Observer = ignore,
    keep: Keeping = forget,
) -> R:
    """Feeds a program the frames its peer once sent.

    Args:
        program: The party's program, with the same tables and coins as then.
        transcript: The recording.
        role: Whose program it is.
        verify: Demand that it sends, byte for byte, what it sent then.
        observe: Called with each event that it emits.
        keep: Answers with what the program wanted remembered then.

    Raises:
        TranscriptError: The program says something else than it said then, or the recording ends
            early, goes on too long or is no conversation of this program.
    """
    then = enumerate(transcript.frames(role))

    def check(frame: bytes) -> None:
        # At once, not at the end: with other coins the first difference shows before its effects.
        number, before = next(then, (-1, b""))
        if verify and frame != before:
            where = f"{role}'s frame {number}" if number >= 0 else f"the end of {role}'s frames"
            raise TranscriptError(f"the replay differs from the recording at {where}")

    driver = Driver(role, program, check, observe, keep)
    try:
        _feed(driver, transcript.frames("bob" if role == "alice" else "alice"))
    finally:
        driver.close()
    if verify and next(then, None) is not None:
        raise TranscriptError(f"the recording holds more of {role}'s frames than the replay sent")
    return driver.result


def _feed(driver: Driver[R], frames: Iterator[bytes]) -> None:
    try:
        driver.start()
        for frame in frames:
            if driver.finished:
                raise TranscriptError("the recording continues after the program has finished")
            driver.feed(frame)
    except (ProtocolError, CryptoError) as problem:
        raise TranscriptError(f"the recording cannot be replayed: {problem.message}") from None
    if not driver.finished:
        raise TranscriptError(f"the recording ends where {driver.expects} was expected")
