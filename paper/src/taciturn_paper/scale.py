"""Cost of a pass by table size: two processes, from Parquet folders to models.

Both sides are what ``taciturn party`` runs, with certificates, journals and state folders, and the
tables lie in folders of Parquet parts. Each side notes how long its preparation took, when each
pass ended, what crossed the link, and the most memory (resident, file pages included) that its
process and each helper of it had.

Run ``python -m taciturn_paper.scale --rows 1000000 --passes 3``. A line of JSON has all figures of
a size, a table at the end the most important.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import Callbacks
from taciturn.families.binomial import sigmoid
from taciturn.party.config import PartyConfig
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import with_row_defaults
from taciturn.protocol.events import Event, Progress
from taciturn.rng import KeyedEntropy
from taciturn.settings.agreement import ACCEPTED_EXPOSURE
from taciturn.settings.schema import Settings
from taciturn.transport.certs import make_certificates
from taciturn_paper.sides import free_port, peaks_of_processes, processor_seconds, run_both

PART_ROWS = 500_000
HELD_OUT = 0.01
_WATCH_SECONDS = 0.2
_LONGEST_SECONDS = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class Task:
    """A training to measure.

    One row in a hundred is held out. ``alice`` and ``bob`` count columns, Bob's beside the
    intercept. ``cores`` are those that each side may use; None for all. ``journal``: what is
    journaled reaches the disk before anything is sent.
    """

    rows: int
    passes: int
    alice: int = 50
    bob: int = 10
    cores: int | None = None
    journal: bool = True
    mechanism: str = "sealed"


@dataclass(frozen=True, slots=True)
class SideReport:
    """Measurements of one side; seconds are wall-clock time.

    Preparation is from its start to the first message to the peer. ``passes`` and ``end`` say when
    each pass ended and the model was written, from that message on; ``processor_seconds`` are of
    the process and its helpers from then on. ``peaks`` are the most memory, in bytes, of the
    process and of each helper.
    """

    preparation_seconds: float
    preparation_peak: int
    passes: tuple[float, ...]
    end: float
    peaks: tuple[int, ...]
    processor_seconds: float
    bytes_sent: int
    model: str


def write_files(folder: Path, task: Task, port: int) -> None:
    """Tables in parts, certificates and a file for each side; tables that are there are kept."""
    if not folder.exists():
        make_tables(folder, task)
        make_certificates(folder / "certs", ["alice", "bob"])
    for role in ("alice", "bob"):
        (folder / f"{role}.toml").write_text(_file(role, task, port), encoding="utf-8")


def make_tables(folder: Path, task: Task) -> None:
    """The parts of both sides, whose rows stand in another order."""
    entropy, width = KeyedEntropy.from_seed(7), task.alice + task.bob
    weights = spread(entropy, (width,)) / np.sqrt(width)
    for role in ("alice", "bob"):
        (folder / f"{role}-parts").mkdir(parents=True)
    parts = -(-task.rows // PART_ROWS)
    for part in range(parts):
        first = part * PART_ROWS
        count = min(PART_ROWS, task.rows - first)
        values = spread(entropy, (count, width))
        chances = sigmoid(2.0 * values @ weights)
        labels = (entropy.uniform((count,)) < chances).astype(np.int8)
        ids = pl.Series(np.arange(first, first + count)).cast(pl.String).str.zfill(9)
        hers = {f"a{j}": values[:, j] for j in range(task.alice)}
        his = {f"b{j}": values[:, task.alice + j] for j in range(task.bob)}
        alice = pl.DataFrame({"id": ids, **hers})
        bob = pl.DataFrame({"id": ids, **his, "label": labels})[entropy.permutation(count)]
        alice.write_parquet(folder / "alice-parts" / f"{part:04d}.parquet")
        # From the last part to the first: no side has the other's order.
        bob.write_parquet(folder / "bob-parts" / f"{parts - part:04d}.parquet")


def spread(entropy: KeyedEntropy, shape: tuple[int, ...]) -> FloatArray:
    """Numbers of mean 0 and variance 1."""
    return np.multiply(entropy.uniform(shape) - 0.5, np.sqrt(12.0), dtype=np.float64)


def _file(role: str, task: Task, port: int) -> str:
    peer = "bob" if role == "alice" else "alice"
    way = f'listen = "127.0.0.1:{port}"' if role == "bob" else f'connect = "localhost:{port}"'
    cores = "" if task.cores is None else f"[compute]\ncores = {task.cores}\n"
    label = 'label = "label"\n' if role == "bob" else ""
    accepted = f'[privacy]\naccept-column-exposure = "{ACCEPTED_EXPOSURE}"\n'
    return f"""role = "{role}"
