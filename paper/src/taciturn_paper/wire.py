"""What the wire costs: the same training in one process, over loopback, and behind a slow link.

Two parties are real processes with real certificates and their journals on disk. The slow link is a
relay on loopback that holds every byte back for half of the round trip and lets so many bits
through in a second: it stands in for a kernel's emulation, which not every machine has.

Run ``python -m taciturn_paper.wire``.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer

from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError
from taciturn.jobs.train.job import TrainJob
from taciturn.party.bob import BobSide
from taciturn.party.config import PartyConfig
from taciturn.party.templates import Trial, template
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.messages import Role
from taciturn.rng import KeyedEntropy
from taciturn.transport.certs import make_certificates

ROUND_TRIP, MEGABITS = 0.020, 50.0
MECHANISMS = ("none", "add", "hybrid", "sealed")
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Crossing:
    """One training by one way; times are per iteration, in milliseconds."""

    mechanism: str
    way: str
    iterations: int
    ms: float
    waiting_ms_alice: float
    waiting_ms_bob: float
    bytes_to_alice: int
    bytes_to_bob: int

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return asdict(self)


def furnish(folder: Path, mechanism: str, port: int, called: int) -> None:
    """Breast-cancer, its columns in halves, batches of 32, five epochs."""
    data = load_breast_cancer()
    ids = [f"{number:04d}" for number in range(len(data.target))]
    for role, part in (("alice", slice(0, 15)), ("bob", slice(15, 30))):
        columns = {f"x{j}": data.data[:, j] for j in range(part.start, part.stop)}
        extra = {"label": data.target} if role == "bob" else {}
        pl.DataFrame({"id": ids, **columns, **extra}).write_csv(folder / f"{role}.csv")
    make_certificates(folder / "certs", ["alice", "bob"])
    roles: tuple[Role, Role] = ("alice", "bob")
    for role in roles:
        own = port if role == "bob" else called
        text = template(role, Trial(mechanism, "bob", f"localhost:{own}"))
        for before, after in (
            ("epochs = 10", "epochs = 5"),
            ("batch-size = 64", "batch-size = 32"),
            ("alice-columns = 30", "alice-columns = 15"),
            ("0.0.0.0:", "127.0.0.1:"),
            # What each side has to accept in its own file.
            ("# accept-", "accept-"),
        ):
            text = text.replace(before, after)
        (folder / f"{role}.toml").write_text(text, encoding="utf-8")


def in_process(folder: Path) -> tuple[float, int]:
    """Seconds of the two programs in one thread, and iterations."""
    sides = {
        role: TrainJob().prepare(PartyConfig.read(folder / f"{role}.toml")).plan
        for role in ("alice", "bob")
    }
    alice, bob = sides["alice"], sides["bob"]
    labels, ledger = bob.tables.labels, Ledger(bob.tables.train.rows, "")
    if labels is None:
        raise ConfigError("Bob has no labels")
    coins = KeyedEntropy.from_seed(1)
    start = time.perf_counter()
    run_pair(
        alice.program(coins.fork("alice"), None),
        bob.program(coins.fork("bob"), BobSide(labels, ledger)),
    )
    seconds = time.perf_counter() - start
    rows, agreed = bob.tables.train.rows, bob.terms.agreement
    return seconds, agreed.epochs * bob.terms.per_epoch(rows)


def two_processes(folder: Path) -> dict[str, dict[str, Any]]:
    """What both sides report of a training between two processes."""
    command = [sys.executable, "-m", "taciturn", "party"]
    processes = {
        role: subprocess.Popen(  # noqa: S603 - our own program
            [*command, f"{role}.toml", "--json"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for role in ("bob", "alice")
    }
    return {role: json.loads(process.communicate()[0]) for role, process in processes.items()}


@contextmanager
def slow_link(port: int, round_trip: float, megabits: float) -> Iterator[int]:
    """A relay to a port on loopback; yields its own port."""
    with ExitStack() as open_things:
        listener = open_things.enter_context(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(
            target=_relay, args=(listener, port, round_trip / 2, megabits), daemon=True
        ).start()
        yield listener.getsockname()[1]


def _relay(listener: socket.socket, port: int, delay: float, megabits: float) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        try:
            far = socket.create_connection(("127.0.0.1", port))
        except OSError:
            near.close()
            continue
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((near, far), (far, near)):
            _pump(source, target, delay, megabits)


def _pump(source: socket.socket, target: socket.socket, delay: float, megabits: float) -> None:
    """One direction: a reader that stamps what it reads, and a writer that waits."""
    held: deque[tuple[float, bytes]] = deque()
    ready = threading.Condition()

    def read() -> None:
        free = 0.0
        while True:
            try:
                data = source.recv(_CHUNK)
            except OSError:
                data = b""
            now = time.monotonic()
            # The wire is busy until the last bit is on it; it arrives half a round trip later.
            free = max(free, now) + 8 * len(data) / (megabits * 1e6)
            with ready:
                held.append((free + delay, data))
                ready.notify()
            if not data:
                return
            time.sleep(max(0.0, free - time.monotonic() - 0.05))

    def write() -> None:
        while True:
            with ready:
                while not held:
                    ready.wait()
                due, data = held.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    target.shutdown(socket.SHUT_WR)
                    return
                target.sendall(data)
            except OSError:
                return

    threading.Thread(target=read, daemon=True).start()
    threading.Thread(target=write, daemon=True).start()


def free_port() -> int:
    """A port on loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def measure(mechanism: str, *, slow: bool = True) -> list[Crossing]:
    """One mechanism by every way, in one run."""
    crossings = []
    ways = ["loopback", "slow link"] if slow else ["loopback"]
    for way in ways:
        with tempfile.TemporaryDirectory() as place, ExitStack() as opened:
            folder, port = Path(place), free_port()
            called = port
            if way == "slow link":
                called = opened.enter_context(slow_link(port, ROUND_TRIP, MEGABITS))
            furnish(folder, mechanism, port, called)
            if way == "loopback":
                seconds, iterations = in_process(folder)
                crossings.append(
                    Crossing(
                        mechanism, "one process", iterations, 1e3 * seconds / iterations, *_NONE
                    )
                )
            crossings.append(_crossing(mechanism, way, two_processes(folder)))
    return crossings


