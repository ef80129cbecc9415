"""Bits about one row that `mutual` opens to a Bob who knows all other rows.

For each kind of table the unknown row's values are drawn anew, and Bob trains in clear for each.
Shown: by how many rows the candidates move the opened change of the loss and the count, and the
bits that one training and twelve trainings tell at most, beside what the ledger states for such a
table. Tables: honest ones; tables in which Bob chose a column or a label against the row; and one
in which scores wrap.

Run ``python -m taciturn_paper.known_others`` (two minutes on one core; ``--rows`` for other sizes).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_breast_cancer

from taciturn.arrays import FloatArray, LabelArray
from taciturn.families.binomial import sigmoid
from taciturn.privacy.row_noise import USUAL_PASSES, row_noise
from taciturn.rng import KeyedEntropy
from taciturn_audit.row_influence import Candidates, RowInfluence, measure_influence

ROWS = (8_192, 60_000)
TRAININGS = 12
HONEST = ("plain", "correlated", "strong", "breast-cancer")
CHOSEN = (
    "label but one",
    "indicator",
    "label inverted",
    "breast-cancer, label inverted",
    "breast-cancer, label inverted, 30 features",
)
WRAPPED = ("wrapped", "breast-cancer, 56 passes", "breast-cancer, intercept alone")
_COLUMNS = 5
_SMALL_PENALTY, _USUAL_PENALTY = 1e-6, 1e-4
_FEATURES, _MIX = 30, 3
"""Further columns that Bob makes of his own, with next to no penalty."""


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of table, the influence of a row on its sums, and what the ledger states."""

    kind: str
    rows: int
    influence: RowInfluence
    stated: float


def candidates(kind: str, rows: int, count: int, passes: int, seed: int = 5) -> Candidates:
    """Draw a table of a kind, and ``count`` candidates for the values of its middle row."""
    entropy, row = KeyedEntropy.from_seed(seed), rows // 2
    if kind.startswith("breast-cancer"):
        return _repeated(kind, rows, count, passes)
    values = _normal(entropy.fork("values"), kind, rows + count)
    strength = 4.0 if kind == "strong" else 1.0
    weights = _normal(entropy.fork("weights"), "plain", 1)[0] * strength * 1.5 / np.sqrt(10.0)
    chances = sigmoid(values[:rows] @ weights)
    labels: LabelArray = (entropy.fork("labels").uniform((rows,)) < chances).astype(np.int8)
    alice, bob = values[:rows, :_COLUMNS], values[:rows, _COLUMNS:]
    column, labels = _chosen(kind, labels, row)
    own = bob if column is None else np.column_stack([column, bob])
    return Candidates(
        alice,
        np.column_stack([own, np.ones(rows)]),
        labels,
        row,
        values[rows:, :_COLUMNS],
        _USUAL_PENALTY if column is None else _SMALL_PENALTY,
        passes,
    )


def _repeated(kind: str, rows: int, count: int, passes: int) -> Candidates:
    """A real table whose classes are nearly separable, repeated to so many rows."""
    source, target = load_breast_cancer(return_X_y=True)
    source = (source - source.mean(axis=0)) / source.std(axis=0)
    taken, row = np.arange(rows) % len(source), rows // 2
    labels: LabelArray = target[taken].astype(np.int8)
    if "inverted" in kind:
        labels[row] = 1 - labels[row]
    own, l2 = source[:, 15:], 1.0 / rows
    if "features" in kind:
        mixing = 2.0 * KeyedEntropy.from_seed(_MIX).uniform((own.shape[1], _FEATURES)) - 1.0
        own, l2 = np.column_stack([own, np.tanh(own @ mixing)]), _SMALL_PENALTY / 10
    if "alone" in kind:
        own = own[:, :0]
    bob = np.column_stack([own[taken], np.ones(rows)])
    values, passes = source[7 : 7 + 37 * count : 37, :15], 56 if "56" in kind else passes
    return Candidates(source[taken, :15], bob, labels, row, values, l2, passes)


def _normal(entropy: KeyedEntropy, kind: str, rows: int) -> FloatArray:
    shape = rows, 2 * _COLUMNS
    radius = np.sqrt(-2.0 * np.log1p(-entropy.fork("radius").uniform(shape)))
    values = radius * np.cos(2.0 * np.pi * entropy.fork("angle").uniform(shape))
    if kind == "correlated":
        size = shape[1]
        values = values @ np.linalg.cholesky(0.9 + 0.1 * np.eye(size)).T
    return np.asarray(values)


def _chosen(kind: str, labels: LabelArray, row: int) -> tuple[FloatArray | None, LabelArray]:
    """Bob's chosen column, if any, and the labels that he trains on."""
    signs = np.where(labels, 1.0, -1.0)
    if kind == "label inverted":
        labels = labels.copy()
        labels[row] = 1 - labels[row]
        return None, labels
    if kind == "label but one":
        signs[row] = -signs[row]
        return signs, labels
    if kind == "indicator":
        return (np.arange(len(labels)) == row).astype(np.float64), labels
    if kind == "wrapped":
        others = np.flatnonzero(np.arange(len(labels)) != row)[: max(2, len(labels) // 1000)]
        signs[others] *= 100.0 * np.sqrt(len(labels) / 8192)
        return signs, labels
    return None, labels


def stated_bits(kind: str, rows: int, passes: int, trainings: int = 1) -> float:
    """Bits that the ledger states for the change of the loss; infinite where it states no bound."""
    noise = row_noise("change of the loss", rows, passes)
    if kind in WRAPPED:
        return math.inf
    moved = noise.moved.chosen if kind in CHOSEN else noise.moved.honest
    return noise.bits(moved, trainings)


def cases(rows: int, count: int, passes: int = USUAL_PASSES) -> Iterator[Case]:
    """Measure all kinds of tables of one size."""
    for kind in (*HONEST, *CHOSEN, *WRAPPED):
        influence = measure_influence(candidates(kind, rows, count, passes))
        yield Case(kind, rows, influence, stated_bits(kind, rows, passes))


def main() -> None:
    """Print one line per table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--passes", type=int, default=USUAL_PASSES)
    given = parser.parse_args()
    print("rows, table: change in rows, count in rows; bits of 1 and of 12 trainings; ledger, bits")
    for rows in given.rows:
        for case in cases(rows, given.candidates, given.passes):
            moved, several = case.influence, case.influence.bits(TRAININGS)
            print(
                f"{rows:7,} {case.kind:29} {moved.change:9.2e} {moved.count:4.0f}  "
                f"{moved.bits():7.4f} {several:7.4f}  {case.stated:7.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
