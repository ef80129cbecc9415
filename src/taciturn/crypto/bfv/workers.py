"""Engines: backends for the work on many tiles, such as this machine's processes or a cluster.

**What an engine may rely on.** A setup and a job are plain (a name, public facts, bytes), and a
reply is a pure function of both: a worker keeps nothing from one job to the next that changes a
result. So a job may be run twice, or on another worker that had the same setup. Masks come with the
job, and encryptions of zero and floods are drawn afresh where it runs: what is decrypted from a
repeated answer is the same number under the same mask, and no mask ever covers two. Sums are of
integers modulo t, so that results do not depend on how the work was cut; of tables whose products
stay shared they do by some units.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from taciturn.parallel import usable_cores

MOST_PROCESSES = 8

Frame: TypeAlias = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Job:
    """Setup or task of a worker: a name, public numbers, and bytes."""

    name: str
    facts: dict[str, int]
    frames: tuple[Frame, ...] = ()


class Writable(Protocol):
    """Part of a reply that is serialised only where it leaves its process."""

    def to_bytes(self) -> bytes:
        """Serialise the part for another process."""


Reply: TypeAlias = "tuple[Frame | Writable, ...]"
Worker: TypeAlias = Callable[[Job], Reply]
"""What a setup makes (``worker.worker``): it does jobs, one after the other."""
Setup: TypeAlias = Callable[[], Job]
"""Makes a setup when it is needed: it may be a copy of many rows."""


def written(reply: Reply) -> tuple[Frame, ...]:
    """Serialise a reply that leaves its process."""
    return tuple(
        part if isinstance(part, bytes | memoryview) else part.to_bytes() for part in reply
    )


class WorkerPool(Protocol):
    """Workers that were set up for one table or one key."""

    def run(self, jobs: Sequence[Job], worker: Worker) -> list[Reply]:
        """Run one job for each of the first setups and return the replies in order.

        ``worker`` is this process as the worker of the first setup, for an engine that uses it. A
        job that was refused, or a worker that is lost for good, raises ``CryptoError``; later jobs
        still run.
        """

    def close(self) -> None:
        """End the workers that this pool started."""


class Engine(Protocol):
    """Backend that runs the jobs; the party's scheme carries it (``BfvScheme.engine``).

    Workers can open the files of this process by their paths: of a mapped table they are sent its
    location, and not its rows.
    """

    def shares(self, work: int, least: int) -> int:
        """Number of shares to cut the work into; workers get one setup per share.

        ``work`` is the public number of tiles or ciphertexts. Below ``least`` sharing costs about
        what it saves on one machine.
        """

    def pool(self, setups: Sequence[Setup]) -> WorkerPool:
        """A pool with one setup per share."""


class ThisProcess:
    """A pool of this process alone, for work that is not shared."""

    def run(self, jobs: Sequence[Job], worker: Worker) -> list[Reply]:
        """Run the jobs here."""
        return [worker(job) for job in jobs]

    def close(self) -> None:
        """Do nothing: no process was started."""


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Engine of this process, with worker processes on the same machine for larger work.

    ``cores`` counts the processes, this one included; None means one per core, up to 8.
    """

    cores: int | None = None

    def shares(self, work: int, least: int) -> int:
        """One share below ``least``, else one per process."""
        # An embedded interpreter may not know how to be started.
        alone = work < least or not sys.executable
        return 1 if alone else self.cores or min(usable_cores(), MOST_PROCESSES)

    def pool(self, setups: Sequence[Setup]) -> WorkerPool:
        """Worker processes for all shares but the first, which is this process's."""
        if len(setups) == 1:
            return ThisProcess()
        from taciturn.crypto.bfv.processes import LocalWorkerPool

        return LocalWorkerPool(setups[1:])
