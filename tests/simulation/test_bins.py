"""Bins inside every mechanism: the centralised model of the one-hot table, and who learns what.

Tables are made a second time by pandas, which knows nothing of our rules.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import taciturn
from taciturn.api import TrainResult
from taciturn.privacy.registry import MECHANISMS
from taciturn.privacy.solvers import resolved
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, arrange, load_raw

ROWS = 240
EDGES = [30, 45, 60]
# Quantiles, given edges, and a bin of missing values, on both sides.
BINNED: dict[str, Any] = {
    "bins": {"age": EDGES, "tenure": 3, "income": 4, "debt": [0]},
    "impute": "bin",
    "alice_columns": "age,tenure",
}
SGD: dict[str, Any] = {"solver": "sgd", "epochs": 2, "batch_size": 40, "learning_rate": 0.1}
# Each with how far its weights may be from those of the centralised training.
MECHANISM_SETTINGS: dict[str, tuple[dict[str, Any], float]] = {
    "none": ({"mechanism": "none"}, 1e-5),
    "sealed": ({"mechanism": "sealed"}, 2e-2),
    "mutual": ({"mechanism": "mutual"}, 2e-2),
    # With next to no noise the model is the same.
    "label-rr": ({"mechanism": "label-rr", "epsilon": 40.0}, 1e-5),
    "label-rr-sealed": (
        {"mechanism": "label-rr", "epsilon": 40.0, "base_mechanism": "sealed"},
        2e-2,
    ),
    "add": ({"mechanism": "add", "epsilon": 1e5}, 1e-3),
    "mult": ({"mechanism": "mult", "epsilon": 1e9, "b1": 1e-4, "variant": "mean-one"}, 1e-4),
    "hybrid": ({"mechanism": "hybrid", "epsilon": 3.0, "batch_size": 4}, 1e-3),
}


def people() -> pl.DataFrame:
    draw = np.random.default_rng(7)
    age, tenure = draw.uniform(18, 80, ROWS), draw.exponential(5, ROWS)
    income, debt = draw.normal(50, 20, ROWS), draw.normal(0, 1, ROWS)
    score = (age - 45) / 15 - tenure / 5 + (income - 50) / 20 + debt
    label = draw.uniform(size=ROWS) < 1 / (1 + np.exp(-score))
    columns = {"age": age, "tenure": tenure, "income": income, "debt": debt}
    # Nobody's tenure is missing: its bin of missing values is a column of zeros.
    gaps = {name: draw.uniform(size=ROWS) < 0.1 for name in ("age", "income")}
    frame = {
        name: [
            None if gaps.get(name, [False] * ROWS)[row] else float(values[row])
            for row in range(ROWS)
        ]
        for name, values in columns.items()
    }
    return pl.DataFrame({**frame, "late": label.astype(int)})


def options(**changes: Any) -> dict[str, Any]:
    return {"label": "late", "scheme": "clear", "seed": 3, **BINNED, **changes}


@cache
def trained(name: str, scheme: str = "clear") -> TrainResult:
    steps = {} if name in ("sealed", "mutual", "label-rr-sealed") else SGD
    chosen = options(**{**steps, **MECHANISM_SETTINGS[name][0]}, scheme=scheme)
    return taciturn.train(data=people(), **chosen)


def one_hot(values: pd.Series, edges: list[float]) -> pd.DataFrame:
    """A column per interval but the first, and one of missing values: by pandas alone."""
    cut = pd.cut(values, [-np.inf, *edges, np.inf], right=False)
    return pd.concat([pd.get_dummies(cut).iloc[:, 1:], values.isna()], axis=1).astype(float)


def test_the_tables_are_the_one_hot_ones_that_pandas_makes():
    raw = load_raw(Settings.from_mapping(options()), people())
    data = arrange(resolved(Settings.from_mapping(options())), raw, RunEntropy.for_seed(3).data)
    everybody = pd.DataFrame(people().to_dict(as_series=False), dtype=float)
    for ids, tables in (
        (data.labels_train.ids, (data.alice_train, data.bob_train)),
        (data.labels_test.ids, (data.alice_test, data.bob_test)),
    ):
        rows = everybody.iloc[[int(name) for name in ids.series]]
        train = everybody.iloc[[int(name) for name in data.labels_train.ids.series]]
        edges: dict[str, list[float]] = {"age": [30, 45, 60], "debt": [0]}
        for name, count in (("tenure", 3), ("income", 4)):
            shares = np.arange(1, count) / count
            # Of what is there, with the ends held as winsorising holds them, which moves no edge.
            edges[name] = np.quantile(train[name].dropna(), shares).tolist()
        for table, names in zip(tables, (("age", "tenure"), ("income", "debt")), strict=True):
            made = pd.concat([one_hot(rows[name], edges[name]) for name in names], axis=1)
            free = table.columns[len(made.columns) :]
            np.testing.assert_array_equal(
                table.values[:, : len(made.columns)], made.to_numpy(), err_msg=str(free)
            )


@pytest.mark.parametrize("name", MECHANISM_SETTINGS)
def test_the_model_is_that_of_centralised_training_on_the_one_hot_table(name):
    result, tolerance = trained(name).to_dict(), MECHANISM_SETTINGS[name][1]
    # Three edges and a bin of missing values; three intervals and one; likewise at Bob.
    assert (result["alice_columns"], result["bob_columns"]) == (7, 6)
    assert result["max_weight_difference"] < tolerance
    assert abs(result["test"]["auc"] - result["centralised"]["auc"]) < 5e-3


def test_every_mechanism_is_among_them():
    assert {chosen["mechanism"] for chosen, _ in MECHANISM_SETTINGS.values()} == {*MECHANISMS}
