"""The label budget: what labels have cost over time, per partner, row and label; and its limit."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.__main__ import run
from taciturn.data.ids import RowIds
from taciturn.errors import BudgetExceeded, FileError
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Charge
from taciturn.party.consent.label_budget import LabelBudget, LabelCharge, Release
from taciturn.party.consent.store import ConsentStore
from taciturn.privacy.events import AdditiveNoise, LabelResponse, NoisyModel, NonPrivate
from taciturn.results.cost_preview import LedgerSum
from tests.expected import refused
from tests.party.sides import MECHANISMS, NEWTON, Party, run_both, write_config, write_tables

NOISE: Release = (AdditiveNoise(2.0), "")
ROWS = RowIds.from_values([f"person {number}" for number in range(6)])


@pytest.fixture
def budget(tmp_path: Path) -> LabelBudget:
    store = ConsentStore(tmp_path / "bob.consent.sqlite")
    return LabelBudget(store, "alice", None, "default", bytes(range(32)))


def spent(releases: dict[Release, int], session: str = "", rows: RowIds = ROWS) -> LabelCharge:
    return Charge(((rows, releases),), session)


def total(budget: LabelBudget, rows: RowIds = ROWS) -> float:
    so_far, _ = budget.statements(spent({}, rows=rows))
    return so_far.label_epsilon_total


def test_several_alices_have_one_account_in_any_order(tmp_path):
    def partner(names: list[str]) -> str:
        parties = {"agreement.parties": {name: f"{len(name)}" * 64 for name in names}}
        path = write_config(tmp_path, "bob", link={"peer": None}, **parties)
        return LabelBudget.from_config(PartyConfig.read(path)).partner

    assert partner(["ann", "bess"]) == partner(["bess", "ann"]) != partner(["bess", "carol"])


# --- charges -------------------------------------------------------------------------------------


def test_trainings_add_up_and_a_session_counts_once(budget):
    assert total(budget) == 0
    for session in ("one", "one", "two"):
        budget.charge(spent({NOISE: 3}, session))
    assert total(budget) == 6.0
    assert len(budget.sessions()) == 2
    so_far, then = budget.statements(spent({NOISE: 1}))
    assert (so_far.label_epsilon_total, then.label_epsilon_total) == (6.0, 7.0)
    # A look changes nothing.
    assert total(budget) == 6.0


def test_rows_partners_and_labels_have_accounts_of_their_own(budget):
    budget.charge(spent({NOISE: 2}, "one"))
    more = RowIds.from_values(["person 0", "new"])
    budget.charge(spent({NOISE: 1}, "two", more))
    assert total(budget, RowIds.from_values(["person 0"])) == 3.0
    assert total(budget, RowIds.from_values(["person 1"])) == 2.0
    assert total(budget, RowIds.from_values(["new"])) == 1.0
    assert total(replace(budget, partner="carol")) == 0
    assert total(replace(budget, column="churn")) == 0
    replace(budget, partner="carol").charge(spent({NOISE: 5}, "one"))
    lines = [(one.partner, one.rows, one.ledger.label_epsilon_total) for one in budget.accounts()]
    assert lines == [("alice", 7, 3.0), ("carol", 6, 5.0)]


def test_the_same_flips_are_paid_for_once_and_other_flips_again(budget):
    flips: dict[Release, int] = {(LabelResponse(1.0), "first set"): 1}
    for session in ("one", "two"):
        budget.charge(spent(flips, session))
    assert total(budget) == 1.0
    # New rows, whose answers the partner has not had.
    both = RowIds.from_values(["person 0", "new"])
    budget.charge(spent(flips, "three", both))
    assert total(budget, both) == 1.0
    budget.charge(spent({(LabelResponse(1.0), "another set"): 1}, "four"))
    assert total(budget) == 2.0
    # Another partner has them for the first time.
    other = replace(budget, partner="carol")
    other.charge(spent(flips, "five"))
    assert total(other) == 1.0


def test_a_model_that_is_told_twice_has_two_deltas(budget):
    model: dict[Release, int] = {(NoisyModel(1.0, 1e-6), ""): 1}
    budget.charge(spent(model, "one"))
    budget.charge(spent(model, "two"))
    so_far, _ = budget.statements(spent({}))
    assert so_far.label_epsilon_total == 2.0
    assert so_far.label_delta_total == pytest.approx(2e-6)


def test_what_is_told_stays_told(budget):
    budget.charge(spent({(NonPrivate(), ""): 4}, "one"))
    budget.charge(spent({NOISE: 1}, "two"))
    assert math.isinf(total(budget))


def test_the_limit_is_over_the_sum_and_nothing_is_counted_beyond_it(budget):
    limited = replace(budget, limit=4.0)
    limited.charge(spent({NOISE: 3}, "one"))
    for attempt in (limited.require, limited.charge):
        with refused(BudgetExceeded, setting="budget_total", names=(3, 5, 4)):
            attempt(spent({NOISE: 2}, "two"))
    assert total(budget) == 3.0
    limited.charge(spent({NOISE: 1}, "three"))
    # A session that was charged may be resumed, whatever the limit is by then.
    replace(budget, limit=0.5).require(spent({NOISE: 3}, "one"))


def test_rows_are_hashed_with_the_key(budget):
    budget.charge(spent({NOISE: 1}, "one"))
    tags = []
    for key in (budget.key, bytes(32)):
        with budget.store.reading() as records:
            account = records.account(budget.namespace.name, '["alice", "default"]', key)
            tags.append(account.tags(ROWS.series))
            known = np.count_nonzero(account.values(tags[-1]))
        assert known == (len(ROWS) if key == budget.key else 0)
    assert not np.intersect1d(*tags).size


def test_another_key_is_refused_and_the_totals_are_still_shown(budget):
    budget.charge(spent({NOISE: 1}, "one"))
    stranger = replace(budget, key=bytes(32))
    with refused(FileError):
        stranger.statements(spent({}))
    with refused(FileError):
        stranger.charge(spent({NOISE: 1}, "two"))
    assert stranger.accounts() == budget.accounts()


def test_an_unknown_mechanism_is_named(budget):
    budget.charge(spent({NOISE: 1}, "one"))
    with budget.store.writing() as records:
        budget.account(records).write_entry("history", "1", '[["of-nobody", [], "", 1]]')
    with refused(FileError, names="of-nobody"):
        total(budget)


# --- trainings between two parties ---------------------------------------------------------------


def furnish(folder: Path, agreement: dict[str, Any], **privacy: Any) -> None:
    if not (folder / "bob.csv").exists():
        write_tables(folder, rows=60)
    write_config(folder, "alice", agreement=agreement)
    write_config(folder, "bob", agreement=agreement, privacy=privacy)


def foreseen(folder: Path) -> LedgerSum:
    config = PartyConfig.read(folder / "bob.toml")
    price = TrainingPlan.from_config(config).outlook()
    assert price.ledger_book is not None
    return price.ledger_book


def anew(party: Party) -> Any:
    return party.run(fresh=True)


def paid(folder: Path) -> float:
    accounts = LabelBudget.from_config(PartyConfig.read(folder / "bob.toml")).accounts()
    return max((one.ledger.label_epsilon_total for one in accounts), default=0.0)


def test_a_look_tells_what_sessions_add_up_to(tmp_path):
    furnish(tmp_path, MECHANISMS["add"])
    before = foreseen(tmp_path)
    assert (before.trainings, before.so_far.label_epsilon_total) == (0, 0.0)
    assert before.then.label_epsilon_total == 2.0
    # A look makes no store and no key.
    assert not (tmp_path / "bob.consent.sqlite").exists()
    for _ in range(2):
        run_both(tmp_path, act=anew).records  # noqa: B018 - raises where a side failed
    now = foreseen(tmp_path)
    assert (now.trainings, now.so_far.label_epsilon_total) == (2, 4.0)
    assert now.then.label_epsilon_total == 6.0


def test_a_dry_run_says_that_a_training_would_be_beyond_the_limit(tmp_path):
    furnish(tmp_path, MECHANISMS["add"], **{"budget-total": 1.0})
    config = PartyConfig.read(tmp_path / "bob.toml")
    assert TrainingPlan.from_config(config).outlook().refused is not None


def test_flips_that_are_kept_are_paid_for_once_and_new_ones_again(tmp_path):
    agreed = {**MECHANISMS["label-rr"], **NEWTON}
    furnish(tmp_path, agreed, **{"budget-total": 4.0})
    for _ in range(2):
        run_both(tmp_path, act=anew).records  # noqa: B018 - raises where a side failed
        assert paid(tmp_path) == 2.0
    now = foreseen(tmp_path)
    assert now.trainings == 2
    assert now.so_far == now.then
    # Labels that are flipped anew are released again.
    limits = {"budget-total": 4.0}
    furnish(tmp_path, agreed, **limits, **{"flip-set": "second"})
    assert foreseen(tmp_path).then.label_epsilon_total == 4.0
    run_both(tmp_path, act=anew).records  # noqa: B018
    assert paid(tmp_path) == 4.0
    furnish(tmp_path, agreed, **limits, **{"flip-set": "third"})
    assert isinstance(run_both(tmp_path, act=anew).bob, BudgetExceeded)
    # What was kept back was not told.
    assert paid(tmp_path) == 4.0


def test_what_tells_no_label_is_counted_as_a_training_that_cost_nothing(tmp_path):
    furnish(tmp_path, MECHANISMS["sealed"], **{"budget-total": 0.1})
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    now = foreseen(tmp_path)
    assert (now.trainings, now.so_far.label_epsilon_total) == (1, 0.0)


def test_early_stopping_tells_held_out_labels_too(tmp_path):
    early = {**MECHANISMS["add"], "evaluate": "epoch", "patience": 2}
    furnish(tmp_path, early)
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    (only,) = LabelBudget.from_config(PartyConfig.read(tmp_path / "bob.toml")).accounts()
    assert only.rows == 60
    assert math.isinf(only.ledger.label_epsilon_total)


def test_the_command_shows_the_accounts(tmp_path, capsys):
    furnish(tmp_path, MECHANISMS["add"], **{"budget-total": 5.0})
    bob = str(tmp_path / "bob.toml")
    assert run(["ledger", bob, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accounts"] == []
    run_both(tmp_path).records  # noqa: B018 - raises where a side failed
    assert run(["ledger", bob, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    (line,) = record["accounts"]
    assert (line["partner"], line["label"], line["trainings"]) == ("alice", "sick", 1)
    assert line["ledger"]["label_epsilon_total"] == 2.0
    assert record["budget_total"] == 5.0
    assert run(["ledger", bob]) == 0
    assert "sick" in capsys.readouterr().out
