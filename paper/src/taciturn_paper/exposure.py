"""Exposure of Alice's columns by the scores of whole-table training, with no row known.

Two made-up tables of 2,500 people: 20 numeric columns at Alice, or three categories and two counts
(19 columns once they are indicators). A training with ``sealed`` and the defaults opens its scores;
the attacks ``lattice`` and ``integer-columns`` run on them as they are, and on the same scores with
uniform noise, to see what noise would be worth.

Run ``python -m taciturn_paper.exposure``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from taciturn.arrays import FloatArray
from taciturn.families.binomial import sigmoid
from taciturn.jobs.train.simulation import simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, load_raw
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.integer_columns import IntegerColumnsAttack
from taciturn_audit.column_attacks.lattice import LatticeAttack
from taciturn_audit.column_audit import bob_view
from taciturn_audit.columns import Truth, controls, judge_columns
from taciturn_audit.rehearsal import random_table
from taciturn_audit.results.columns import ColumnScore
from taciturn_audit.views.bob_view import BobView

ROWS, BOBS = 2500, 3
NOISES = (0.0, 1e-4, 1e-2, 1e-1)
SEED = 1
_LEVELS = {"region": 8, "product": 6, "channel": 6}
_COUNTS = {"visits": 2.0, "calls": 6.0}


@dataclass(frozen=True)
class Exposed:
    """A training as Bob saw it, and the columns that he saw scores of."""

    view: BobView
    truth: Truth

    @classmethod
    def train(
        cls,
        frame: pl.DataFrame,
        mechanism: str = "sealed",
        passes: int | None = None,
        parties: int = 1,
    ) -> Exposed:
        """Trains on a table whose columns of Bob's begin with ``own``."""
        hers = [name for name in frame.columns if not name.startswith("own") and name != "label"]
        share = -(-len(hers) // parties)
        parts = (hers[begin : begin + share] for begin in range(0, len(hers), share))
        settings = resolved(
            Settings.from_mapping(
                {
                    "label": "label",
                    "alice_columns": ";".join(map(",".join, parts)),
                    "mechanism": mechanism,
                    "scheme": "clear",
                    "seed": SEED,
                    "passes": passes,
                    "parties": parties,
                }
            )
        )
        outcome = simulate_training(settings, load_raw(settings, frame), keep=True)
        view = bob_view(outcome, RunEntropy.for_seed(SEED))
        return cls(view, Truth.from_table(outcome.data.alice_train))

    def noisy(self, noise: float) -> BobView:
        """The view with uniform noise of this size on every score."""
        view = replace(self.view)
        entropy = KeyedEntropy.from_seed(SEED).fork("noise")
        view.__dict__["observations"] = tuple(
            replace(event, scores=event.scores + noise * (2.0 * uniform - 1.0))
            for event in self.view.directions
            for uniform in [entropy.uniform(event.scores.shape)]
        )
        return view

    def scores(self, view: BobView) -> Iterator[ColumnScore]:
        """Success of the attacks that need neither a known row nor a combination of columns."""
        nothing = KnownRows.none(view.columns)
        for attack in (LatticeAttack(), IntegerColumnsAttack()):
            start = time.process_time()
            estimate = attack.estimate(view, nothing)
            seconds = time.process_time() - start
            yield judge_columns(attack.name, estimate, self.truth, nothing, seconds)

    @property
    def control(self) -> float:
        """The better control: what is known without a score."""
        known = controls(self.truth, self.view.features, self.view.labels)
        return max(one.recovered for one in known)


def numeric_table(columns: int = 20, rows: int = ROWS) -> pl.DataFrame:
    """Correlated numbers: one skewed, one rounded, the others normal."""
    plain = random_table(rows, columns + BOBS).frame.to_numpy()
    own, noise = plain[:, :BOBS], plain[:, BOBS:]
    values = noise + 0.4 * np.roll(noise, 1, axis=1) - 0.3 * np.roll(noise, 2, axis=1)
    values[:, 0], values[:, 1] = np.exp(values[:, 0] / 2.0), np.rint(10.0 * values[:, 1] + 40.0)
    frame = pl.from_numpy(values, schema=[f"x{place}" for place in range(columns)])
    return _with_bob(frame, own, noise[:, 0] - 0.5 * noise[:, columns // 2])


def category_table(rows: int = ROWS) -> pl.DataFrame:
    """Three categories whose levels are the rarer the later, and two counts."""
    entropy = KeyedEntropy.from_seed(7)
    columns: dict[str, object] = {}
    for name, levels in _LEVELS.items():
        # A square makes low levels the common ones.
        numbers = (levels * entropy.fork(name).uniform((rows,)) ** 1.5).astype(int)
        columns[name] = [f"level {number}" for number in numbers]
    for name, mean in _COUNTS.items():
        # Of a hundred chances each: nearly Poisson.
        columns[name] = (entropy.fork(name).uniform((rows, 100)) < mean / 100.0).sum(axis=1)
    own = random_table(rows, BOBS).frame.to_numpy()
    frame = pl.DataFrame(columns)
    first = (frame["region"] == "level 0").to_numpy().astype(float)
    return _with_bob(frame, own, first - 0.5 + 0.1 * (frame["visits"].to_numpy() - 2.0))


def _with_bob(frame: pl.DataFrame, bob_columns: FloatArray, effect: FloatArray) -> pl.DataFrame:
    chance = sigmoid(effect + bob_columns @ np.array([1.0, -0.5, 0.3]))
    labels = KeyedEntropy.from_seed(8).uniform((len(bob_columns),)) < chance
    bobs = {f"own{place}": bob_columns[:, place] for place in range(BOBS)}
    return frame.with_columns(**bobs, label=pl.Series(labels.astype(int)))


def main() -> None:
    """Prints the share of her values that each attack recovers, by noise."""
    table = Table(title=f"values recovered with no known row, sealed, seed {SEED}")
    for heading in ("columns at Alice", "attack", "control", *(f"noise {one:g}" for one in NOISES)):
        table.add_column(heading)
    for name, frame in (
        ("20 numeric", numeric_table()),
        ("17 indicators, 2 counts", category_table()),
    ):
        run = Exposed.train(frame)
        by_noise = [list(run.scores(run.noisy(noise))) for noise in NOISES]
        for place, first in enumerate(by_noise[0]):
            shares = [f"{100 * scores[place].recovered:.1f} %" for scores in by_noise]
            table.add_row(name, first.name, f"{100 * run.control:.1f} %", *shares)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
