"""Cost of each stage of a pass, and the gain from a second core.

One table in one process and its helpers, without a link: Alice whitens and rounds it, Bob encrypts
a number for each row, she sums over rows, he encrypts his share, she computes all scores, he
decrypts them and searches on. Each number of cores has a process of its own, which may use no
other.

Run ``python -m taciturn_paper.stages --rows 300000``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from taciturn.crypto.base import TableSize
from taciturn.crypto.registry import scheme
from taciturn.data.ids import RowIds
from taciturn.data.tables import FeatureTable
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.subspace import SubspaceSolver
from taciturn.parallel import one_thread
from taciturn.protocol.agree import agree
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.whitened import WhitenedTable
from taciturn.protocol.table_scales import directions
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn_paper.scale import spread

PASSES = 12


@dataclass(slots=True)
class Stages:
    """Seconds of each stage, by the clock; the second time is taken, when helpers have started."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measures what is done inside."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def measure(rows: int, columns: int, bob_columns: int, memory: int) -> dict[str, float]:
    """One pass on all cores that this process may use; ``memory`` is that of kept plaintexts."""
    entropy, stages = KeyedEntropy.from_seed(3), Stages()
    features = FeatureTable(
        RowIds.numbered(rows),
        tuple(f"x{j}" for j in range(columns)),
        spread(entropy, (rows, columns)),
    )
    terms = agree(Settings(solver="newton", mechanism="sealed"), columns, rows)
    with one_thread():
        with stages.timed("Alice whitens and rounds, once"):
            table = WhitenedTable.from_inputs(AliceInputs(features, terms, entropy))
        size = TableSize(rows, columns)
        secret = scheme("bfv").generate(128, table.ring, entropy)
        held = secret.public.table(table.whole, memory)
        numbers = directions(table.scales, spread(entropy, (rows,)) / rows, entropy)
        share = table.ring.draw(columns, entropy)
        (part,) = terms.scheme.row_parts(size)
        for _ in range(2):
            with stages.timed("Bob encrypts a number a row"):
                vector = secret.encrypt_rows(numbers, size, entropy)
            with stages.timed("Alice sums over rows"):
                total = held.sum_over_rows(share, entropy)
                total.add(vector, part)
                total.result()
            weights = secret.encrypt_columns(share, size, entropy)
            with stages.timed("Alice computes scores"):
                answer = held.product(weights, numbers, entropy, part)
            with stages.timed("Bob decrypts scores"):
                secret.decrypt_rows(answer, size)
        held.close()
        _search(rows, bob_columns, entropy, stages)
    return stages.seconds


def _search(rows: int, bob_columns: int, entropy: KeyedEntropy, stages: Stages) -> None:
    """Time Bob's own work in the last of ``PASSES`` passes, noted in ``stages``."""
    labels = (entropy.uniform((rows,)) < 0.5).astype(np.int8)
    likelihood = label_likelihood(labels, partial(weighted_likelihood, class_weight=None))
    columns = spread(entropy, (rows, bob_columns))
    solver = SubspaceSolver(likelihood, columns, l2=1 / rows, free=0, passes=PASSES)
    for number in range(1, PASSES + 1):
        answer = spread(entropy, (rows,))
        with stages.timed(f"Bob searches, pass {number}"):
            solver.add(solver.direction(), answer)
    for number in range(1, PASSES):
        del stages.seconds[f"Bob searches, pass {number}"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures with one core, and with all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--own", type=int, default=10, help="Bob's columns")
    parser.add_argument(
        "--memory", type=int, default=1024, help="MiB of plaintexts that are kept between passes"
    )
    parser.add_argument("--cores", type=int, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
        print(json.dumps(measure(given.rows, given.columns, given.own, given.memory << 20)))
        return
    most = len(os.sched_getaffinity(0))
    names = ("rows", "columns", "own", "memory")
    sizes = [text for name in names for text in (f"--{name}", str(getattr(given, name)))]
    one, all_of_them = (
        json.loads(
            subprocess.run(  # noqa: S603 - our own program
                [sys.executable, "-m", "taciturn_paper.stages", *sizes, "--cores", str(cores)],
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for cores in (1, most)
    )
    table = Table(
        title=f"{given.rows:,} rows, {given.columns} columns at Alice, {given.own} at Bob"
    )
    for name in ("stage", "1 core", f"{most} cores", "speed-up"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    for name, seconds in one.items():
        many = all_of_them[name]
        table.add_row(name, f"{seconds:.2f} s", f"{many:.2f} s", f"{seconds / many:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
