"""What the programs of a training take and return: nothing about labels on Alice's side."""

from __future__ import annotations

import inspect
import sys
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from taciturn.errors import RowOrderError
from taciturn.privacy import Ledger, Unprotected
from taciturn.protocol import Terms, Trained
from taciturn.protocol.alice import TRAININGS, AliceInputs, alice_program
from taciturn.protocol.bob import BobInputs
from tests.protocol.parties import BOB, CLEAR, Tables, agreement, talk


@pytest.mark.parametrize("program", [*TRAININGS.values(), alice_program])
def test_alices_programs_take_no_labels(program):
    assert list(inspect.signature(program).parameters) == ["inputs"]
    assert get_type_hints(program)["inputs"] is AliceInputs
    hints = get_type_hints(AliceInputs)
    assert set(hints) == {
        "features",
        "terms",
        "entropy",
        "resume",
        "held_out",
        "table_memory",
        "scratch",
        "identity",
    }
    assert "LabelTable" not in str(hints)
    assert not any("label" in name.lower() for name in vars(sys.modules[program.__module__]))


CONVERSATIONS: dict[str, dict[str, Any]] = {
    "revealed": {},
    "residues": {
        "mechanism": "add",
        "epsilon": 2.0,
        "noise": "discrete",
        "bob_update": "released",
    },
    "hidden-batch": {"mechanism": "hybrid", "epsilon": 1.0, "subset_size": 14},
    "revealed-table": {"solver": "newton", "l2": 0.1},
    "sealed-table": {"mechanism": "sealed", "solver": "newton", "l2": 0.1},
    "mutual-table": {
        **{"mechanism": "mutual", "score_range": 64.0, "sigmoid_error": 1e-3},
        **{"solver": "newton", "l2": 0.1},
    },
}


@pytest.mark.parametrize("conversation", TRAININGS)
def test_what_alice_returns_has_no_place_for_what_only_bob_knows(conversation):
    ended = talk(Tables.make(alice=2, bob=2), agreement(**CONVERSATIONS[conversation]))
    assert type(ended.alice) is Trained
    names = {field.name for field in fields(ended.alice)}
    # What several Alices know of each other all of them know.
    others = {"circle", "company"}
    assert names == {"weights", "iterations", "stopped", "share", "bob_share"} | others
    own = {"suspected_wraps", "redraws", "opened"}
    assert {field.name for field in fields(ended.bob)} - names == own
    done = 2 if conversation.endswith("-table") else 10
    assert ended.alice.iterations == ended.bob.iterations == done


def test_neither_inputs_nor_results_show_their_values():
    tables = Tables.make(alice=2, bob=2)
    terms = Terms(agreement(), CLEAR)
    ledger = Ledger(tables.labels.rows, "")
    inputs = BobInputs(tables.bob, tables.labels, terms, Unprotected(), ledger, BOB)
    assert "array" not in repr(inputs)
    assert "array" not in repr(talk(tables, agreement(**CONVERSATIONS["sealed-table"])).bob)


def test_labels_of_other_rows_are_refused_at_once():
    tables, other = Tables.make(alice=2, bob=2), Tables.make(rows=17)
    ledger = Ledger(other.labels.rows, "")
    with pytest.raises(RowOrderError, match="the labels"):
        BobInputs(tables.bob, other.labels, Terms(agreement(), CLEAR), Unprotected(), ledger, BOB)