_NONE = (0.0, 0.0, 0, 0)


def _crossing(mechanism: str, way: str, sides: dict[str, dict[str, Any]]) -> Crossing:
    alice, bob = sides["alice"]["run"], sides["bob"]["run"]
    iterations = bob["iterations"]
    seconds = min(alice["seconds"], bob["seconds"])
    return Crossing(
        mechanism,
        way,
        iterations,
        1e3 * seconds / iterations,
        1e3 * alice["waiting_seconds"] / iterations,
        1e3 * bob["waiting_seconds"] / iterations,
        bob["bytes_sent"] // iterations,
        bob["bytes_received"] // iterations,
    )


def main() -> None:
    """Measures and prints."""
    table = Table(title="breast-cancer, 15 and 15 columns, batch 32, five epochs")
    for name in ("mechanism", "way", "ms/iteration", "× one process", "kB to Alice", "kB to Bob"):
        table.add_column(name, justify="left" if name in ("mechanism", "way") else "right")
    for mechanism in MECHANISMS:
        rows = measure(mechanism)
        for row in rows:
            table.add_row(
                row.mechanism,
                row.way,
                f"{row.ms:.1f}",
                f"{row.ms / rows[0].ms:.2f}",
                f"{row.bytes_to_alice / 1e3:.1f}" if row.bytes_to_alice else "",
                f"{row.bytes_to_bob / 1e3:.1f}" if row.bytes_to_bob else "",
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
