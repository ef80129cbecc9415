"""Cost and disclosure of a study in `mutual`, which judges each setting by one noisy sum.

``choice``: the log loss given up because the setting is chosen by noisy sums of a capped loss, on
tables of several sizes. ``bits``: what all sums of a study together tell about one row to a Bob who
knows all others, on honest tables, and with a column and a grid that he chose against that row.
Losses are those of models without the row's fold, trained in clear; waves and noise are the ones
that the parties use.

Run ``python -m taciturn_paper.noisy_study`` (two minutes on one core; the data files as for
``reproduce``, in TACITURN_DATA).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.families.binomial import sigmoid
from taciturn.numerics.bounded_waves import loss_waves
from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.privacy.noise import divisor, draw
from taciturn.privacy.row_noise import row_noise
from taciturn.privacy.solvers import resolved
from taciturn.rng import Entropy, KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw

PENALTIES = np.logspace(-5, 0, 12)
FOLDS = 3
CHOICES = (
    ("synthetic", 600),
    ("synthetic", 2_000),
    ("synthetic", 8_000),
    ("breast-cancer", 455),
    ("census-income", 600),
    ("census-income", 2_000),
    ("census-income", 8_000),
    ("census-income", 39_000),
    ("give-me-some-credit", 2_000),
    ("give-me-some-credit", 8_000),
    ("give-me-some-credit", 40_000),
)
_DRAWS, _UNIT = 400, 1 << 20
_SCORE_RANGE, _SIGMOID_ERROR = 64.0, 3e-3


class SettingLosses(NamedTuple):
    """Sums over all rows, for each penalty, of the log loss and of the capped loss in waves."""

    exact: Any
    capped: Any


@dataclass(frozen=True, slots=True)
class Table:
    """A table with an intercept in its last column, and the fold of each row."""

    values: FloatArray
    labels: IntArray
    folds: IndexArray

    def losses(self, penalties: FloatArray) -> SettingLosses:
        """Sums of each row's loss at the model that was trained without its fold."""
        waves = loss_waves("binomial", _SCORE_RANGE, half_range(_SCORE_RANGE, _SIGMOID_ERROR))
        exact, capped = np.zeros(len(penalties)), np.zeros(len(penalties))
        for fold in range(FOLDS):
            inside = self.folds == fold
            weights = np.zeros(self.values.shape[1])
            signs = 2.0 * self.labels[inside] - 1.0
            # From the largest penalty down: each model starts from the one before.
            for at in np.argsort(-penalties):
                weights = newton(self.values[~inside], self.labels[~inside], penalties[at], weights)
                margins = signs * (self.values[inside] @ weights)
                exact[at] += np.logaddexp(0.0, -margins).sum()
                capped[at] += waves(margins).sum()
        return SettingLosses(exact, capped)


def newton(values: FloatArray, labels: IntArray, penalty: float, start: FloatArray) -> FloatArray:
    """Weights of logistic regression; the last column carries no penalty."""
    rows, columns = values.shape
    ridge = np.full(columns, penalty)
    ridge[-1] = 1e-12
    weights = start.copy()
    for _ in range(60):
        means = sigmoid(values @ weights)
        slope = values.T @ (means - labels) / rows + ridge * weights
        curved = (values * (means * (1 - means))[:, np.newaxis]).T @ values / rows
        step = np.linalg.solve(curved + np.diag(ridge + 1e-12), slope)
        step *= min(1.0, 10.0 / max(float(np.linalg.norm(step)), 1e-30))
        weights -= step
        if np.linalg.norm(step) < 1e-9:
            break
    return weights


def noise(count: int, rows: int, entropy: Entropy) -> FloatArray:
    """Draw the noise of this many sums, in rows."""
    scale = row_noise("study sum", rows).width
    return draw(count, entropy).noise(divisor(scale * _UNIT)) / _UNIT


def loss_given_up(losses: SettingLosses, rows: int, entropy: Entropy) -> SettingLosses:
    """Mean loss per row of the chosen setting less that of the best, over draws of the noise."""
    drawn = noise(_DRAWS * len(losses.exact), rows, entropy).reshape(_DRAWS, -1)
    picks = (losses.capped + drawn).argmin(axis=1)
    return SettingLosses(*(np.mean(one[picks] - one.min()) / rows for one in losses))


