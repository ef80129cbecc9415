"""A PostgreSQL server of a test's own: an unprivileged user, a folder, a socket, no network."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.system import NOT_TESTED


def _program(name: str) -> str:
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    place = shutil.which(name) or next(
        (str(folder / name) for folder in versions if (folder / name).exists()), None
    )
    if place is None:
        pytest.skip(f"{NOT_TESTED}rows from PostgreSQL; get it by `make system`")
    return place


def _as_nobody() -> dict[str, Any]:
    """The server refuses to run as root."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


class Postgres:
    """A server that can be stopped and started.

    Args:
        folder: Its own.
    """

    def __init__(self, folder: Path) -> None:
        self._data, self._sockets, self._user = folder / "data", folder / "run", _as_nobody()
        for place in (folder, self._data, self._sockets):
            place.mkdir(mode=0o700, exist_ok=True)
            if self._user:
                os.chown(place, self._user["user"], self._user["group"])
        self._run(_program("initdb"), "-U", "postgres", "-A", "trust", "-D", str(self._data))

    @property
    def address(self) -> str:
        """For ``[serve] source``."""
        return f"postgresql://postgres@/postgres?host={self._sockets}"

    def start(self) -> None:
        options = f"-c listen_addresses= -k {self._sockets} -c fsync=off"
        log = self._sockets / "log"
        self._run(
            _program("pg_ctl"), "-D", str(self._data), "-w", "-o", options, "-l", str(log), "start"
        )

    def stop(self) -> None:
        self._run(_program("pg_ctl"), "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command, cwd="/", capture_output=True, text=True, check=False, **self._user
        )
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server for a test."""
    import tempfile

    pytest.importorskip("psycopg")
    # Short: a socket's path has 107 letters at most. Others must be able to reach it.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = Postgres(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)
