"""A party's own cluster on this machine: a scheduler and workers as real processes, with TLS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn.transport.certs import make_certificates
from tests.system import free_port
from tests.waiting import wait_until


@dataclass
class Cluster:
    """Its certificates are in ``cluster`` of the folder; its processes end with the test."""

    folder: Path
    port: int = field(default_factory=free_port)
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tls://127.0.0.1:{self.port}"

    @property
    def settings(self) -> dict[str, Any]:
        """What a party's file says of it."""
        names = {"ca": "ca.pem", "certificate": "party.pem", "key": "party.key"}
        files = {name: f"cluster/{file}" for name, file in names.items()}
        return {"engine": "dask", "scheduler": self.address, **files, "worker-seconds": 20.0}

    def start_scheduler(self) -> None:
        named = self.folder / "scheduler.json"
        named.unlink(missing_ok=True)
        words = ["--protocol", "tls", "--host", "127.0.0.1", "--port", str(self.port)]
        words += ["--no-dashboard", "--scheduler-file", str(named)]
        self.scheduler = self._start("scheduler", *words)
        wait_until(lambda: named.exists() and self._listens(named), "the scheduler did not start")

    def start_worker(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        """A worker process, without a nanny: what ends it ends it for good."""
        usual = ["--nthreads", "1", "--memory-limit", "0", "--no-dashboard", "--no-nanny"]
        place = ["--local-directory", str(self.folder / "workers")]
        worker = self._start("worker", self.address, *usual, *place, *words, **environment)
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        """Ends all of it."""
        for process in [*self.workers, *filter(None, [self.scheduler])]:
            process.kill()
            process.wait()
        self.workers, self.scheduler = [], None

    def _start(self, role: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        certificates = self.folder / "cluster"
        tls = ["--tls-ca-file", str(certificates / "ca.pem")]
        tls += ["--tls-cert", str(certificates / f"{role}.pem")]
        tls += ["--tls-key", str(certificates / f"{role}.key")]
        places = os.pathsep.join(filter(None, sys.path))
        with (self.folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", role, *words, *tls],
                env={**os.environ, "PYTHONPATH": places, **environment},
                stdout=log,
                stderr=log,
            )

    @staticmethod
    def _listens(named: Path) -> bool:
        try:
            return bool(json.loads(named.read_text())["address"])
        except ValueError:
            return False


@contextmanager
def running_cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A scheduler and some workers, which end with the context."""
    make_certificates(folder / "cluster", ["scheduler", "worker", "party"])
    cluster = Cluster(folder)
    try:
        cluster.start_scheduler()
        for _ in range(workers):
            cluster.start_worker()
        yield cluster
    finally:
        cluster.stop()
