"""Alice counts the scores that a partner is given, over sessions, and refuses beyond her limit."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.__main__ import run
from taciturn.data.ids import RowIds
from taciturn.errors import BudgetExceeded
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.score_budget import ScoreBudget, ScoreCharge
from taciturn.party.consent.scored_rows import RowOpening
from taciturn.party.consent.store import ConsentStore
from taciturn.protocol.events import Boundary
from taciturn.results.cost_preview import ExposedSession
from tests.expected import refused
from tests.party.sides import (
    MECHANISMS,
    Pulled,
    pulled_at,
    run_both,
    write_config,
    write_tables,
)

IDS = RowIds.from_values(np.array(["ann", "bess", "cleo", "dora"]))
SOME = IDS.take(np.array([1, 2]))


def charge(scores: int, session: str = "", ids: RowIds = IDS, **facts: Any) -> ScoreCharge:
    return Charge(((ids, RowOpening(unnamed=scores)),), session, facts)


def named(*models: str, ids: RowIds = IDS, trainings: int = 0, session: str = "") -> ScoreCharge:
    return Charge(((ids, RowOpening(trainings, models=models)),), session)


@pytest.fixture
def budget(tmp_path: Path) -> ScoreBudget:
    return given_to("bob", tmp_path, limit=10)


def given_to(partner: str, folder: Path, limit: int | None = None) -> ScoreBudget:
    return ScoreBudget(ConsentStore(folder / "alice.consent.sqlite"), partner, limit)


def test_counts_add_up_over_sessions_and_a_session_counts_once(budget):
    budget.charge(charge(4, "first"))
    budget.charge(charge(4, "first"))
    assert budget.most_given() == 4
    budget.charge(charge(6, "second"))
    assert budget.most_given() == 10
    # A resumed session is not charged again, also where nothing more would be allowed.
    budget.require(charge(6, "second"))
    budget.charge(charge(6, "second"))


def test_beyond_the_limit_it_refuses_by_name_and_counts_nothing(budget):
    budget.charge(charge(3, "first"))
    budget.charge(charge(5, ids=SOME))
    for attempt in (budget.require, budget.charge):
        with refused(BudgetExceeded, setting="scores_per_row", names=("2 of 4", 10)):
            attempt(charge(3, "second"))
    assert budget.sessions() == ("first",)
    assert budget.most_given() == 8
    budget.charge(charge(2, "second"))


def test_without_a_limit_it_counts_all_the_same(budget, tmp_path):
    free = given_to("bob", tmp_path)
    for _ in range(3):
        free.charge(charge(10))
    assert free.most_given() == 30
    with refused(BudgetExceeded, names=30):
        budget.require(charge(1))


# --- Models, repeated scores and trainings -------------------------------------------------------


def largest(budget: ScoreBudget) -> tuple[int, int, int]:
    counts = budget.largest()
    return counts.models, counts.repetitions, counts.trainings


def test_a_model_that_scores_a_row_again_is_no_new_model(tmp_path):
    budget = given_to("bob", tmp_path, limit=2)
    budget.charge(named("first"))
    budget.charge(named("first", ids=SOME))
    assert largest(budget) == (1, 1, 0)
    budget.charge(named("second", ids=SOME))
    # Two models have scored some rows: a third may not, and both may score them again.
    for attempt in (budget.require, budget.charge):
        with refused(BudgetExceeded, setting="scores_per_row", names=("2 of 4", 2)):
            attempt(named("third"))
    budget.charge(named("first", "second", ids=SOME))
    assert largest(budget) == (2, 3, 0)
    budget.charge(named("third", ids=IDS.take(np.array([0, 3]))))


def test_any_number_of_models_is_told_apart(tmp_path):
    """More models than one number of the store has bits."""
    budget, models = given_to("bob", tmp_path), [f"model {number}" for number in range(90)]
    for model in models:
        budget.charge(named(model))
    assert largest(budget) == (90, 0, 0)
    budget.charge(named(*models[::7], ids=SOME))
    assert largest(budget) == (90, len(models[::7]), 0)
    assert given_to("carol", tmp_path).most_given() == 0
    assert budget.store.verify() is not None


def test_repeated_scores_and_trainings_have_limits_of_their_own(tmp_path):
    store = ConsentStore(tmp_path / "alice.consent.sqlite")
    budget = ScoreBudget(store, "bob", repetitions=1, trainings=2)
    for session in ("first", "second"):
        # A session is charged once, repeated scores and trainings too.
        for _ in range(2):
            budget.charge(named("model", trainings=1, session=session))
    assert largest(budget) == (1, 1, 2)
    with refused(BudgetExceeded, setting="repetitions_per_row"):
        budget.charge(named("model", ids=SOME))
    with refused(BudgetExceeded, setting="trainings_per_row", names=2):
        budget.charge(named(trainings=1, session="third"))
    assert largest(budget) == (1, 1, 2)


def test_rows_beyond_a_limit_that_was_lowered_are_scored_again_only(tmp_path):
    given_to("bob", tmp_path).charge(named("first", "second", "third"))
    lowered = given_to("bob", tmp_path, limit=1)
    lowered.charge(named("first"))
    with refused(BudgetExceeded, setting="scores_per_row"):
        lowered.charge(named("fourth"))


def test_counts_of_release_0_3_are_those_of_models_without_a_name(tmp_path):
    """Made by the code of commit cb7f9c79: three scores of ann and bess, two of cleo."""
    sample = Path(__file__).with_name("release_0_3.sqlite.gz")
    (tmp_path / "alice.consent.sqlite").write_bytes(gzip.decompress(sample.read_bytes()))
    budget = given_to("bob", tmp_path, limit=3)
    assert (budget.sessions(), budget.store.verify()) == (("first",), 4)
    assert largest(budget) == (3, 0, 0)
    assert largest(given_to("carol", tmp_path)) == (7, 0, 0)
    with refused(BudgetExceeded, setting="scores_per_row", names="2 of 4"):
        budget.charge(named("new"))
    cleo = IDS.take(np.array([2]))
    budget.charge(named("new", ids=cleo, trainings=1))
    budget.charge(named("new", ids=cleo))
    assert largest(budget) == (3, 1, 1)
    (session,) = (one for one in budget.exposed_sessions() if one.partner == "bob")
    assert (session.mechanism, session.scores_per_row) == ("sealed", 3)


# --- Two parties ---------------------------------------------------------------------------------


def furnish(folder: Path, limit: int | None, **agreement: Any) -> Path:
    """Two parties of two epochs; Alice with a limit."""
    write_tables(folder)
    privacy = {} if limit is None else {"scores-per-row": limit}
    write_config(folder, "alice", agreement=agreement, privacy=privacy)
    write_config(folder, "bob", agreement=agreement)
    return folder


def given(folder: Path) -> int:
    return given_to("bob", folder).most_given()


def test_held_out_rows_are_counted_at_every_look(tmp_path):
    """Two passes and the end: three scores of a held-out row, two of a training row."""
    agreed = {**MECHANISMS["sealed"], "held-out": 0.2, "evaluate": "epoch"}
    furnish(tmp_path, 2, **agreed)
    assert isinstance(run_both(tmp_path).alice, BudgetExceeded)
    furnish(tmp_path, 3, **agreed)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    assert given(tmp_path) == 3


def test_trainings_that_open_no_score_charge_none(tmp_path):
    """Three trainings of one table, where a row may be scored by two models."""
    furnish(tmp_path, 2, **{**MECHANISMS["mutual"], "passes": 1, "held-out": 0})
    for trained in (1, 2, 3):
        run_both(tmp_path, act=lambda party: party.run(fresh=True)).records  # noqa: B018
        assert largest(given_to("bob", tmp_path)) == (0, 0, trained)
    alice, _ = run_both(tmp_path, act=lambda party: party.dry_run()).records
    assert "refused" not in alice["columns_exposed"]["warning"]


def test_trainings_of_a_row_end_at_their_limit(tmp_path, capsys):
    furnish(tmp_path, None, **{**MECHANISMS["mutual"], "passes": 1})
    write_config(
        tmp_path,
        "alice",
        agreement={**MECHANISMS["mutual"], "passes": 1},
        privacy={"trainings-per-row": 1},
    )
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    again = run_both(tmp_path, act=lambda party: party.run(fresh=True)).alice
    assert isinstance(again, BudgetExceeded)
    assert again.setting == "trainings_per_row"
    assert run(["ledger", str(tmp_path / "alice.toml"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["trainings_per_row"] == 1
    assert [one["trainings"] for one in record["row_accounts"]] == [1]


HELD_OUT = {**MECHANISMS["mutual"], "passes": 1, "held-out": 0.2}


def test_a_training_beyond_the_limit_opens_no_score_of_held_out_rows(tmp_path):
    """Six columns, so that two models may score a row: the third training has no AUC."""
    furnish(tmp_path, None, **HELD_OUT)
    for trained in (1, 2):
        alice, bob = run_both(tmp_path, act=lambda party: party.run(fresh=True)).records
        assert bob["metrics"]["held_out"]["auc"] > 0
        assert "held_out_unscored" not in alice | bob
        assert largest(given_to("bob", tmp_path)) == (trained, 0, trained)
    dry, _ = run_both(tmp_path, act=lambda party: party.dry_run()).records
    assert "scores-per-row = 3" in dry["columns_exposed"]["warning"]
    alice, bob = run_both(tmp_path, act=lambda party: party.run(fresh=True)).records
    assert "held_out" not in bob["metrics"]
    assert "scores-per-row = 3" in alice["held_out_unscored"]
    assert "scores-per-row" in bob["held_out_unscored"]
    assert largest(given_to("bob", tmp_path)) == (2, 0, 3)
    # The line that it names.
    write_config(tmp_path, "alice", agreement=HELD_OUT, privacy={"scores-per-row": 3})
    _, bob = run_both(tmp_path, act=lambda party: party.run(fresh=True)).records
    assert bob["metrics"]["held_out"]["auc"] > 0
    assert largest(given_to("bob", tmp_path)) == (3, 0, 4)


def test_a_training_that_opens_no_score_resumes_without_one(tmp_path):
    """Alice's limit is raised while it is interrupted: what the two have agreed on stays."""
    agreed = {**HELD_OUT, "passes": 3}
    furnish(tmp_path, 1, **agreed)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    pulled = pulled_at("alice", 2, Boundary)
    assert isinstance(
        run_both(tmp_path, act=lambda party: party.run(fresh=True), watch=pulled).alice, Pulled
    )
    write_config(tmp_path, "alice", agreement=agreed, privacy={"scores-per-row": 9})
    alice, bob = run_both(tmp_path).records
    assert "held_out" not in bob["metrics"]
    assert "held_out_unscored" in alice
    assert largest(given_to("bob", tmp_path)) == (1, 0, 2)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_few_columns_are_named_before_a_training_begins(tmp_path, columns):
    """Values of few decimals are whole numbers of a small unit."""
    furnish(tmp_path, 9, **{**MECHANISMS["mutual"], "passes": 1})
    write_tables(tmp_path, alice=columns)
    alice, _ = run_both(tmp_path, act=lambda party: party.dry_run()).records
    about = {1: "one column", 2: "two columns of whole numbers"}.get(columns, "")
    named = [text for text in ("one column", "two columns of whole") if text in str(alice)]
    assert bool(named) == bool(about)
    logged = (tmp_path / "alice.log").read_text()
    assert about in logged
    assert ("reveal" in logged) == bool(about)


