"""An audit of several Alices: seats and coalitions, canaries, Bob's sum, records and reports."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from audit.tests.column_attacks.runs import newton
from audit.tests.views.several import NEWTON, Several, several

import taciturn
from taciturn.__main__ import run as run_command
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.errors import ConfigError
from taciturn.rng import KeyedEntropy
from taciturn_audit.adversaries import members
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.discrete import DiscreteAttack
from taciturn_audit.column_audit import examine_columns
from taciturn_audit.columns import Truth, judge_columns
from taciturn_audit.distinguishing_game import distinguish
from taciturn_paper.exposure import Exposed, numeric_table
from tests.expected import refused
from tests.protocol.parties import Tables, agreement
from tests.protocol.stars import Star, converse

SMALL: dict[str, Any] = {
    "dataset": "breast-cancer",
    "mechanism": "none",
    "scheme": "clear",
    "seed": 1,
    "epochs": 2,
    "batch_size": 16,
    "parties": 3,
}
NAMES = ["alice-1", "alice-2", "alice-3"]


# --- seats --------------------------------------------------------------------------------------


def test_alice_and_both_are_all_alices_and_names_are_some():
    assert members("alice", NAMES) == members("both", NAMES) == tuple(NAMES)
    assert members("alice-2", NAMES) == ("alice-2",)
    assert members("alice-3+alice-1", NAMES) == ("alice-1", "alice-3")
    assert members("alice", []) == ()


@pytest.mark.parametrize(
    ("seat", "names"),
    [
        ("alice-4", "alice-4"),
        ("alice-1+bob", "bob"),
        ("alice-1+", ""),
        ("alice-1+alice-1", "alice-1+alice-1"),
        ("carol", "alice, bob, both, alice-1, alice-2, alice-3"),
    ],
)
def test_a_seat_that_nobody_has_is_refused_and_those_that_there_are_are_named(seat, names):
    with refused(ConfigError, setting="seat", names=names):
        taciturn.audit(**SMALL, seat=seat)


def test_one_alice_has_no_number_and_known_rows_are_no_coalitions():
    with refused(ConfigError, setting="seat", names="alice, bob, both") as raised:
        taciturn.audit(**{**SMALL, "parties": 1}, seat="alice-1")
    assert "alice-2" not in str(raised.value)
    with refused(ConfigError, setting="known_rows"):
        taciturn.audit(**SMALL, seat="alice-1+alice-2", known_rows=3)


# --- sealed -------------------------------------------------------------------------------------


@pytest.mark.slow  # some seconds each
@pytest.mark.parametrize("places", [(0,), (0, 1)])
def test_ciphertexts_tell_a_coalition_nothing(places):
    made = several(2, columns=6, mechanism="sealed", scheme="bfv", key_bits=128, **NEWTON)
    look = distinguish(made.coalition(*places), KeyedEntropy.from_seed(3), trainings=62)
    assert not look.noticed
    assert look.columns == 3 * len(places)
    assert look.repeated == 0


# --- Bob's seat ----------------------------------------------------------------------------------


def test_bob_tells_all_columns_from_the_sum_of_passes():
    one = newton("sealed", parties=2)
    findings = examine_columns(one.view, one.truth, KeyedEntropy.from_seed(2), known_rows=4)
    best = {score.name: score for score in findings.attacks}
    assert best["anchored"].recovered > 0.99
    assert best["gram"].recovered > 0.99
    assert one.view.widths == (2, 2)


def test_bob_reconstructs_the_joined_columns():
    """With no known row, and not knowing whose a column is."""
    run = Exposed.train(numeric_table(10), parties=2)
    lattice = next(run.scores(run.view))
    assert run.view.widths == (5, 5)
    assert lattice.recovered > 0.85


@pytest.mark.parametrize(("mechanism", "solver"), [("none", "sgd"), ("sealed", "newton")])
def test_single_alices_are_at_chance_in_an_audit_of_bobs_seat(mechanism, solver):
    passes = {"passes": 5} if solver == "newton" else {}
    options = {**SMALL, "mechanism": mechanism, "solver": solver, "parties": 2, **passes}
    if solver == "newton":
        del options["epochs"], options["batch_size"]
    record = taciturn.audit(**options, seat="bob", canary=False).to_dict()
    tried = record["bob_seat"]["separation"]
    assert not tried["noticed"]
    assert all(fault["noticed"] for fault in tried["faults"])
    assert record["bob_seat"]["attacks"]


# --- reports and commands -----------------------------------------------------------------------


def test_the_command_takes_a_coalition(capsys):
    command = "audit --dataset breast-cancer --mechanism none --scheme clear --seed 1 --epochs 1"
    assert (
        run_command(
            [*command.split(), "--parties=3", "--seat=alice-1+alice-3", "--no-canary", "--json"]
        )
        == 0
    )
    record = json.loads(capsys.readouterr().out)
    assert (record["seat"], record["pooled"]) == ("alice-1+alice-3", ["alice-1", "alice-3"])
    assert [one["columns"] for one in record["parties"]] == [10, 10, 10]
    assert "bob_seat" not in record


@pytest.mark.parametrize("alices", [1, 2])
@pytest.mark.parametrize(
    ("options", "least"),
    # Scores of levels are carried along as if they were of one category.
    [({"batch_size": 30, "epochs": 8}, 0.75), (NEWTON, 0.99)],
    ids=["batches", "passes"],
)
def test_equal_sums_are_equal_rows_of_all_alices(options, least, alices):
    """A category of three levels at one Alice, and one of four at the other: twelve kinds."""
    levels = KeyedEntropy.from_seed(7).integers(12, 400).astype(np.int64)
    first, second = levels // 4, levels % 4
    names = ("size=1", "size=2", "place=1", "place=2", "place=3")
    values = [first == 1, first == 2, second == 1, second == 2, second == 3]
    hers = FeatureTable.from_data(np.column_stack(values).astype(float), columns=names)
    labels = LabelTable.from_data((levels * 7 % 12 + levels % 5 > 7).astype(np.int8))
    tables = Tables(hers, FeatureTable.from_data(np.empty((400, 0))), labels)
    star = Star.of(tables, agreement(**options), alices)
    view = Several(star, converse(star, whole=True)).bob
    estimate = DiscreteAttack().estimate(view, KnownRows.none(view.columns))
    score = judge_columns("discrete", estimate, Truth.from_table(hers), KnownRows.none(5))
    assert score.recovered > least