[agreement]
mechanism = "{task.mechanism}"
solver = "newton"
passes = {task.passes}
alice-columns = {task.alice}
held-out = {HELD_OUT}
[data]
file = "{role}-parts"
id = "id"
{label}[link]
peer = "{peer}"
{way}
certificate = "certs/{role}.pem"
key = "certs/{role}.key"
ca = "certs/ca.pem"
answer-seconds = 3600
[state]
folder = "{role}-state"
sync = {str(task.journal).lower()}
[output]
model = "{role}.model.json"
{accepted if role == "alice" and task.mechanism != "mutual" else ""}{cores}"""


class _Watch:
    """The most memory of this process and of each of its helpers, by looking again and again."""

    def __init__(self) -> None:
        self._peaks: dict[str, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(_WATCH_SECONDS):
            self.peaks()

    def peaks(self) -> tuple[int, ...]:
        for process, peak in peaks_of_processes().items():
            self._peaks[process] = max(self._peaks.get(process, 0), peak)
        return tuple(self._peaks.values())

    def end(self) -> tuple[int, ...]:
        self._over.set()
        self._thread.join()
        return self.peaks()


def run_side(path: Path) -> SideReport:
    """One side's whole training, as its command runs it."""
    start, watch, ended = time.perf_counter(), _Watch(), list[float]()
    from taciturn.jobs.base import RunContext, run_session
    from taciturn.jobs.train.job import TrainJob
    from taciturn.party.endpoints import open_endpoint

    config, job = PartyConfig.read(path), TrainJob()

    def observe(event: Event) -> None:
        if isinstance(event, Progress) and event.done > len(ended):
            ended.append(time.perf_counter())

    with open_endpoint(config, lambda text: None) as endpoint:
        side = job.prepare(config)
        ready, before, prepared = time.perf_counter(), processor_seconds(), watch.peaks()[0]
        result = run_session(side, RunContext(job, config, Callbacks(observe=observe), endpoint))
    done = time.perf_counter()
    return SideReport(
        preparation_seconds=ready - start,
        preparation_peak=prepared,
        passes=tuple(moment - ready for moment in ended),
        end=done - ready,
        peaks=watch.end(),
        processor_seconds=processor_seconds() - before,
        bytes_sent=result.run.bytes_sent,
        model=str(config.path(config.output.model)),
    )


def measure(task: Task, folder: Path) -> dict[str, Any]:
    """Makes the tables in a folder and trains on them."""
    start = time.perf_counter()
    write_files(folder, task, free_port())
    made = time.perf_counter() - start
    own = [sys.executable, "-m", "taciturn_paper.scale", "--side"]
    sides = run_both(
        {role: [*own, str(folder / f"{role}.toml")] for role in ("bob", "alice")},
        folder,
        _LONGEST_SECONDS,
    )
    return {"task": asdict(task), "made_seconds": made, **sides}


def per_pass(report: dict[str, Any]) -> float:
    """Seconds of a pass: of all but the first, in which the peer may still have prepared."""
    ends = report["bob"]["passes"]
    return float((ends[-1] - ends[0]) / (len(ends) - 1)) if len(ends) > 1 else float(ends[0])


def figures(report: dict[str, Any]) -> dict[str, str]:
    """What is printed of a training, by heading."""
    alice, bob, passes = report["alice"], report["bob"], report["task"]["passes"]
    shown = {"rows": f"{report['task']['rows']:,}", "passes": f"{passes}"}
    for name, side in (("Alice", alice), ("Bob", bob)):
        shown[f"{name}: preparation, s"] = f"{side['preparation_seconds']:.1f}"
        shown[f"{name}: preparation, peak GB"] = f"{side['preparation_peak'] / 1e9:.2f}"
    shown["training, s"] = f"{max(alice['end'], bob['end']):.1f}"
    shown["a pass, s"] = f"{per_pass(report):.1f}"
    for name, side in (("Alice", alice), ("Bob", bob)):
        shown[f"{name}: training, processor s"] = f"{side['processor_seconds']:.1f}"
    for name, side in (("Alice", bob), ("Bob", alice)):
        shown[f"to {name}, MB"] = f"{side['bytes_sent'] / 1e6:,.0f}"
        shown[f"to {name}, MB a pass"] = f"{side['bytes_sent'] / (passes + 1) / 1e6:,.0f}"
    for name, side in (("Alice", alice), ("Bob", bob)):
        own, *workers = side["peaks"]
        shown[f"{name}: main process, peak GB"] = f"{own / 1e9:.2f}"
        shown[f"{name}: each worker, peak GB"] = ", ".join(f"{one / 1e9:.2f}" for one in workers)
    return shown


def show(reports: Sequence[dict[str, Any]]) -> None:
    """A table of all."""
    table = Table(title=f"{reports[0]['task']['mechanism']}, newton, two processes on loopback")
    columns = [figures(report) for report in reports]
    for at, name in enumerate(columns[0]):
        values = [column[name] for column in columns]
        if not at:
            for heading in (name, *values):
                table.add_column(heading, justify="right" if heading != name else "left")
            continue
        table.add_row(name, *values)
    Console(width=100).print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints; a line of JSON for each size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000], help="table sizes (default: 100000)"
    )
    parser.add_argument(
        "--passes", type=int, help="over all rows (default: the mechanism's, 12 or 28)"
    )
    parser.add_argument(
        "--mechanism", choices=("sealed", "mutual"), default="sealed", help="default: sealed"
    )
    parser.add_argument(
        "--columns",
        type=int,
        nargs=2,
        default=[50, 10],
        metavar=("ALICE", "BOB"),
        help="numbers of columns, Bob's without the intercept (default: 50 10)",
    )
    parser.add_argument("--cores", type=int, help="of each side (default: all)")
    parser.add_argument(
        "--folder",
        type=Path,
        help="where tables, states and models are written and kept (default: a temporary folder)",
    )
    parser.add_argument("--side", type=Path, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.side is not None:
        print(json.dumps(asdict(run_side(given.side))))
        return
    chosen = {"mechanism": given.mechanism, "solver": "newton", "passes": given.passes}
    settings = resolved(Settings.from_mapping(chosen))
    reports = []
    for rows in given.rows:
        passes = with_row_defaults(settings, rows).passes or 1
        with ExitStack() as stack:
            place = given.folder or stack.enter_context(
                tempfile.TemporaryDirectory(prefix="taciturn-scale-")
            )
            alice, bob = given.columns
            task = Task(rows, passes, alice, bob, given.cores, mechanism=given.mechanism)
            report = measure(task, Path(place) / str(rows))
        print(json.dumps(report), flush=True)
        reports.append(report)
    show(reports)


if __name__ == "__main__":
    main()
