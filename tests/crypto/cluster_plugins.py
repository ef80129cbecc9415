"""Plugins of Dask's workers, apart from the tests: only a test of a cluster loads Dask."""

from __future__ import annotations

import os
import signal
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
from distributed import WorkerPlugin

from taciturn.crypto.bfv.workers import Frame, Job
from taciturn.crypto.cluster import Address
from tests.modules import module_of


class Recorder(WorkerPlugin):  # type: ignore[misc]
    """Writes down each reply of a worker; the first that has one is killed before it can send it.

    Dask installs it on workers that come later, too.
    """

    name = "recorder"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def setup(self, worker: object) -> None:
        usual, folder = module_of(Address)._Held.reply, self.folder

        def reply(held: Any, job: Job) -> tuple[Frame, ...]:
            frames = usual(held, job)
            if job.name in ("rows", "columns"):
                noted = {"name": job.name, "mask": job.frames[1], **job.facts}
                noted["covered"] = frames[job.facts.get("first_covered", 0)]
                place = folder / f"{uuid.uuid4()}.npz"
                np.savez(place, **{key: np.array(value) for key, value in noted.items()})  # type: ignore[arg-type]
                with suppress(FileExistsError):
                    (folder / "killed").touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGKILL)
            return cast("tuple[Frame, ...]", frames)

        setattr(module_of(Address)._Held, "reply", reply)  # noqa: B010


class Deadly(WorkerPlugin):  # type: ignore[misc]
    """Workers that end at whatever they are asked for."""

    name = "deadly"

    def setup(self, worker: object) -> None:
        def reply(held: Any, job: Job) -> tuple[Frame, ...]:
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        setattr(module_of(Address)._Held, "reply", reply)  # noqa: B010
