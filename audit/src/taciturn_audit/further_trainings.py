"""Further trainings of an audited table: other penalties, and inputs that a side chooses.

They follow the protocol in everything but the table that a side brings, and run unencrypted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable
from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.jobs.study.simulation import SimulatedPlan
from taciturn.jobs.study.worker import without_fold
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy

_PENALTIES = (1e-2, 1e-1, 1.0)
_PASS_PARTS = (0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class FurtherTrainings:
    """Trainings of the tables of one ``outcome`` with changed settings or changed columns."""

    settings: Settings
    outcome: Outcome
    entropy: RunEntropy
    callbacks: Callbacks = SILENT

    def several_models(self) -> Iterator[Outcome]:
        """Trainings of the same rows with four penalties, and three numbers of passes each.

        The last number of passes and the first penalty are the outcome's own.
        """
        agreed = self.outcome.terms.agreement
        whole = self.outcome.terms.whole_table
        for penalty in (agreed.l2, *_PENALTIES):
            for part in _PASS_PARTS if whole else _PASS_PARTS[-1:]:
                passes = {"passes": max(1, round(part * agreed.rounds))} if whole else {}
                yield self._train(self.outcome.data, l2=penalty, **passes)

    def label_column(self, row: int) -> Outcome:
        """Training with one column of Bob's: the label, but for one row."""
        data = _one_bob_column(self.outcome.data)
        values = data.bob_train.values.copy()
        values[:, 0] = np.where(data.labels_train.values == 1, 1.0, -1.0)
        values[row, 0] *= -1.0
        return self._train(replace(data, bob_train=_with_values(data.bob_train, values)))

    def one_positive(self, row: int) -> Outcome:
        """Training with one column of Bob's, and label 1 for one row alone."""
        data = _one_bob_column(self.outcome.data)
        values = np.zeros_like(data.labels_train.values)
        values[row] = 1
        return self._train(replace(data, labels_train=replace(data.labels_train, values=values)))

    def indicators(self, rows: IndexArray) -> Outcome:
        """Training with one column of Alice's for each of these rows, 1 there and else 0."""
        data, names = self.outcome.data, tuple(f"row {row}" for row in rows)
        inside, outside = (
            np.zeros((table.rows, len(rows))) for table in (data.alice_train, data.alice_test)
        )
        inside[rows, np.arange(len(rows))] = 1.0
        train = FeatureTable(data.alice_train.ids, names, inside)
        test = FeatureTable(data.alice_test.ids, names, outside)
        return self._train(replace(data, alice_train=train, alice_test=test))

    def weights(self, alice_values: FloatArray, number: int) -> FloatArray:
        """Both sides' weights of a training with these values of Alice's columns."""
        data = self.outcome.data
        table = _with_values(data.alice_train, alice_values)
        trained = self._train(replace(data, alice_train=table), number)
        return np.concatenate([trained.alice_weights, trained.bob_weights])

    def _train(self, data: VerticalData, number: int = 0, **changes: object) -> Outcome:
        settings = self.settings.model_copy(
            update={"scheme": "clear", "key_bits": None, "compare_optimum": False, **changes}
        )
        # The rows stay split as they are; masks and noise are drawn anew.
        name = f"further training {number}"
        entropy = replace(
            self.entropy, alice=self.entropy.alice.fork(name), bob=self.entropy.bob.fork(name)
        )
        observe = self.callbacks.observe
        return simulate_training(settings, data, entropy=entropy, observe=observe)


def _with_values(table: FeatureTable, values: FloatArray) -> FeatureTable:
    return FeatureTable(table.ids, table.columns, values)


def _one_bob_column(data: VerticalData) -> VerticalData:
    """The tables with Bob's first column alone, and his intercept."""
    names = data.bob_train.columns
    kept = (names[0], *names[len(names) - data.bob_train.free :])
    train, test = data.bob_train.select(kept), data.bob_test.select(kept)
    return replace(data, bob_train=train, bob_test=test)


def fold_scores(plan: SimulatedPlan, fold: int) -> FloatArray:
    """Scores of a fold's rows that a study opens to Bob, one column for each combination.

    Combinations whose trainings open no score have no column.
    """
    data, columns = without_fold(plan.data, plan.folds, fold), list[FloatArray]()
    for model in plan.models:
        if model.fold != fold:
            continue
        settings = plan.settings[model.point.number]
        settings = settings.model_copy(update={"compare_optimum": False})
        summed = model.terms.summed
        trained = simulate_training(settings, data, entropy=plan.entropy, summed=summed)
        if trained.held_out_scores is not None:
            columns.append(trained.held_out_scores)
    return np.array(columns).reshape(-1, data.labels_test.rows).T
