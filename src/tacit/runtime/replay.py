"""Runs one party again over a recording, with no peer present."""

from __future__ import annotations

from itertools import islice
from typing import TypeVar

from tacit.errors import TranscriptError
from tacit.protocol.messages import Role
from tacit.protocol.steps import Program
from tacit.runtime.driver import Driver, Observer, ignore
from tacit.runtime.transcript import Transcript

R = TypeVar("R")


def replay(
    program: Program[R],
    transcript: Transcript,
    *,
    role: Role = "alice",
    verify: bool = True,
    observe: Observer = ignore,
) -> R:
    """Feeds a program the frames its peer once sent.

    Args:
        program: The party's program, with the same tables and coins as then.
        transcript: The recording.
        role: Whose program it is.
        verify: Demand that it sends, byte for byte, what it sent then.
        observe: Called with each event that it emits.

    Raises:
        TranscriptError: The program says something else than it said then, or the recording ends
            early.
    """
    sent: list[bytes] = []
    driver = Driver(role, program, sent.append, observe)
    driver.start()
    for frame in transcript.frames("bob" if role == "alice" else "alice"):
        if driver.finished:
            raise TranscriptError("the recording goes on after the program has finished")
        driver.feed(frame)
    if not driver.finished:
        driver.close()
        raise TranscriptError(f"the recording ends where {driver.expects} was due")
    if verify:
        _compare(sent, transcript, role)
    return driver.result


def _compare(sent: list[bytes], transcript: Transcript, role: Role) -> None:
    then = list(islice(transcript.frames(role), len(sent) + 1))
    for number, (now, before) in enumerate(zip(sent, then, strict=False)):
        if now != before:
            raise TranscriptError(
                f"the replay differs from the recording at {role}'s frame {number}"
            )
    if len(sent) != len(then):
        raise TranscriptError(f"the replay sent {len(sent)} frames, the recording has {len(then)}")