def table_of(name: str, rows: int, seed: int = 1) -> Table:
    """Draw a table, or take rows of a dataset as the parties prepare it."""
    entropy = KeyedEntropy.from_seed(seed).fork(name)
    if name == "synthetic":
        values = normal(entropy.fork("values"), (rows, 20))
        weights = normal(entropy.fork("weights"), (20,)) * 1.2 / np.sqrt(20.0)
        chances = sigmoid(values @ weights)
        labels = (entropy.fork("labels").uniform((rows,)) < chances).astype(np.int64)
    else:
        settings = resolved(Settings.from_mapping({"dataset": name, "seed": seed}))
        data = arrange(settings, load_raw(settings), RunEntropy.for_seed(seed).data)
        joined = np.hstack([data.alice_train.values, data.bob_train.values])
        joined = joined[:, joined.std(axis=0) > 0]
        chosen = entropy.fork("rows").permutation(len(joined))[:rows]
        values = joined[chosen]
        labels = data.labels_train.values[chosen].astype(np.int64)
    folds = entropy.fork("folds").integers(FOLDS, len(values)).astype(np.int64)
    return Table(np.column_stack([values, np.ones(len(values))]), labels, folds)


def normal(entropy: Entropy, shape: tuple[int, ...]) -> FloatArray:
    """Draw normal numbers."""
    radius = np.sqrt(-2.0 * np.log1p(-entropy.fork("radius").uniform(shape)))
    return np.asarray(radius * np.cos(2.0 * np.pi * entropy.fork("angle").uniform(shape)))


def row_bits(sums: FloatArray, scale: float, entropy: Entropy, draws: int = 20_000) -> float:
    """Mutual information of the row and all noisy sums, in bits, by simulation.

    ``sums`` has a line for each equally likely candidate of the row, and a column for each setting.
    """
    total = 0.0
    for at, own in enumerate(sums):
        drawn = draw(draws * len(own), entropy).noise(divisor(scale * _UNIT)) / _UNIT
        opened = own + drawn.reshape(draws, -1)
        logs = np.stack([-np.abs(opened - other).sum(axis=1) / scale for other in sums])
        most = logs.max(axis=0)
        mixed = most + np.log(np.exp(logs - most).mean(axis=0))
        total += float((logs[at] - mixed).mean()) / np.log(2.0)
    return total / len(sums)


def known_others(
    rows: int, candidates: int = 24, seed: int = 3
) -> Iterator[tuple[str, float, float]]:
    """What Bob chose, the most rows that a sum moves, and bits about one row from all sums."""
    entropy = KeyedEntropy.from_seed(seed)
    values, weights = normal(entropy.fork("values"), (rows, 10)), normal(entropy, (10,))
    chances = sigmoid(values @ weights * 1.2 / np.sqrt(10.0))
    labels = (entropy.fork("labels").uniform((rows,)) < chances).astype(np.int64)
    folds = entropy.fork("folds").integers(FOLDS, rows).astype(np.int64)
    row, unknown = 7, normal(entropy.fork("unknown"), (candidates, 6))
    column = np.where(labels > 0, 1.0, -1.0)
    column[row] = -column[row]
    scale = row_noise("study sum", rows).width
    kinds: list[tuple[str, FloatArray | None, FloatArray]] = [
        ("honest", None, PENALTIES),
        ("chosen column", column, PENALTIES),
        ("chosen column and grid", column, 1.5e-4 * 2.0 ** np.arange(-6.0, 6.0)),
    ]
    for kind, chosen, penalties in kinds:
        sums = []
        for candidate in unknown:
            table = values.copy()
            table[row, :6] = candidate
            beside = [table] if chosen is None else [table, chosen[:, np.newaxis]]
            whole = np.hstack([*beside, np.ones((rows, 1))])
            sums.append(Table(whole, labels, folds).losses(penalties).capped)
        bits = row_bits(np.array(sums), scale, entropy.fork(f"noise {kind}"))
        yield kind, float(np.ptp(sums, axis=0).max()), bits


def main() -> None:
    """Print one line per table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["choice", "bits"])
    parser.add_argument("--rows", type=int, nargs="*", default=[300, 900])
    given = parser.parse_args()
    if "choice" in given.what:
        print(
            "table, rows: log loss given up per row, the same of the capped loss; spread of the "
            "settings; log loss given up without noise"
        )
        for name, rows in CHOICES:
            table = table_of(name, rows)
            losses, count = table.losses(PENALTIES), len(table.labels)
            lost = loss_given_up(losses, count, KeyedEntropy.from_seed(count).fork(name))
            spread = np.ptp(losses.exact) / count
            bare = (losses.exact[losses.capped.argmin()] - losses.exact.min()) / count
            figures = f"{lost.exact:9.1e} {lost.capped:9.1e} {spread:9.1e} {bare:9.1e}"
            print(f"{name:20} {count:7,} {figures}", flush=True)
    if "bits" in given.what:
        print("rows, what Bob chose: the most rows that a sum moves; bits from 12 sums")
        for rows in given.rows:
            for kind, moved, bits in known_others(rows):
                print(f"{rows:7,} {kind:24} {moved:6.2f} {bits:8.4f}", flush=True)


if __name__ == "__main__":
    main()
