"""Cost of a training by number of Alices, in one run.

Every Alice has ``COLUMNS`` columns of a synthetic table. Processor time is that of all parties in
one process, with ``bfv``, keys and introductions included; each party's own is taken around its
steps. The numbers of Alices take turns, and the least of several turns counts. For the time that
Bob waits, each Alice runs in a thread of her own, and what she says arrives ``DELAY`` seconds late.

Run it with ``python -m taciturn_paper.consortium``.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl

from taciturn.data.prepare import RawData
from taciturn.data.split import whole_vertical
from taciturn.data.user_table import DEFAULTS
from taciturn.engine.driver import Driver
from taciturn.engine.pair import run_star
from taciturn.jobs.train.simulation import sides_of, simulated_terms
from taciturn.party.bob_inputs import BobTrainingInputs
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.solvers import resolved
from taciturn.protocol.alice.party import TRAININGS as ALICE
from taciturn.protocol.bob.inputs import released_labels
from taciturn.protocol.bob.party import TRAININGS as BOB
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import Program
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy
from taciturn_paper.throughput import synthetic

ALICES = (1, 2, 4, 8)
COLUMNS, BATCH, ITERATIONS, TURNS = 15, 32, 20, 3
ROWS, PASSES = 20_000, 4
DELAY = 0.2
SGD: dict[str, Any] = {
    "mechanism": "none",
    "solver": "sgd",
    "batch_size": BATCH,
    "epochs": 1,
    "learning_rate": 0.1,
}
NEWTON: dict[str, Any] = {"mechanism": "sealed", "solver": "newton", "passes": PASSES}

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Cost:
    """Per iteration or pass: milliseconds of Bob and of a mean Alice, KiB of all frames."""

    bob: float
    alice: float
    kib: float


class Clock:
    """The processor time of one party."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timed(self, program: Program[R]) -> Program[R]:
        """The same program, whose work between two steps is counted."""
        answer: Any = None
        while True:
            start = time.process_time()
            try:
                step = program.send(answer)
            except StopIteration as done:
                result: R = done.value
                return result
            finally:
                self.seconds += time.process_time() - start
            answer = yield step


def star(alices: int, rows: int, options: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Programs of several Alices and of Bob, who has an intercept."""
    entropy = RunEntropy.for_seed(1)
    features, labels = synthetic(rows, alices * COLUMNS, KeyedEntropy.from_seed(2))
    frame = {name: features.values[:, at] for at, name in enumerate(features.columns)}
    raw = RawData("synthetic", pl.DataFrame(frame), features.ids, labels, DEFAULTS, own=True)
    settings = resolved(
        Settings.from_mapping({"data": "synthetic", "label": "y", "parties": alices, **options})
    )
    data = whole_vertical(raw, "all", intercept=True, parties=alices)
    terms = simulated_terms(settings, data, entropy)
    hers, his = sides_of(data, terms, entropy)
    ledger = Ledger(rows, terms.mechanism.assumption)
    labels = released_labels(data.labels_train, terms.mechanism, ledger, entropy.bob)
    bob = BobTrainingInputs(labels, ledger).inputs(his, entropy.bob)
    # The training alone: its cost is told by iteration or pass.
    train = ALICE[terms.conversation]
    inputs = {name: side.alice_inputs(entropy.of_alice(name)) for name, side in hers.items()}
    return {name: train(one) for name, one in inputs.items()}, BOB[terms.conversation](bob)


def cost(alices: int, rows: int, options: dict[str, Any], units: int) -> Cost:
    """Cost of one turn, per iteration or pass, of which it has ``units``."""
    hers, his = star(alices, rows, options)
    clocks, bytes_of = {name: Clock() for name in (*hers, "bob")}, Counter[Role]()

    def tap(_link: str, sender: Role, frame: bytes) -> None:
        bytes_of[sender] += len(frame)

    run_star(
        {name: clocks[name].timed(program) for name, program in hers.items()},
        clocks["bob"].timed(his),
        tap=tap,
    )
    seconds = [clocks[name].seconds for name in hers]
    mean = float(np.mean(seconds))
    kib = sum(bytes_of.values()) / 1024 / units
    return Cost(1000 * clocks["bob"].seconds / units, 1000 * mean / units, kib)


def costs(
    rows: int, options: dict[str, Any], units: int, alices: Sequence[int], turns: int
) -> dict[int, Cost]:
    """The least of some turns of each number of Alices."""
    taken: dict[int, list[Cost]] = {number: [] for number in alices}
    for _ in range(turns):
        for number in alices:
            taken[number].append(cost(number, rows, options, units))
    return {number: min(some, key=lambda one: one.bob) for number, some in taken.items()}


def waiting(alices: int, delay: float = DELAY, iterations: int = 5) -> float:
    """Seconds by the clock of an iteration in which every Alice's words come late."""
    options = {**SGD, "batch_size": 8, "scheme": "clear"}
    hers, his = star(alices, 8 * iterations, options)
    to_bob: dict[str, queue.Queue[bytes]] = {name: queue.Queue() for name in hers}
    to_her: dict[str, queue.Queue[bytes | None]] = {name: queue.Queue() for name in hers}
    threads = [
        threading.Thread(target=_late, args=(program, to_her[name], to_bob[name], delay))
        for name, program in hers.items()
    ]
    bob: Driver[Any] = Driver("bob", his, {name: box.put for name, box in to_her.items()})
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    bob.start()
    while not bob.finished:
        bob.feed(to_bob[bob.awaits].get())
    taken = time.perf_counter() - start
    for name, thread in zip(hers, threads, strict=True):
        to_her[name].put(None)
        thread.join()
    return taken / iterations


def _late(
    program: Program[Any],
    inbox: queue.Queue[bytes | None],
    outbox: queue.Queue[bytes],
    delay: float,
) -> None:
    """One Alice, whose answers take their time."""

    def say(frame: bytes) -> None:
        time.sleep(delay)
        outbox.put(frame)

    driver: Driver[Any] = Driver("alice", program, say)
    driver.start()
    while (frame := inbox.get()) is not None and not driver.finished:
        driver.feed(frame)


def main(
    alices: Sequence[int] = ALICES, turns: int = TURNS, show: Callable[[str], None] = print
) -> None:
    """Prints the table of ``docs/how-to/two-machines.md``, and that of `none`."""
    show("| Alices | none: Bob | an Alice | KiB | sealed: Bob | an Alice | MiB | waiting |")
    show("|---|---|---|---|---|---|---|---|")
    batches = costs(BATCH * ITERATIONS, SGD, ITERATIONS, alices, turns)
    passes = costs(ROWS, NEWTON, PASSES, alices, turns)
    for number in alices:
        by_batch, by_pass = batches[number], passes[number]
        show(
            f"| {number} | {by_batch.bob:.1f} ms | {by_batch.alice:.1f} ms | {by_batch.kib:,.0f} | "
            f"{by_pass.bob:.0f} ms | {by_pass.alice:.0f} ms | {by_pass.kib / 1024:.1f} | "
            f"{waiting(number):.2f} s |"
        )


if __name__ == "__main__":
    main()
