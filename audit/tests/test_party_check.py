"""A side checks its own file: what Alice will be able to do, with stand-ins for what it lacks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.data.label_table import LabelTable
from taciturn.errors import ConfigError
from taciturn.privacy.solvers import resolved
from taciturn.settings.schema import Settings
from taciturn_audit.rehearsal import Rehearsal, random_table
from taciturn_audit.results.check import AT_RISK, CLEAR, LEAKS, CheckResult
from tests.expected import refused
from tests.party.sides import MECHANISMS, write_config, write_tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sides")
    write_tables(made, rows=200)
    return made


def checked(folder: Path, role: str, agreement: dict[str, Any], **more: Any) -> CheckResult:
    write_config(folder, role, agreement={"alice-columns": 6, **agreement})
    return taciturn.check(party=folder / f"{role}.toml", **more)


@pytest.fixture(scope="module")
def unprotected(folder: Path) -> dict[str, CheckResult]:
    return {role: checked(folder, role, MECHANISMS["none"]) for role in ("alice", "bob")}


@pytest.mark.slow  # some seconds
@pytest.mark.parametrize("role", ["alice", "bob"])
def test_either_side_sees_what_leaks(unprotected, role):
    result = unprotected[role]
    assert result.verdict == LEAKS
    assert (result.facts.rows, result.facts.alice_columns) == (161, 6)
    assert result.price is not None
    assert result.price.learns.alice
    assert result.notes


def test_what_to_change_is_said_as_lines_of_the_file(unprotected):
    result = unprotected["bob"]
    advice = [verdict.change for verdict in result.verdicts]
    advice += [one.use for one in result.recommendations]
    assert not any("--" in text for text in (*advice, *result.warnings, *result.notes))
    assert 'mechanism = "sealed"' in advice
    assert any(" = " in verdict.change for verdict in result.verdicts)


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_either_side_sees_that_nothing_does(folder, role):
    assert checked(folder, role, MECHANISMS["sealed"]).verdict == CLEAR


def test_alice_is_told_what_bob_can_learn_of_her_own_columns(unprotected):
    hers = unprotected["alice"]
    assert hers.columns is not None
    assert hers.columns.scores_per_row == 3
    assert hers.price is not None
    assert hers.price.ledger is None
    assert unprotected["bob"].columns is None


def test_alices_own_file_is_checked_from_bobs_seat_too(folder, unprotected):
    seat = unprotected["alice"].bob_seat
    assert seat is not None
    assert {one.name for one in seat.findings.attacks} >= {"anchored", "gram"}
    assert 'mechanism = "mutual"' in seat.advice[-1]
    assert unprotected["bob"].bob_seat is None
    assert checked(folder, "alice", MECHANISMS["none"], seat="alice").bob_seat is None


def test_labels_at_even_odds_are_rehearsed_whatever_their_share():
    table = random_table(2000, 5)
    rare = (np.arange(2000) % 20 == 0).astype(np.int8)
    raw = replace(table, labels=LabelTable.from_data(rare, ids=table.ids), whole=True)
    settings = Settings(mechanism="sealed", scheme="clear", solver="newton")
    rehearsal = Rehearsal.run(resolved(settings), raw, own_labels=True)
    assert rehearsal.labels.values.mean() == 0.5
    assert rehearsal.rows == 2000


def test_too_few_labels_of_a_class_leave_the_rehearsal_to_coins(unprotected, tmp_path):
    write_tables(tmp_path, rows=200)
    his = pl.read_csv(tmp_path / "bob.csv")
    rare = pl.Series("sick", [int(row % 50 == 0) for row in range(his.height)])
    his.with_columns(rare).write_csv(tmp_path / "bob.csv")
    result = checked(tmp_path, "bob", MECHANISMS["none"])
    assert len(set(result.notes) - set(unprotected["bob"].notes)) == 1
    assert result.verdict in (LEAKS, AT_RISK)


def test_bob_must_say_how_many_columns_alice_has(folder):
    write_config(folder, "bob", agreement=MECHANISMS["sealed"])
    with refused(ConfigError, setting="alice_columns", names="alice-columns = 30"):
        taciturn.check(party=folder / "bob.toml")
    result = taciturn.check(party=folder / "bob.toml", columns=4)
    assert result.facts.alice_columns == 4


@pytest.mark.parametrize(
    ("role", "option"),
    [
        ("bob", {"epochs": 3}),
        ("bob", {"rows": 50}),
        ("bob", {"data": "x.csv"}),
        ("alice", {"columns": 4}),
    ],
)
def test_the_file_says_everything_else(folder, role, option):
    with refused(ConfigError, setting=next(iter(option))):
        checked(folder, role, MECHANISMS["none"], **option)
