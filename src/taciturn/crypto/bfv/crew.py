"""Helper processes, for tables of many tiles: SEAL's Python binding keeps other threads waiting.

A helper is a Python of its own that runs ``helper``; what it needs, keys included, goes to it over
a pipe and never through a file. It ends when its pipe ends: with ``close``, with the last reference
to its crew, or with the process that started it, however that ends.

Processes are started from scratch, and not by ``multiprocessing``: a fork would copy the locks of
other threads, and a spawn would run a caller's own script a second time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any, TypeAlias, TypeVar

from taciturn.errors import CryptoError
from taciturn.parallel import usable_cores

MOST_PROCESSES = 8
# One that waits for a job ends at once; one that is at work would finish it for nobody.
PATIENCE_SECONDS = 2.0

R = TypeVar("R")
Frame: TypeAlias = bytes | memoryview
Pipe: TypeAlias = "Connection[Any, Any]"


@dataclass(frozen=True, slots=True)
class Job:
    """What a helper is to do: a name, public numbers, and bytes."""

    name: str
    facts: dict[str, int]
    frames: tuple[Frame, ...] = ()


def send(pipe: Pipe, name: str, facts: dict[str, int], frames: tuple[Frame, ...]) -> None:
    """Writes a job, or a reply."""
    head = {"name": name, "facts": facts, "frames": len(frames)}
    pipe.send_bytes(json.dumps(head).encode())
    for frame in frames:
        pipe.send_bytes(frame)


def receive(pipe: Pipe) -> Job:
    """Reads one.

    Raises:
        EOFError: The other end is gone.
    """
    head = json.loads(pipe.recv_bytes())
    frames = tuple(pipe.recv_bytes() for _ in range(head["frames"]))
    return Job(head["name"], head["facts"], frames)


def processes(work: int, least: int) -> int:
    """How many processes share some work, this one included: one below ``least``."""
    # An embedded interpreter may not know how to be started.
    alone = work < least or not sys.executable
    return 1 if alone else min(usable_cores(), MOST_PROCESSES)


def shares(count: int, parts: int) -> list[range]:
    """``range(count)`` in even parts, in order.

    >>> shares(5, 2)
    [range(0, 3), range(3, 5)]
    """
    bounds = [-(-count * part // parts) for part in range(parts + 1)]
    return [range(*pair) for pair in pairwise(bounds)]


class _Helper:
    """One process and its pipes."""

    def __init__(self) -> None:
        # The module is found where this one was, and not in the folder one happens to be in.
        places = os.pathsep.join(entry for entry in sys.path if entry)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._to: Pipe = Connection(ours_out, readable=False)
        self._from: Pipe = Connection(ours_in, writable=False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "taciturn.crypto.bfv.helper"],
                stdin=theirs_in,
                stdout=theirs_out,
                env={**os.environ, "PYTHONPATH": places},
                # A terminal interrupts the process that was started there; that one decides.
                process_group=0,
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)

    def start(self, job: Job) -> None:
        send(self._to, job.name, job.facts, job.frames)

    def finish(self) -> tuple[Frame, ...]:
        reply = receive(self._from)
        if reply.name == "refused":
            raise CryptoError(bytes(reply.frames[0]).decode())
        return reply.frames

    def close(self) -> None:
        for pipe in (self._to, self._from):
            pipe.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Crew:
    """Helpers that were set up for one table or one key.

    **Guarantee.** They are gone when this object is.

    Args:
        setups: What each is told first; it has no reply.

    Raises:
        CryptoError: One ended at once.
    """

    def __init__(self, setups: Iterable[Job] = ()) -> None:
        self._helpers: list[_Helper] = []
        self._end = weakref.finalize(self, _close_all, self._helpers)
        for setup in setups:
            self._helpers.append(_Helper())
            try:
                self._helpers[-1].start(setup)
            except OSError as problem:
                self.close()
                raise _ended() from problem

    def run(self, jobs: list[Job], own: Callable[[], R]) -> tuple[R, list[tuple[Frame, ...]]]:
        """Jobs for as many helpers, while this process does its own.

        Raises:
            CryptoError: A helper refused its job, or ended. The crew is closed then.
        """
        helpers = self._helpers[: len(jobs)]
        try:
            for helper, job in zip(helpers, jobs, strict=True):
                helper.start(job)
            return own(), [helper.finish() for helper in helpers]
        except (EOFError, OSError) as problem:
            self.close()
            raise _ended() from problem
        except BaseException:
            # Replies that nobody reads would be taken for those of the next jobs.
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many helpers there are; none once it is closed."""
        return len(self._helpers)

    def close(self) -> None:
        """Ends the helpers."""
        self._end()


def _ended() -> CryptoError:
    return CryptoError(
        "a helper process ended before its work was done",
        hint="is there enough memory? allow a table less of it",
    )


def _close_all(helpers: list[_Helper]) -> None:
    while helpers:
        helpers.pop().close()
