"""Worker processes on this machine, for tables and vectors of many tiles.

SEAL's Python binding keeps other threads waiting, so that threads do not help. A worker process is
a Python of its own that runs ``worker``; what it needs, keys included, goes to it over a pipe and
never through a file. It ends when its pipe ends: with ``close``, with the last reference to its
pool, or with the process that started it, however that ends.

Processes are started from scratch, and not by ``multiprocessing``: a fork would copy the locks of
other threads, and a spawn would run a caller's own script a second time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

from taciturn.crypto.bfv.workers import Frame, Job, Reply, Setup, Worker
from taciturn.errors import CryptoError

# One that waits for a job ends at once; one that is at work would finish it for nobody.
PATIENCE_SECONDS = 2.0

Pipe: TypeAlias = "Connection[Any, Any]"


def send(pipe: Pipe, name: str, facts: dict[str, int], frames: tuple[Frame, ...]) -> None:
    """Write a job or a reply."""
    head = {"name": name, "facts": facts, "frames": len(frames)}
    pipe.send_bytes(json.dumps(head).encode())
    for frame in frames:
        pipe.send_bytes(frame)


def receive(pipe: Pipe) -> Job:
    """Read a job or a reply; raises ``EOFError`` once the other end is gone."""
    head = json.loads(pipe.recv_bytes())
    frames = tuple(pipe.recv_bytes() for _ in range(head["frames"]))
    return Job(head["name"], head["facts"], frames)


class _WorkerProcess:
    def __init__(self) -> None:
        # The module is found where this one was, and not in the folder one happens to be in.
        places = os.pathsep.join(entry for entry in sys.path if entry)
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._to: Pipe = Connection(ours_out, readable=False)
        self._from: Pipe = Connection(ours_in, writable=False)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "taciturn.crypto.bfv.worker"],
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


class LocalWorkerPool:
    """Worker processes that were set up for one table or one key.

    **Guarantee.** They are gone when this object is. Those that ended, or refused a job, are
    replaced when the next jobs come.
    """

    def __init__(self, setups: Sequence[Setup] = ()) -> None:
        self._setups = setups
        self._processes: list[_WorkerProcess] = []
        self._end = weakref.finalize(self, _close_all, self._processes)
        self._start()

    def run(self, jobs: Sequence[Job], worker: Worker) -> list[Reply]:
        """Run the first job here and the others in worker processes, replaced after a failure."""
        self._start()
        try:
            processes = self._processes[: len(jobs) - 1]
            for process, job in zip(processes, jobs[1:], strict=True):
                process.start(job)
            return [worker(jobs[0]), *(process.finish() for process in processes)]
        except (EOFError, OSError) as problem:
            self.close()
            raise _ended() from problem
        except BaseException:
            # Replies that nobody reads would be taken for those of the next jobs.
            self.close()
            raise

    def close(self) -> None:
        """End the worker processes."""
        _close_all(self._processes)

    def _start(self) -> None:
        if self._processes:
            return
        for setup in self._setups:
            self._processes.append(_WorkerProcess())
            try:
                self._processes[-1].start(setup())
            except OSError as problem:
                self.close()
                raise _ended() from problem


def _ended() -> CryptoError:
    return CryptoError(
        "a worker process ended before its work was done",
        hint="is there enough memory? allow a table less of it",
    )


def _close_all(processes: list[_WorkerProcess]) -> None:
    while processes:
        processes.pop().close()
