"""Cost of ``mutual`` beside ``sealed`` and SPU's Cheetah: processor time and traffic of trainings.

Alice and Bob are two processes on loopback, ours over TLS. Half of the columns are Bob's, with an
intercept. The contenders take turns, so that a busy machine slows all, and figures are the means of
the turns. Processor time is that of both processes and their helpers, from connection to model;
bytes are the kernel's count; the gap is that of the penalised log loss of the training rows to its
minimum.

``--spu-python`` names a Python with SPU (paper/spu-requirements.txt). Then the made table of 20,000
rows is trained to a gap of 1e-3 too, by both mechanisms and by Cheetah with an exact sigmoid, each
in the fewest passes that suffice unencrypted. Cheetah takes steps over all rows, with a momentum;
their length follows from the curvature of the joined table, which no side could know.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.families.binomial import sigmoid
from taciturn.numerics.likelihood import Likelihood, label_likelihood, weighted_likelihood
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.numerics.whole_table import fit_in_clear, fit_on_schedule
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw
from taciturn_paper.against_spu import Cheetah, versions
from taciturn_paper.sides import Tables, measure
from taciturn_paper.throughput import synthetic

SEED = 1
MECHANISMS = ("sealed", "mutual")
MADE = "20,000 x 20+20"
TARGET = 1e-3
# Nesterov's, to a tenth, for the condition number 4 of the made table at its optimum.
MOMENTUM = 0.3


class Cost(NamedTuple):
    """Cost of a training of both sides, and its distance from the optimum.

    ``further`` are the processor seconds of a pass after the first; not a number with one pass.
    """

    passes: int
    seconds: float
    further: float
    traffic: float
    gap: float


@dataclass(frozen=True)
class Problem:
    """Tables of both sides, and what is minimised on them."""

    tables: Tables

    @cached_property
    def joined(self) -> FloatArray:
        """Alice's columns and Bob's."""
        return np.hstack([self.tables.alice, self.tables.bob])

    @cached_property
    def l2(self) -> float:
        """The default penalty."""
        return 1.0 / len(self.joined)

    @cached_property
    def _likelihood(self) -> Likelihood:
        return label_likelihood(self.tables.labels, partial(weighted_likelihood, class_weight=None))

    @cached_property
    def _least(self) -> float:
        return optimum(self.joined, self._likelihood, self.l2, 1).loss

    def gap(self, weights: FloatArray) -> float:
        """Penalised loss of a model, less the minimum."""
        scores = self.joined @ weights
        return penalised_loss(scores, self._likelihood, weights, self.l2, 1) - self._least

    def fit(self, contender: str, passes: int) -> FloatArray:
        """Weights of a contender after some passes, unencrypted."""
        if contender == "cheetah":
            return self._descend(passes)
        method = fit_in_clear if contender == "sealed" else fit_on_schedule
        tables = self.tables
        fit = method(tables.alice, tables.bob, self._likelihood, self.l2, 1, passes)
        return np.concatenate([fit.alice, fit.own])

    def fewest_passes(self, contender: str) -> int:
        """Number of passes after which a contender's gap is below the target."""
        return next(n for n in count(1) if self.gap(self.fit(contender, n)) < TARGET)

    @cached_property
    def step(self) -> float:
        """Longest step that is safe: one divided by the largest curvature."""
        joined = self.joined
        return 4.0 * len(joined) / float(np.linalg.eigvalsh(joined.T @ joined)[-1])

    def _descend(self, passes: int) -> FloatArray:
        model = point = np.zeros(self.joined.shape[1])
        for _ in range(passes):
            residues = sigmoid(self.joined @ point) - self.tables.labels
            before, model = model, point - self.step * (residues @ self.joined) / len(residues)
            point = model + MOMENTUM * (model - before)
        return model


def _dataset(name: str) -> Tables:
    chosen = {"dataset": name, "alice_columns": "half", "intercept": True, "seed": SEED}
    settings = resolved(Settings.from_mapping(chosen))
    data = arrange(settings, load_raw(settings), RunEntropy.for_seed(SEED).data)
    return Tables(data.alice_train.values, data.bob_train.values, data.labels_train.values, True)


def made(rows: int, alice: int, bob: int) -> Tables:
    """Table of independent columns, whose labels a logistic model explains."""
    features, labels = synthetic(rows, alice + bob, KeyedEntropy.from_seed(SEED))
    own = np.hstack([features.values[:, alice:], np.ones((rows, 1))])
    return Tables(features.values[:, :alice], own, labels.values, True)