def test_a_dry_run_tells_alice_what_bob_was_given_and_charges_nothing(tmp_path):
    furnish(tmp_path, 3, **MECHANISMS["sealed"])
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    alice, bob = run_both(tmp_path, act=lambda party: party.dry_run()).records
    exposed = alice["columns_exposed"]
    assert exposed["scores_per_row"] == 2
    assert exposed["opened_values"] > 0
    assert exposed["warning"]
    assert "columns_exposed" not in bob
    assert given(tmp_path) == 2


def test_without_a_limit_alice_is_told(tmp_path):
    furnish(tmp_path, None, **MECHANISMS["sealed"])
    alice, _ = run_both(tmp_path, act=lambda party: party.dry_run()).records
    assert "scores-per-row" in alice["columns_exposed"]["warning"]
    assert "scores-per-row" in (tmp_path / "alice.log").read_text()
    assert "scores-per-row" not in (tmp_path / "bob.log").read_text()


# --- Past sessions that exposed her columns ------------------------------------------------------


def test_sessions_that_opened_training_scores_are_listed(budget, tmp_path):
    budget.charge(charge(3, "second", when="2026-01-01", mechanism="sealed", scores_per_row=3))
    budget.charge(charge(1, "first", when="2026-01-01", mechanism="add", scores_per_row=1))
    budget.charge(charge(1, "third", when="2026-01-01", mechanism="mutual", scores_per_row=0))
    budget.charge(charge(1))
    given_to("carol", tmp_path).charge(charge(4, "fourth"))
    one, two, other = budget.exposed_sessions()
    assert one == ExposedSession(
        partner="bob", session="second", when="2026-01-01", mechanism="sealed", scores_per_row=3
    )
    assert two.session == "first"
    # A session that says nothing of itself may have opened some.
    assert other == ExposedSession(partner="carol", session="fourth")


