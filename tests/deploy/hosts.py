"""Two hosts in network namespaces of their own, and parties on them as real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn.deploy.transport import make_certificates
from tests.deploy.sides import write_config, write_tables
from tests.waiting import HANG, wait_until

PORT = 9443
ADDRESSES = {"alice": "10.77.0.1", "bob": "10.77.0.2"}


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class Hosts:
    """Two namespaces with a cable between them."""

    names: dict[str, str]

    def prefix(self, role: str) -> list[str]:
        return ["ip", "netns", "exec", self.names[role]]

    def cable(self, state: str) -> None:
        """Pulls the cable out ("down"), or puts it back ("up")."""
        _ip("-n", self.names["alice"], "link", "set", "wire", state)


@contextmanager
def two_hosts() -> Iterator[Hosts]:
    """Makes the hosts; they are gone at the end."""
    names = {role: f"taciturn-{role}-{os.getpid()}" for role in ADDRESSES}
    try:
        for name in names.values():
            _ip("netns", "add", name)
        alice, bob = names.values()
        _ip("-n", alice, "link", "add", "wire", "type", "veth", "peer", "wire", "netns", bob)
        for role, name in names.items():
            _ip("-n", name, "addr", "add", f"{ADDRESSES[role]}/24", "dev", "wire")
            _ip("-n", name, "link", "set", "wire", "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield Hosts(names)
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@dataclass
class Side:
    """One party's process on its host; it can be killed and started again."""

    hosts: Hosts
    folder: Path
    role: str
    process: subprocess.Popen[str] | None = None
    starts: int = 0
    words: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.starts += 1
        options = ["--record", f"{self.role}.transcript", "--json"]
        command = [sys.executable, "-m", "taciturn", "party", f"{self.role}.toml", *options]
        out, err = (self.folder / f"{self.role}.{name}" for name in ("out", "err"))
        with out.open("w") as stdout, err.open("a") as stderr:
            self.process = subprocess.Popen(
                [*self.hosts.prefix(self.role), *command],
                cwd=self.folder,
                stdout=stdout,
                stderr=stderr,
                text=True,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @property
    def code(self) -> int | None:
        assert self.process is not None
        return self.process.poll()

    @property
    def record(self) -> dict[str, Any]:
        output: dict[str, Any] = json.loads((self.folder / f"{self.role}.out").read_text())
        return output

    def said(self) -> str:
        return (self.folder / f"{self.role}.err").read_text()[-2000:]

    def noted(self, event: str) -> int:
        """How often its log has an event."""
        log = self.folder / f"{self.role}.log"
        return log.read_text().count(f'"event": "{event}"') if log.exists() else 0

    def kept(self) -> int:
        """Bytes of its journal: they grow with every frame, and start anew at a checkpoint."""
        journal = self.folder / f"{self.role}-state" / "journal"
        return journal.stat().st_size if journal.exists() else 0


def furnish(folder: Path, *, rows: int = 120, serves: str = "bob", **agreement: Any) -> None:
    """Tables, certificates and settings for both hosts."""
    write_tables(folder, rows=rows)
    make_certificates(folder / "certs", ["alice", "bob"])
    for role in ADDRESSES:
        way = (
            {"listen": f"0.0.0.0:{PORT}"}
            if role == serves
            else {"connect": f"{ADDRESSES[serves]}:{PORT}"}
        )
        path = write_config(folder, role, agreement=agreement)
        lines = [
            line
            for line in path.read_text().splitlines()
            if not line.startswith(("listen", "connect =", "connect-seconds", "answer-seconds"))
        ]
        at = lines.index("[link]") + 1
        extra = {**way, "connect-seconds": HANG, "answer-seconds": HANG, "dead-seconds": 2.0}
        text = [f"{k} = {json.dumps(v)}" for k, v in extra.items()]
        path.write_text("\n".join(lines[:at] + text + lines[at:]) + "\n")


def both_finish(*sides: Side) -> None:
    """Waits until both have ended well."""
    wait_until(lambda: all(side.code is not None for side in sides), "they did not end")
    assert [side.code for side in sides] == [0, 0], [side.said() for side in sides]
