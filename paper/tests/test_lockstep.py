"""Trainings side by side are the protocol's, bit for bit."""

from __future__ import annotations

from typing import Any, cast

import pytest

import taciturn
from taciturn.errors import ConfigError
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.registry import mechanism
from taciturn.protocol.agree import agree
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn_paper.cleartext import train_side_by_side, train_with_noise
from taciturn_paper.utility import Cell, Rows, judge
from tests.expected import refused

CELLS = [
    Cell("add", 0.01),
    Cell("mult", 10.0, "printed", 0.1, 10.0),
    Cell("mult", 0.1, "one-sided", 0.5, 0.01),
    Cell("add", 10.0),
    Cell("mult", 1.0, "mean-one", 2.0**-6, 1.0),
    Cell("mult", 10.0, "mean-one", 1.0, 100.0),
]
DATASETS = ("breast-cancer", "sklearn-digits", "census-income", "give-me-some-credit")


def terms_of(rows: Rows, cell: Cell, **options: object) -> Terms:
    return agree(rows.settings.model_copy(update={**cell.options, **options}), *rows.train.shape)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "dataset",
    # The last one is as census-income, with more rows.
    [*DATASETS[:-1], pytest.param(DATASETS[-1], marks=pytest.mark.slow)],
)
def test_every_training_gets_the_weights_that_it_gets_alone(dataset, dataset_dir, monkeypatch):
    epochs = 3
    if dataset in DATASETS[2:]:
        monkeypatch.setenv("TACITURN_DATA", str(dataset_dir(dataset)))
        epochs = 1
    rows = Rows.load(dataset, 5)
    cells = CELLS if epochs > 1 else CELLS[:3]
    terms = [terms_of(rows, cell, epochs=epochs) for cell in cells]
    methods = [cast(ResidueMechanism[Any], mechanism(term.agreement)) for term in terms]
    bob = KeyedEntropy.from_seed(9)
    plan = terms[0].plan(bytes(32), len(rows.train.labels))
    train = (rows.train.features, rows.train.labels, plan)
    together = train_side_by_side(*train, terms[0], methods, bob)
    for weights, term, method in zip(together, terms, methods, strict=True):
        alone = train_with_noise(*train, term, method, bob)
        assert weights.tobytes() == alone.tobytes()


@pytest.mark.slow  # an experiment
def test_a_judged_cell_has_the_figures_of_the_same_training_by_command():
    rows = Rows.load("breast-cancer", 3)
    cells = [Cell("none"), *CELLS]
    for cell, score in zip(cells, judge(rows, cells), strict=True):
        run = taciturn.train(dataset="breast-cancer", seed=3, scheme="clear", **cell.options)
        test = run.to_dict()["test"]
        assert (score.cell, score.accuracy, score.auc) == (cell, test["accuracy"], test["auc"])


def test_a_penalty_is_refused():
    rows = Rows.load("breast-cancer", 1)
    terms = terms_of(rows, CELLS[0], l2=0.1)
    plan = terms.plan(bytes(32), len(rows.train.labels))
    method = cast(ResidueMechanism[Any], mechanism(terms.agreement))
    with refused(ConfigError):
        train_side_by_side(
            rows.train.features, rows.train.labels, plan, terms, [method], KeyedEntropy.from_seed(1)
        )