def opened(kind: str, numbers: int, rows: int, passes: int) -> dict[str, Any]:
    return {"kind": kind, "numbers": numbers, "rows": rows, "passes": passes}


def test_the_ledger_adds_up_the_sums_that_sessions_opened(budget, tmp_path, capsys):
    """The noise and the bits are those of each training, whatever else was scored."""
    path = write_config(tmp_path, "alice", agreement=MECHANISMS["mutual"])
    change = opened("change of the loss", 1, 9000, 28)
    study = opened("study sum", 12, 3000, 28)
    for number, sums in enumerate(([change], [change, opened("change of the loss", 1, 9000, 3)])):
        budget.charge(charge(0, f"training {number}", mechanism="mutual", sums=sums))
    budget.charge(charge(0, "study", mechanism="mutual", scores_per_row=0, sums=[study]))
    (account,) = budget.accounts()
    assert [(one.kind, one.numbers, one.passes) for one in account.sums] == [
        ("change of the loss", 2, 28),
        ("change of the loss", 1, 3),
        ("study sum", 12, 28),
    ]
    assert account.unrecorded == 0
    assert run(["ledger", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    # Twice log2(1 + 0.25), and log2(1 + 1) before the passes have settled; and twelve times what a
    # row gives that moves a sum by 16 rows.
    figures = re.findall(r"(\d+) numbers?;.*?together at most ([\d.]+) bits", shown)
    assert figures == [("3", "1.6"), ("12", "1.8")]


def test_sums_of_a_session_that_recorded_none_are_named(budget):
    budget.charge(charge(1, "old", mechanism="mutual", scores_per_row=1))
    (account,) = budget.accounts()
    assert (account.sums, account.unrecorded) == ((), 1)
