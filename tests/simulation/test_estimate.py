"""Estimates against the trainings that they are of."""

from __future__ import annotations

from typing import Any

import pytest

import taciturn
from taciturn.data.tables import FeatureTable
from taciturn.jobs.train.estimate import estimate_cost
from taciturn.numerics.table_schedule import TableSchedule
from taciturn.privacy.solvers import resolved
from taciturn.protocol.agree import agree
from taciturn.protocol.messages import Role
from taciturn.protocol.terms import Terms
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings
from tests.protocol.parties import Tables
from tests.protocol.stars import Star, converse

# One pass more than is measured.
NEWTON: dict[str, Any] = {"solver": "newton", "passes": 4}
SGD: dict[str, Any] = {"solver": "sgd", "epochs": 1}
SEVERAL: dict[str, Any] = {"parties": 3, "alice_columns": 23}
RUNS: dict[str, dict[str, Any]] = {
    "none": {**SGD, "mechanism": "none", "scheme": "bfv"},
    "none-clear": {**SGD, "mechanism": "none", "scheme": "clear"},
    "none-several": {**SGD, **SEVERAL, "mechanism": "none"},
    "add": {**SGD, "mechanism": "add", "epsilon": 1.0},
    "add-continuous": {**SGD, "mechanism": "add", "epsilon": 1.0, "noise": "continuous"},
    "mult": {**SGD, "mechanism": "mult", "epsilon": 1.0},
    "hybrid": {**SGD, "mechanism": "hybrid", "scheme": "bfv"},
    "sealed-newton": {**NEWTON, "mechanism": "sealed"},
    "sealed-newton-revealed": {**NEWTON, "mechanism": "sealed", "reveal": True},
    "sealed-newton-fresh-keys": {**NEWTON, "mechanism": "sealed", "fresh_keys": True},
    "sealed-newton-clear": {**NEWTON, "mechanism": "sealed", "scheme": "clear"},
    "sealed-newton-several": {**NEWTON, **SEVERAL, "mechanism": "sealed"},
    "none-newton": {**NEWTON, "mechanism": "none", "scheme": "bfv"},
    "none-newton-clear": {**NEWTON, "mechanism": "none", "scheme": "clear"},
    "label-rr-newton": {
        **NEWTON,
        "mechanism": "label-rr",
        "epsilon": 1.0,
        "base_mechanism": "none",
    },
    "mutual-newton": {**NEWTON, "mechanism": "mutual", "alice_columns": "half"},
    "mutual-newton-all": {**NEWTON, "mechanism": "mutual", "alice_columns": "all"},
}
ROWS, COLUMNS = 20_000, 12
ROLES: tuple[Role, Role] = ("bob", "alice")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", RUNS)
def test_an_estimate_has_the_iterations_and_bytes_of_the_training(name):
    options = {"dataset": "breast-cancer", **RUNS[name]}
    estimate = taciturn.estimate(**options)
    record = taciturn.train(**options, seed=1).to_dict()
    assert estimate.iterations == record["iterations"]
    assert estimate.bytes_to_alice == pytest.approx(record["bytes_to_alice"], rel=0.01)
    assert estimate.bytes_to_bob == pytest.approx(record["bytes_to_bob"], rel=0.01)
    assert estimate.seconds > 0.0


def agreed(mechanism: str, scheme: str = "bfv") -> Terms:
    options = {"mechanism": mechanism, "solver": "newton", "scheme": scheme, "passes": 4}
    return agree(resolved(Settings.from_mapping(options)), COLUMNS, ROWS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("mechanism", "scheme"),
    [("sealed", "bfv"), ("sealed", "clear"), ("none", "bfv"), ("none", "clear")],
)
def test_some_rows_give_the_bytes_of_all(mechanism, scheme):
    terms = agreed(mechanism, scheme)
    whole, part = (
        estimate_cost(terms, ROWS, [COLUMNS], 1, most_values=values)
        for values in (ROWS * COLUMNS, ROWS * COLUMNS // 4)
    )
    assert part.iterations == whole.iterations == 4
    assert part.bytes_to_alice == pytest.approx(whole.bytes_to_alice, rel=0.05)
    assert part.bytes_to_bob == pytest.approx(whole.bytes_to_bob, rel=0.05)


def test_steps_over_blocks_cost_what_their_rows_do():
    rows = 6_500
    options = {"mechanism": "mutual", "solver": "newton", "scheme": "bfv", "passes": 7}
    terms = agree(resolved(Settings.from_mapping(options)), 2, rows)
    assert TableSchedule(rows, 3, 7).blocks
    estimate = estimate_cost(terms, rows, [2], 1)
    tables = Tables.make(rows=rows, alice=2, bob=1)
    talk = converse(Star.of(tables, terms.agreement, 1, terms.scheme), whole=True)
    to_alice, to_bob = (sum(len(sent) for sent in talk.sent(role)) for role in ROLES)
    assert estimate.bytes_to_alice == pytest.approx(to_alice, rel=0.05)
    assert estimate.bytes_to_bob == pytest.approx(to_bob, rel=0.05)


def test_made_up_columns_cost_what_real_ones_do():
    real = FeatureTable.from_data(KeyedEntropy.from_seed(1).uniform((600, COLUMNS)) * 7.0)
    by_table, by_number = (
        estimate_cost(agreed("sealed"), 600, [columns], 1) for columns in (real, COLUMNS)
    )
    assert by_table.bytes_to_alice == pytest.approx(by_number.bytes_to_alice, rel=0.001)
    assert by_table.bytes_to_bob == pytest.approx(by_number.bytes_to_bob, rel=0.001)