TABLES: dict[str, Callable[[], Tables]] = {
    "breast-cancer": partial(_dataset, "breast-cancer"),
    MADE: partial(made, 20_000, 20, 20),
    "census-income": partial(_dataset, "census-income"),
    "give-me-some-credit": partial(_dataset, "give-me-some-credit"),
}


def train(problem: Problem, mechanism: str, passes: int | None = None) -> Cost:
    """Cost of a training with the default settings of own data."""
    chosen = {"mechanism": mechanism, "solver": "newton", "scheme": "bfv", "intercept": True}
    rows, columns = problem.tables.alice.shape
    terms = agree(resolved(Settings.from_mapping({**chosen, "passes": passes})), columns, rows)
    course = measure(terms.agreement, problem.tables)
    first, last = (course.steps[at].processor_seconds for at in (0, -1))
    return Cost(
        terms.rounds,
        course.whole.processor_seconds,
        _further(last - first, terms.rounds),
        float(sum(course.wire_bytes)),
        problem.gap(course.weights),
    )


def train_cheetah(problem: Problem, python: Path, passes: int) -> Cost:
    """Cost of a training by SPU's Cheetah with an exact sigmoid."""
    epochs = [[np.arange(len(problem.joined))]] * passes
    lap = Cheetah(python, "real").train(problem.tables, epochs, problem.step, MOMENTUM)
    return Cost(
        passes,
        lap.processor_seconds,
        _further(lap.processor_seconds - lap.first_epoch, passes),
        float(lap.bytes_to_alice + lap.bytes_to_bob),
        problem.gap(lap.weights),
    )


def _further(seconds: float, passes: int) -> float:
    return seconds / (passes - 1) if passes > 1 else math.nan


def contenders(problem: Problem, python: Path | None = None) -> dict[str, Callable[[], Cost]]:
    """Trainings of a table; with SPU's Python also those to the target."""
    runs: dict[str, Callable[[], Cost]] = {
        name: partial(train, problem, name) for name in MECHANISMS
    }
    if python is None:
        return runs
    fewest = {name: problem.fewest_passes(name) for name in (*MECHANISMS, "cheetah")}
    to_target = {
        f"{name} to {TARGET:g}": partial(train, problem, name, fewest[name]) for name in MECHANISMS
    }
    cheetah = partial(train_cheetah, problem, python, fewest["cheetah"])
    return {**runs, **to_target, f"cheetah to {TARGET:g}": cheetah}


def compare(runs: Mapping[str, Callable[[], Cost]], turns: int) -> dict[str, Cost]:
    """Mean cost of each contender's turns."""
    taken: dict[str, list[Cost]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            taken[name].append(run())
    return {
        name: Cost(costs[0].passes, *np.mean([cost[1:] for cost in costs], axis=0).tolist())
        for name, costs in taken.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table of ``docs/mutual.md``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tables",
        nargs="*",
        metavar="TABLE",
        help=f"tables to train on: {', '.join(map(repr, TABLES))} (default: all). The two last "
        "are read from the folder that TACITURN_DATA names",
    )
    parser.add_argument("--turns", type=int, default=2, help="trainings of each (default: 2)")
    parser.add_argument(
        "--spu-python", type=Path, help=f"Python with SPU; adds Cheetah to the table {MADE!r}"
    )
    given = parser.parse_args(arguments)
    if unknown := set(given.tables) - set(TABLES):
        parser.error(f"unknown table: {', '.join(sorted(unknown))}")
    if given.spu_python is not None:
        versions(given.spu_python)
    print("| table | contender | passes | processor s | a further pass | MB | gap |")
    print(f"|{'---|' * 7}")
    for name in given.tables or TABLES:
        problem = Problem(TABLES[name]())
        python = given.spu_python.absolute() if given.spu_python and name == MADE else None
        cost = compare(contenders(problem, python), given.turns)
        for contender, (passes, seconds, further, traffic, gap) in cost.items():
            a_pass = "–" if math.isnan(further) else f"{further:.2f}"
            print(
                f"| {name} | {contender} | {passes} | {seconds:.1f} | {a_pass} "
                f"| {traffic / 1e6:,.0f} | {gap:.1e} |"
            )
        pairs = [("mutual", "sealed")]
        if python is not None:
            cheetah, target = (f"{one} to {TARGET:g}" for one in ("cheetah", "mutual"))
            pairs += [(cheetah, "mutual"), (cheetah, target)]
        for more, less in pairs:
            by_time = cost[more].seconds / cost[less].seconds
            by_bytes = cost[more].traffic / cost[less].traffic
            print(
                f"| {name} | {more} / {less} | | {by_time:.1f} | | {by_bytes:.1f} | |", flush=True
            )


if __name__ == "__main__":
    main()
