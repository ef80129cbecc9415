"""Cost of the wire: the same training in one process, over loopback, and behind a slow link.

Two parties are real processes with real certificates and their journals on disk.

Run ``python -m taciturn_paper.wire``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer

from taciturn.engine.pair import run_pair
from taciturn.errors import ConfigError
from taciturn.jobs.train.job import TrainJob
from taciturn.party.bob_inputs import BobTrainingInputs
from taciturn.party.config import PartyConfig
from taciturn.party.templates import Trial, template
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.messages import Role
from taciturn.rng import KeyedEntropy
from taciturn.transport.certs import make_certificates
from taciturn_paper.sides import free_port, slow_link

ROUND_TRIP, MEGABITS = 0.020, 50.0
MECHANISMS = ("none", "add", "hybrid", "sealed")


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


def write_files(folder: Path, mechanism: str, port: int, called: int) -> None:
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
    entropy = KeyedEntropy.from_seed(1)
    start = time.perf_counter()
    run_pair(
        alice.program(entropy.fork("alice"), None),
        bob.program(entropy.fork("bob"), BobTrainingInputs(labels, ledger)),
    )
    seconds = time.perf_counter() - start
    return seconds, bob.iterations


def two_processes(folder: Path) -> dict[str, dict[str, Any]]:
    """Reports of both sides of a training between two processes."""
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
            write_files(folder, mechanism, port, called)
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


def _crossing(mechanism: str, transport: str, sides: dict[str, dict[str, Any]]) -> Crossing:
    alice, bob = sides["alice"]["run"], sides["bob"]["run"]
    iterations = bob["iterations"]
    seconds = min(alice["seconds"], bob["seconds"])
    return Crossing(
        mechanism,
        transport,
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
