"""Distance of newton from the optimum, on the paper's datasets and on untuned tables.

The gap is the penalised mean loss of the model on the training rows, less the least there is.
Beside it: the AUC on held-out rows, the optimum's, and the largest difference of a training row's
probability to the optimum's. Nothing is encrypted (``clear``), which changes no weight.

Run ``python -m taciturn_paper.gaps``. The two large datasets are read from the folder that
``TACITURN_DATA`` names.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data import datasets
from taciturn.families.binomial import sigmoid
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.numerics.likelihood import label_likelihood, weighted_likelihood
from taciturn.numerics.metrics import auc
from taciturn.numerics.optimum import optimum, penalised_loss
from taciturn.privacy.solvers import resolved
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import load_raw
from taciturn_paper.datasets import NAMES

SEED = 1
AIM = 1e-4
MECHANISMS = ("sealed", "mutual")


@dataclass(frozen=True, slots=True)
class Gap:
    """Distance of a model from the optimum of its penalty."""

    gap: float
    auc: float
    best_auc: float
    probability: float

    @classmethod
    def from_outcome(cls, outcome: Outcome) -> Gap:
        """Gap of a training, from its tables and weights."""
        data, agreed = outcome.data, outcome.terms.agreement
        weighted = partial(weighted_likelihood, class_weight=agreed.class_weight)
        likelihood = label_likelihood(data.labels_train.values, weighted)
        train = np.hstack([data.alice_train.values, data.bob_train.values])
        test = np.hstack([data.alice_test.values, data.bob_test.values])
        weights = np.concatenate([outcome.alice_weights, outcome.bob_weights])
        best = optimum(train, likelihood, agreed.l2, data.bob_train.free)
        loss = penalised_loss(train @ weights, likelihood, weights, agreed.l2, data.bob_train.free)
        apart = sigmoid(train @ weights) - sigmoid(train @ best.weights)
        return cls(
            loss - best.loss,
            auc(test @ weights, data.labels_test.values),
            auc(test @ best.weights, data.labels_test.values),
            float(np.abs(apart).max()),
        )


def train(frame: pl.DataFrame, alice: str, mechanism: str) -> Outcome:
    """A training on own data with the defaults; ``alice`` are the columns of Alice's."""
    chosen = {"label": "label", "alice_columns": alice, "mechanism": mechanism}
    settings = resolved(Settings.from_mapping({**chosen, "scheme": "clear", "seed": SEED}))
    return simulate_training(settings, load_raw(settings, frame))


def _normal(entropy: KeyedEntropy, rows: int, columns: int) -> FloatArray:
    first, second = (entropy.fork(name).uniform((rows, columns)) for name in ("radius", "angle"))
    normal: FloatArray = np.sqrt(-2.0 * np.log1p(-first)) * np.cos(2.0 * np.pi * second)
    return normal


def _table(
    entropy: KeyedEntropy, values: FloatArray, alice: int, shift: float, size: float
) -> pl.DataFrame:
    """Numbers with labels of a logistic model; the first ``alice`` columns are Alice's."""
    weights = size * _normal(entropy.fork("weights"), 1, values.shape[1])[0]
    spread = np.maximum(values.std(axis=0), 1e-9)
    chance = sigmoid((values - values.mean(axis=0)) / spread @ weights + shift)
    labels = entropy.fork("labels").uniform((len(values),)) < chance
    names = [f"{'a' if at < alice else 'b'}{at}" for at in range(values.shape[1])]
    return pl.from_numpy(values, schema=names).with_columns(label=pl.Series(labels.astype(int)))


def _one_hot(entropy: KeyedEntropy) -> pl.DataFrame:
    """Six categories of Alice's, of 4 to 14 levels, the last of them in a few rows."""
    rows, columns = 3000, {}
    score = np.zeros(rows)
    for at, levels in enumerate((14, 9, 4, 12, 7, 5)):
        numbers = (levels * entropy.fork(f"levels {at}").uniform((rows,)) ** 3).astype(int)
        score += _normal(entropy.fork(f"effects {at}"), 1, levels)[0][numbers]
        columns[f"a{at}"] = [f"level {number}" for number in numbers]
    labels = entropy.fork("labels").uniform((rows,)) < sigmoid(score - score.mean())
    return pl.DataFrame(columns).with_columns(label=pl.Series(labels.astype(int)))


def _made(
    name: str, rows: int, alice: int, bob: int, shift: float = 0.0, size: float = 0.5
) -> pl.DataFrame:
    entropy = KeyedEntropy.from_seed(SEED).fork(name)
    values = _normal(entropy, rows, alice + bob)
    if name == "sides correlated":
        values[:, alice:] = values[:, :alice] + 0.05 * values[:, alice:]
    elif name == "heavy tails":
        values = np.sinh(2.0 * values)
    elif name == "a constant column":
        values[:, [0, alice]] = 3.0
    return _table(entropy, values, alice, shift, size)


TABLES: dict[str, Callable[[], pl.DataFrame]] = {
    "one-hot, rare levels": lambda: _one_hot(KeyedEntropy.from_seed(SEED).fork("one-hot")),
    "1 % positives": partial(_made, "1 % positives", 5000, 10, 10, -7.0),
    "sides correlated": partial(_made, "sides correlated", 3000, 10, 10),
    "300 x 200": partial(_made, "300 x 200", 300, 100, 100),
    "heavy tails": partial(_made, "heavy tails", 3000, 10, 10),
    "nearly separable": partial(_made, "nearly separable", 2000, 10, 10, 0.0, 6.0),
    "a constant column": partial(_made, "a constant column", 3000, 8, 8),
    "one column at Bob": partial(_made, "one column at Bob", 3000, 20, 1),
}


def cases(names: list[str]) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Name, Alice's columns and table of each case; of all where no name is given."""
    folder = os.environ.get("TACITURN_DATA")
    for name in NAMES:
        if not names or name in names:
            raw = datasets.load(name, data_dir=Path(folder) if folder else None)
            frame = raw.frame.with_columns(label=pl.Series(raw.labels.values.astype(int)))
            yield from ((f"{name}, {split}", split, frame) for split in ("half", "all"))
    for name, made in TABLES.items():
        if not names or name in names:
            frame = made()
            hers = [column for column in frame.columns if column.startswith("a")]
            yield name, ",".join(hers), frame


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table of ``docs/performance.md``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = (*NAMES, *TABLES)
    names_of_all = ", ".join(map(repr, known)).replace("%", "%%")
    parser.add_argument(
        "tables", nargs="*", metavar="TABLE", help=f"of {names_of_all} (default: all)"
    )
    names = parser.parse_args(arguments).tables
    if unknown := set(names) - set(known):
        parser.error(f"unknown table: {', '.join(sorted(unknown))}")
    print(f"| table | mechanism | gap | AUC | optimum's AUC | probability apart |\n|{'---|' * 6}")
    for name, alice, frame in cases(names):
        for mechanism in MECHANISMS:
            gap = Gap.from_outcome(train(frame, alice, mechanism))
            figures = f"{gap.gap:.1e} | {gap.auc:.4f} | {gap.best_auc:.4f} | {gap.probability:.1e}"
            print(f"| {name} | {mechanism} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
