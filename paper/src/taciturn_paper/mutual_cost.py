"""Cost of ``mutual`` beside ``sealed``: processor time and traffic of whole trainings.

Alice and Bob are two processes over TLS (``sides``). The two mechanisms take turns, so that a busy
machine slows both, and ratios are those of the sums. Half of the columns are Bob's, with an
intercept.

Run ``python -m taciturn_paper.mutual_cost``, with names of tables for some of them; the two large
datasets are sought in the directory ``TACITURN_DATA``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from taciturn.protocol.terms import agree
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_paper.sides import Course, Tables, measure
from taciturn_paper.throughput import synthetic

SEED = 1
MECHANISMS = ("sealed", "mutual")


def _dataset(name: str) -> Tables:
    chosen = {"dataset": name, "alice_columns": "half", "intercept": True, "seed": SEED}
    settings = Settings.from_mapping(chosen).resolved()
    data = arrange(settings, load_raw(settings), RunEntropy.for_seed(SEED).data)
    return Tables(data.alice_train.values, data.bob_train.values, data.labels_train.values, True)


def _made(rows: int, alice: int, bob: int) -> Tables:
    features, labels = synthetic(rows, alice + bob, KeyedEntropy.from_seed(SEED))
    own = np.hstack([features.values[:, alice:], np.ones((rows, 1))])
    return Tables(features.values[:, :alice], own, labels.values, True)


TABLES: dict[str, Callable[[], Tables]] = {
    "breast-cancer": partial(_dataset, "breast-cancer"),
    "20,000 x 20+20": partial(_made, 20_000, 20, 20),
    "census-income": partial(_dataset, "census-income"),
    "give-me-some-credit": partial(_dataset, "give-me-some-credit"),
}


def train(tables: Tables, mechanism: str) -> tuple[int, Course]:
    """Passes and course of a training with the default settings of own data."""
    chosen = {"mechanism": mechanism, "solver": "newton", "scheme": "bfv", "intercept": True}
    rows, columns = tables.alice.shape
    terms = agree(Settings.from_mapping(chosen).resolved(), columns, rows)
    return terms.rounds, measure(terms.agreement, tables)


def compare(tables: Tables, turns: int) -> dict[str, tuple[int, float, float]]:
    """Passes, processor seconds and bytes of one training, by mechanism: the mean of all turns."""
    runs: dict[str, list[tuple[int, Course]]] = {name: [] for name in MECHANISMS}
    for _ in range(turns):
        for name, courses in runs.items():
            courses.append(train(tables, name))
    return {
        name: (
            courses[0][0],
            float(np.mean([course.whole.processor_seconds for _, course in courses])),
            float(np.mean([sum(course.wire_bytes) for _, course in courses])),
        )
        for name, courses in runs.items()
    }


def main(names: Sequence[str], turns: int = 2) -> None:
    """Prints the table of ``docs/mutual.md``."""
    print("| table | mechanism | passes | processor s | MB | µs/row/pass | bytes/row/pass |")
    print(f"|{'---|' * 7}")
    for name in names or TABLES:
        tables = TABLES[name]()
        cost = compare(tables, turns)
        for mechanism, (passes, seconds, traffic) in cost.items():
            row_passes = len(tables.labels) * passes
            print(
                f"| {name} | {mechanism} | {passes} | {seconds:.1f} | {traffic / 1e6:,.0f} "
                f"| {1e6 * seconds / row_passes:.0f} | {traffic / row_passes:.0f} |"
            )
        (_, *sealed), (_, *mutual) = cost["sealed"], cost["mutual"]
        times = [f"{more / less:.1f}" for more, less in zip(mutual, sealed, strict=True)]
        print(f"| {name} | times | | {times[0]} | {times[1]} | | |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
