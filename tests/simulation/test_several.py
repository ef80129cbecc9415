"""Several Alices in one process: the centralised model, refusals, recordings and records."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import taciturn
from taciturn.api import TrainResult
from taciturn.engine.transcript import Transcript
from taciturn.jobs.train.disclosure_text import disclosure_text as disclosure
from taciturn.jobs.train.exposure import column_exposure
from taciturn.jobs.train.simulation import simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.protocol.bob.forecast import forecast
from taciturn.settings.schema import Settings
from taciturn.simulation import RunEntropy, load_raw

ALICES = [1, 2, 4, 8]
# Each with how far its weights may be from those of centralised training, whoever has the columns.
BATCHES: dict[str, tuple[dict[str, Any], float]] = {
    "none": ({"mechanism": "none"}, 1e-5),
    # With next to no noise the model is the same.
    "label-rr": ({"mechanism": "label-rr", "epsilon": 40.0}, 1e-5),
    "add": ({"mechanism": "add", "epsilon": 1e5}, 1e-3),
    "mult": ({"mechanism": "mult", "epsilon": 1e9, "b1": 1e-4, "variant": "mean-one"}, 1e-4),
}
WHOLE: dict[str, dict[str, Any]] = {
    "none": {"mechanism": "none"},
    "sealed": {"mechanism": "sealed"},
    "sealed-revealed": {"mechanism": "sealed", "reveal": True},
    "label-rr": {"mechanism": "label-rr", "epsilon": 40.0},
    "label-rr-sealed": {"mechanism": "label-rr", "epsilon": 40.0, "base_mechanism": "sealed"},
}
# Where Bob has columns too, and where not: each is met by half of the cases.
COLUMNS = {1: "half", 2: "all", 4: "equal", 8: "all"}


@cache
def trained(parties: int, **options: Any) -> TrainResult:
    usual = {"dataset": "breast-cancer", "scheme": "clear", "seed": 1}
    usual["alice_columns"] = COLUMNS.get(parties, "all")
    return taciturn.train(**{**usual, "parties": parties, **options})


def record(parties: int, **options: Any) -> dict[str, Any]:
    return trained(parties, **options).to_dict()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("parties", ALICES)
@pytest.mark.parametrize("name", BATCHES)
def test_the_model_of_batches_is_that_of_centralised_training(name, parties):
    options, tolerance = BATCHES[name]
    result = record(parties, epochs=2, **options)
    assert result["max_weight_difference"] < tolerance
    assert abs(result["test"]["auc"] - result["centralised"]["auc"]) < 2e-3
    if result["weight_bound"] is not None:
        assert result["max_weight_difference"] < result["weight_bound"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("parties", ALICES)
@pytest.mark.parametrize("name", WHOLE)
def test_the_model_of_whole_tables_is_the_optimum(name, parties):
    options = WHOLE[name]
    # Each Alice whitens her own table: several need more passes than one to the same distance.
    result = record(parties, solver="newton", passes=20, **options)
    assert abs(result["optimum"]["gap"]) < 1e-4
    # Of one Alice the penalty comes from differences of scores, which leave it fewer digits.
    assert result["max_weight_difference"] < (0.1 if parties == 1 else 5e-3)
    assert abs(result["test"]["auc"] - result["centralised"]["auc"]) < 1e-3


def test_after_few_passes_it_is_where_the_same_search_in_clear_is():
    """Also where the optimum is far: the model in one place takes the same way."""
    result = record(4, mechanism="sealed", passes=3)
    assert result["max_weight_difference"] < 3e-3


@pytest.mark.parametrize("mechanism", ["none", "sealed"])
def test_one_party_is_what_nothing_said_of_parties_is(mechanism, tmp_path):
    options: dict[str, Any] = {"dataset": "breast-cancer", "seed": 1, "scheme": "clear"}
    options |= {"mechanism": mechanism, "epochs" if mechanism == "none" else "passes": 1}
    runs = []
    for name, given in (("without", options), ("with", {**options, "parties": 1})):
        target = tmp_path / name
        result = taciturn.train(**given, record=target).to_dict()
        result.pop("seconds")
        runs.append((json.dumps(result), Transcript.load(target).records))
    assert runs[0] == runs[1]
    assert '"parties"' not in runs[0][0]


# --- records -------------------------------------------------------------------------------------


def test_what_is_opened_is_counted_in_sums():
    one, four = (record(n, mechanism="sealed", passes=2, alice_columns="all") for n in (1, 4))
    assert one["ledger"] == four["ledger"]


def test_traffic_is_that_of_all_links():
    one, two, four = (
        record(n, mechanism="add", epsilon=1.0, epochs=2, alice_columns="all") for n in (1, 2, 4)
    )
    for way in ("bytes_to_alice", "bytes_to_bob"):
        assert 1.9 * one[way] < two[way] < 3 * one[way]
        assert 1.9 * two[way] < four[way] < 3 * two[way]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        *(("sgd", BATCHES[name][0]) for name in ("none", "label-rr", "add")),
        *(("newton", WHOLE[name]) for name in ("none", "sealed-revealed", "label-rr")),
    ],
    ids=str,
)
def test_the_forecast_of_the_ledger_is_the_ledger(solver, options):
    outcome = trained(2, solver=solver, **options).outcomes[0]
    ledger = forecast(outcome.terms, outcome.result.data.rows, outcome.result.data.bob_columns)
    expected = replace(outcome.result.ledger, columns=None)
    assert ledger.statement() == expected


# --- coins and recordings ------------------------------------------------------------------------


def test_each_alice_has_coins_and_a_key_of_her_own():
    entropy = RunEntropy.for_seed(1)
    pins = entropy.pins(["alice-1", "alice-2"])
    assert pins is not None
    assert len({*pins.values(), entropy.alice.key.hex()}) == 3
    assert entropy.of_alice("alice-1").key != entropy.of_alice("alice-2").key
    assert entropy.of_alice("") is entropy.alice
    assert entropy.pins([""]) is None


def test_canary_runs_permute_the_rows_of_all_alices_together():
    settings = resolved(
        Settings.from_mapping(
            {"dataset": "breast-cancer", "mechanism": "none", "scheme": "clear", "parties": 3}
            | {"permute_rows": True, "seed": 1, "epochs": 1}
        )
    )
    outcome = simulate_training(settings, load_raw(settings))
    joined = np.hstack([part.values for part in outcome.data.alice_train_parts.values()])
    assert np.array_equal(joined, outcome.data.alice_train.values)


def test_what_bob_receives_of_several_is_said_of_all():
    outcome = trained(2, mechanism="sealed", solver="newton").outcomes[0]
    assert "Alices" in disclosure(outcome.terms, 455).bob
    exposed = column_exposure(outcome.terms, 455, outcome.data.alice_train)
    assert "2 Alices" in exposed.warning
