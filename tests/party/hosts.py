"""Parties as real processes with certificates and gRPC, on this machine or each on a host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.party.sides import (
    ROLES,
    Company,
    role_of,
    write_certificates,
    write_config,
    write_tables,
)
from tests.waiting import HANG, wait_until

PORT = 9443
ADDRESSES = {"alice": "10.77.0.1", "bob": "10.77.0.2"}


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclass
class Hosts:
    """A network namespace for each party, and a cable from Bob's to each other."""

    names: dict[str, str]

    def prefix(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", self.names[name]]

    def cable(self, state: str, name: str = "alice") -> None:
        """Pulls an Alice's cable out ("down"), or puts it back ("up")."""
        _ip("-n", self.names[name], "link", "set", "wire", state)


class OneHost(Hosts):
    """All parties on this machine: no namespaces."""

    def prefix(self, name: str) -> list[str]:
        return []


@contextmanager
def two_hosts(*alices: str) -> Iterator[Hosts]:
    """Makes the hosts of Bob and of one or more Alices; they are gone at the end."""
    alices = alices or ("alice",)
    spaces = {name: f"taciturn-{name}-{os.getpid()}" for name in (*alices, "bob")}
    bob = spaces["bob"]
    try:
        for space in spaces.values():
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
        for place, name in enumerate(alices):
            own, port, net = spaces[name], f"wire{place}", f"10.77.{place}"
            _ip("-n", own, "link", "add", "wire", "type", "veth", "peer", port, "netns", bob)
            for space, device, address in ((own, "wire", 1), (bob, port, 2)):
                _ip("-n", space, "addr", "add", f"{net}.{address}/24", "dev", device)
                _ip("-n", space, "link", "set", device, "up")
        yield Hosts(spaces)
    finally:
        for space in spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)


@dataclass
class Side:
    """One party's process; it can be killed and started again.

    Args:
        hosts: Where it runs.
        folder: With its settings.
        name: An Alice's, or Bob's.
    """

    hosts: Hosts
    folder: Path
    name: str
    process: subprocess.Popen[str] | None = None

    @property
    def role(self) -> str:
        return role_of(self.name)

    def file(self, ending: str) -> Path:
        return self.folder / f"{self.role}.{ending}"

    def start(self, command: str = "party", *options: str) -> None:
        """Trains and records it, where nothing else is said."""
        if command == "party" and not options:
            options = ("--record", f"{self.role}.transcript", "--json")
        words = ["-m", "taciturn", command, f"{self.role}.toml", *options]
        with self.file("out").open("w") as out, self.file("err").open("a") as err:
            self.process = subprocess.Popen(
                [*self.hosts.prefix(self.name), sys.executable, *words],
                cwd=self.folder,
                stdout=out,
                stderr=err,
                text=True,
            )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """As kill -9 does."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """As a service manager does; its exit code."""
        if self.code is None:
            self.signal(signal.SIGTERM)
        assert self.process is not None
        return self.process.wait(HANG)

    @property
    def code(self) -> int | None:
        assert self.process is not None
        return self.process.poll()

    @property
    def record(self) -> dict[str, Any]:
        output: dict[str, Any] = json.loads(self.file("out").read_text())
        return output

    def said(self) -> str:
        return self.file("err").read_text()[-2000:]

    def noted(self, event: str) -> int:
        """How often its log has an event."""
        log = self.file("log")
        return log.read_text().count(f'"event": "{event}"') if log.exists() else 0

    def kept(self) -> int:
        """Bytes of its journal: they grow with every frame, and start anew at a checkpoint."""
        journal = self.folder / f"{self.role}-state" / "journal"
        return journal.stat().st_size if journal.exists() else 0


def furnish(
    folder: Path,
    *,
    rows: int = 120,
    serves: str = "bob",
    address: str = "",
    state: Mapping[str, Any] | None = None,
    **agreement: Any,
) -> None:
    """Tables, certificates and settings of two parties, on two hosts or at an address of one."""
    write_tables(folder, rows=rows)
    write_certificates(folder / "certs")
    listen = address or f"0.0.0.0:{PORT}"
    for role in ROLES:
        link = {"listen": None, "connect": address or f"{ADDRESSES[serves]}:{PORT}"}
        if role == serves:
            link = {"listen": listen, "connect": None}
        waits = {"connect-seconds": HANG, "answer-seconds": HANG, "keepalive-seconds": 2.0}
        changes = {"link": {**link, **waits}, "state": dict(state or {})}
        write_config(folder, role, agreement=agreement, **changes)


@contextmanager
def processes(group_shape: Company, hosts: Hosts | None = None) -> Iterator[dict[str, Side]]:
    """A process for each party, to be started; nothing is left running."""
    here = hosts or OneHost({})
    sides = {name: Side(here, group_shape.place(name), name) for name in group_shape.all}
    try:
        yield sides
    finally:
        for side in sides.values():
            side.kill()


def all_end(sides: Mapping[str, Side]) -> dict[str, dict[str, Any]]:
    """Waits until all have ended well; what they say."""
    both_finish(*sides.values())
    return {name: side.record for name, side in sides.items()}


def all_run(
    sides: Mapping[str, Side], command: str = "party", *options: str
) -> dict[str, dict[str, Any]]:
    """A command on all sides at once, to its end; they train by default."""
    for side in sides.values():
        side.start(command, *options, *(("--json",) if options or command != "party" else ()))
    return all_end(sides)


def both_finish(*sides: Side) -> None:
    """Waits until all have ended well."""
    wait_until(lambda: all(side.code is not None for side in sides), "they did not end")
    assert {side.code for side in sides} == {0}, [side.said() for side in sides]
