"""Cost of a pass of ``none``, ``sealed`` and ``mutual``, in one run and in turns.

Both parties run in one process on a synthetic table, ``PASSES`` passes of newton, with ``bfv``:
processor time of all of it, keys included, and the bytes of all frames. The three take turns, and
the least of several turns counts: what else a machine does only adds. The sigmoid's exchange is
timed by itself too, and a whole training of breast-cancer by the clock. There are no options.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.api import train
from taciturn.crypto.bfv.slots import BfvSlots
from taciturn.data.tables import FeatureTable
from taciturn.engine.pair import run_pair
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.registry import mechanism as mechanism_of
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import alice_program
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.party import bob_program
from taciturn.protocol.messages import Role
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.settings.signatures import SettingsOptions
from taciturn_paper.throughput import synthetic

PASSES, TURNS = 8, 3
SHAPES = ((500, 15, 15), (500, 30, 0), (5_000, 15, 15))
MECHANISMS = ("none", "sealed", "mutual")
SIGMOID_ROWS, SIGMOID_NUMBERS = 8192, 42
WHOLE: SettingsOptions = {
    "dataset": "breast-cancer",
    "alice_columns": "half",
    "mechanism": "mutual",
    "seed": 1,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a pass."""

    milliseconds: float
    kib_to_alice: float
    kib_to_bob: float

    def __str__(self) -> str:
        return f"{self.milliseconds:.1f} ms, {self.kib_to_alice:.0f} + {self.kib_to_bob:.0f}"


def one_pass(mechanism: str, rows: int, alice: int, bob: int) -> Cost:
    """One turn of one mechanism."""
    entropy = KeyedEntropy.from_seed(1)
    features, labels = synthetic(rows, alice + bob, entropy.fork("table"))
    names, values = features.columns, features.values
    hers = FeatureTable(features.ids, names[:alice], np.ascontiguousarray(values[:, :alice]))
    his = FeatureTable(features.ids, names[alice:], np.ascontiguousarray(values[:, alice:]))
    chosen = {"mechanism": mechanism, "solver": "newton", "passes": PASSES, "intercept": False}
    terms = agree(resolved(Settings.from_mapping(chosen)), alice, rows)
    method = mechanism_of(terms.agreement)
    ledger, sent = Ledger(rows, method.assumption), Counter[Role]()

    def tap(sender: Role, frame: bytes) -> None:
        sent[sender] += len(frame)

    parties = (
        alice_program(AliceInputs(hers, terms, entropy.fork("alice"))),
        bob_program(BobInputs(his, labels, terms, method, ledger, entropy.fork("bob"))),
    )
    start = time.process_time()
    run_pair(*parties, tap=tap)
    taken = time.process_time() - start
    there, back = sent["bob"] / 1024 / PASSES, sent["alice"] / 1024 / PASSES
    return Cost(1000 * taken / PASSES, there, back)


def costs(rows: int, alice: int, bob: int, turns: int = TURNS) -> dict[str, Cost]:
    """The least of some turns of each mechanism."""
    taken: dict[str, list[Cost]] = {name: [] for name in MECHANISMS}
    for _ in range(turns):
        for name in MECHANISMS:
            taken[name].append(one_pass(name, rows, alice, bob))
    return {name: min(some, key=lambda cost: cost.milliseconds) for name, some in taken.items()}


def sigmoid_exchange(repeats: int = 5) -> Cost:
    """A row's part of the sigmoid's exchange of a full block, at the usual error and range."""
    entropy = KeyedEntropy.from_seed(2)
    key = BfvSlots().generate(128, entropy)
    (block,) = slot_blocks(BfvSlots(), SIGMOID_ROWS, SIGMOID_NUMBERS)
    numbers = entropy.integers(1 << 21, SIGMOID_ROWS * SIGMOID_NUMBERS).astype(np.int64)
    vectors = block.vectors(numbers.reshape(SIGMOID_ROWS, SIGMOID_NUMBERS))
    masks = entropy.integers(BfvSlots.modulus, block.length).view(np.int64)
    times = []
    for _ in range(repeats):
        start = time.process_time()
        total, sent = key.public.sum_of(block.length), 0
        for vector in vectors:
            encrypted = key.encrypt(vector, entropy)
            total.add(vector, encrypted)
            sent += len(encrypted.data)
        answer = total.masked(masks, entropy)
        key.decrypt(answer)
        times.append(time.process_time() - start)
    sizes = (size / 1024 / SIGMOID_ROWS for size in (sent, len(answer.data)))
    return Cost(1000 * min(times) / SIGMOID_ROWS, *sizes)


def whole_training() -> tuple[float, float]:
    """Seconds by the clock and of the processor, of breast-cancer with 15 columns on each side."""
    # Once before: what is loaded and cached is not the training's.
    once: SettingsOptions = {**WHOLE, "passes": 1}
    train(**once)
    clock, processor = time.perf_counter(), time.process_time()
    train(**WHOLE)
    return time.perf_counter() - clock, time.process_time() - processor


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the cost of a pass of each mechanism."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args(arguments)
    print("a pass: processor time of both sides, KiB to Alice + KiB to Bob")
    print(f"| rows, columns at Alice and Bob | {' | '.join(MECHANISMS)} | `mutual` to `sealed` |")
    print("|---|" + "---|" * (len(MECHANISMS) + 1))
    for rows, alice, bob in SHAPES:
        taken = costs(rows, alice, bob)
        ratio = taken["mutual"].milliseconds / taken["sealed"].milliseconds
        cells = " | ".join(map(str, taken.values()))
        print(f"| {rows:,}, {alice} and {bob or 'none'} | {cells} | {ratio:.1f} |", flush=True)
    row = sigmoid_exchange()
    kib = row.kib_to_alice + row.kib_to_bob
    print(f"the sigmoid, one of {SIGMOID_ROWS:,} rows: {row.milliseconds:.2f} ms, {kib:.1f} KiB")
    clock, processor = whole_training()
    print(f"breast-cancer, 15 and 15: {clock:.1f} s by the clock, {processor:.1f} s")


if __name__ == "__main__":
    main()
