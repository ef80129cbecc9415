"""Small trainings as Bob sees them, made once, and his view of scores that say nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.protocol.bob.observations import BatchScored, BobObservation, DirectionScored
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, load_raw
from taciturn_audit.column_attacks.base import ColumnAttack, KnownRows
from taciturn_audit.column_audit import bob_view
from taciturn_audit.columns import Truth, judge_columns
from taciturn_audit.results.columns import ColumnScore
from taciturn_audit.views.bob_view import BobView


@dataclass(frozen=True)
class Run:
    """A training, what its observer saw of Bob while it happened, and his view of it."""

    outcome: Outcome
    live: tuple[BobObservation, ...]
    view: BobView

    @property
    def hers(self) -> FloatArray:
        return self.outcome.data.alice_train.values

    @property
    def truth(self) -> Truth:
        return Truth.from_table(self.outcome.data.alice_train)

    def known(self, count: int) -> KnownRows:
        rows = KeyedEntropy.from_seed(5).permutation(len(self.hers))[:count]
        return KnownRows(rows, self.hers[rows])

    def score(self, attack: ColumnAttack, count: int, view: BobView | None = None) -> ColumnScore:
        known = self.known(count)
        estimate = attack.estimate(view or self.view, known)
        return judge_columns(attack.name, estimate, self.truth, known)

    @property
    def hidden(self) -> BobView:
        """The same view with the scores of one row under another's: they say nothing of a row."""
        entropy = KeyedEntropy.from_seed(6)
        order = entropy.permutation(len(self.hers))
        view = replace(self.view, predictions=None)
        if self.view.predictions is not None:
            view = replace(view, predictions=self.view.predictions[order])
        events = tuple(_hidden(event, order) for event in self.view.observations)
        view.__dict__["observations"] = events
        return view


def _hidden(event: BobObservation, order: np.ndarray) -> BobObservation:
    if isinstance(event, DirectionScored):
        return replace(event, scores=event.scores[order])
    assert isinstance(event, BatchScored)
    return replace(event, rows=order[event.rows])


@cache
def people(rows: int = 800) -> pl.DataFrame:
    """A made-up table: a category, a yes or no, a number of children, and amounts."""
    entropy = KeyedEntropy.from_seed(9)
    places = np.array(["north", "south", "east", "west", "abroad"])
    amount = entropy.fork("amount").uniform((rows, 2))
    return pl.DataFrame(
        {
            "place": places[entropy.fork("place").integers(5, rows).astype(int)],
            "owner": np.where(entropy.fork("owner").uniform((rows,)) < 0.3, "yes", "no"),
            "children": entropy.fork("children").integers(4, rows).astype(float),
            "income": amount[:, 0],
            "debt": amount[:, 1],
            "label": (entropy.fork("label").uniform((rows,)) < amount[:, 0]).astype(int),
        }
    )


@cache
def run(**options: Any) -> Run:
    """A training without encryption: on breast-cancer, or on ``people`` where a label is named."""
    table = people(options.pop("rows", 800)) if "label" in options else None
    source = {} if "label" in options else {"dataset": "breast-cancer"}
    settings = resolved(Settings.from_mapping({"scheme": "clear", "seed": 3, **source, **options}))
    seen: list[BobObservation] = []

    def note(event: object) -> None:
        if isinstance(event, BobObservation):
            seen.append(event)

    entropy = RunEntropy.for_seed(settings.seed)
    outcome = simulate_training(settings, load_raw(settings, table), keep=True, observe=note)
    return Run(outcome, tuple(seen), bob_view(outcome, entropy))


def sgd(mechanism: str = "none", **options: Any) -> Run:
    return run(mechanism=mechanism, solver="sgd", **{"alice_columns": 4, "epochs": 8, **options})


def newton(mechanism: str = "sealed", **options: Any) -> Run:
    return run(mechanism=mechanism, solver="newton", **{"alice_columns": 4, "passes": 5, **options})


def of_people(columns: str, mechanism: str = "sealed", **options: Any) -> Run:
    """A training on ``people``, of which Alice has these columns."""
    return run(label="label", alice_columns=columns, mechanism=mechanism, seed=2, **options)
