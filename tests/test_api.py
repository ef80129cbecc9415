"""The front door: what comes in, what comes out, and that the protocol equals centralised SGD."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import taciturn
from taciturn.errors import BudgetExceeded

SMALL: dict[str, Any] = {
    "dataset": "breast-cancer",
    "mechanism": "none",
    "scheme": "clear",
    "seed": 1,
    "epochs": 2,
}

OWN: dict[str, Any] = {"id": "person", "label": "default", "mechanism": "none", "scheme": "clear"}


def people(rows: int = 80) -> pl.DataFrame:
    numbers = np.arange(rows)
    return pl.DataFrame(
        {
            "person": [f"p{n}" for n in numbers],
            "age": (numbers * 7 % 50 + 20).astype(float),
            "city": ["north", "south", None, "east"] * (rows // 4),
            "balance": np.sin(numbers * 1.7),
            "default": (numbers * 5 % 7 % 2).astype(int),
        }
    )


def without_clock(value: Any) -> Any:
    """A record without its seconds, wherever they stand."""
    if isinstance(value, dict):
        return {key: without_clock(item) for key, item in value.items() if key != "seconds"}
    return [without_clock(item) for item in value] if isinstance(value, list) else value


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alice_columns": "half"},
        {"alice_columns": 1},
        {"alice_columns": "mean radius,worst area", "intercept": True},
        {"alice_columns": "half", "l2": 0.1, "schedule": "inverse-sqrt", "decay": 0.1},
        {"batch_size": 1, "epochs": 1, "learning_rate": 0.01},
        {"batch_size": 1000, "l1": 0.01},
    ],
    ids=str,
)
def test_weights_equal_the_centralised_trainers_to_fixed_point(options):
    record = taciturn.train(**{**SMALL, **options}).to_dict()
    bound = record["weight_bound"]
    assert bound is None if "l1" in options else record["max_weight_difference"] < bound
    assert record["max_weight_difference"] < 2e-5
    assert record["test"]["auc"] == pytest.approx(record["centralised"]["auc"], abs=1e-9)


def test_pandas_polars_and_files_give_the_same_model(tmp_path):
    frame = people()
    path = tmp_path / "people.csv"
    frame.write_csv(path)
    frame.write_parquet(tmp_path / "people.parquet")
    options: dict[str, Any] = {
        "id": "person",
        "label": "default",
        "mechanism": "none",
        "scheme": "clear",
        "seed": 3,
        "alice_columns": "city,balance",
    }
    sources: list[object] = [
        frame,
        pd.DataFrame(frame.to_dict(as_series=False)),
        path,
        str(tmp_path / "people.parquet"),
    ]
    weights = [taciturn.train(source, **options).weights for source in sources]
    for other in weights[1:]:
        np.testing.assert_array_equal(weights[0]["alice"], other["alice"])
        np.testing.assert_array_equal(weights[0]["bob"], other["bob"])
    # A city but the first, none at all, and the balance.
    assert len(weights[0]["alice"]) == 4
    assert len(weights[0]["bob"]) == 2  # age, and the intercept that own data has by default


def test_columns_and_labels_come_as_arrays_frames_or_tables():
    frame = people().select("age", "balance")
    labels = people()["default"]
    options: dict[str, Any] = {"mechanism": "none", "scheme": "clear", "seed": 3}
    table = taciturn.FeatureTable.from_data(frame)
    sources: list[tuple[object, object]] = [
        (frame, labels),
        (frame.to_numpy(), labels.to_numpy()),
        (pd.DataFrame(frame.to_dict(as_series=False)), pd.Series(labels.to_list())),
        (table, taciturn.LabelTable.from_data(labels)),
    ]
    weights = [taciturn.train(*source, **options).weights["alice"] for source in sources]
    for other in weights[1:]:
        np.testing.assert_array_equal(weights[0], other)


# --- protected trainings -------------------------------------------------------------------------

PROTECTED: dict[str, dict[str, Any]] = {
    "add": {"mechanism": "add", "epsilon": 1.0},
    "add-continuous": {"mechanism": "add", "epsilon": 1.0, "noise": "continuous"},
    "mult": {"mechanism": "mult", "epsilon": 1.0},
    "mult-one-sided": {"mechanism": "mult", "epsilon": 1.0, "variant": "one-sided"},
    "mult-mean-one": {"mechanism": "mult", "epsilon": 1.0, "variant": "mean-one"},
    "hybrid": {"mechanism": "hybrid"},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROTECTED)
def test_a_seed_repeats_a_protected_training(name):
    first, second = (
        taciturn.train(**{**SMALL, **PROTECTED[name], "epochs": 1}).to_dict() for _ in range(2)
    )
    assert without_clock(first) == without_clock(second)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alice_columns": "half"},
        # The only one with empty batches, which learn nothing.
        {"batch_size": 1, "epochs": 1, "learning_rate": 0.01, "epsilon": 0.1},
        {"alice_columns": 1, "intercept": True},
        {"alice_columns": "half", "l2": 0.1, "schedule": "inverse-sqrt", "decay": 0.1},
    ],
    ids=str,
)
def test_hybrid_gives_the_centralised_weights_of_its_true_batches(options):
    record = taciturn.train(**{**SMALL, "mechanism": "hybrid", **options}).to_dict()
    assert record["max_weight_difference"] < record["weight_bound"]
    assert record["max_weight_difference"] < 2e-5
    batches = record["hidden_batches"]
    assert (batches["empty_batches"] > 0) == ("batch_size" in options)
    assert batches["mean_batch"] == pytest.approx(batches["expected_batch"], rel=0.2)


@pytest.mark.parametrize("columns", ["all", "half"])
@pytest.mark.parametrize("update", ["released", "true"])
def test_only_true_updates_of_weights_that_bob_has_make_the_total_infinite(columns, update):
    options = {**SMALL, **PROTECTED["add"], "alice_columns": columns, "bob_update": update}
    total = taciturn.train(**options).to_dict()["ledger"]["label_epsilon_total"]
    assert total == ("inf" if columns == "half" and update == "true" else 1.0)
    # No budget pays for an infinite total.
    if total == "inf":
        with pytest.raises(BudgetExceeded):
            taciturn.train(**options, budget=1.0)
    else:
        paid = taciturn.train(**options, budget=0.5).to_dict()["ledger"]
        assert paid["label_epsilon_total"] == 0.5
