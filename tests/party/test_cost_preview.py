"""What a training will cost is said before it begins, and is what it costs; leaks are accepted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import ConfigError, PeerStopped
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.party.config import PartyConfig
from taciturn.results.cost_preview import Outlook
from taciturn.results.serialise import record_of
from taciturn.settings.agreement import ACCEPTED_EXPOSURE, ACCEPTED_LEAK
from tests.party.sides import MECHANISMS, NEWTON, run_both, write_config, write_tables
from tests.seldom import seldom

TRUE_UPDATES = {**MECHANISMS["add"], "bob-update": "true"}
ONE_SIDED = {**MECHANISMS["mult"], "variant": "one-sided"}
EARLY = {**MECHANISMS["add"], "evaluate": "epoch", "patience": 2}
REVEALED = {"mechanism": "sealed", "reveal": True}
EXPOSURE = "accept-column-exposure"
TOLD = {"share-metrics": "quality"}
NOISY = {**TOLD, "metrics-epsilon": 0.5}
OVER_SEALED = {**MECHANISMS["label-rr"], "base_mechanism": "sealed"}

# What is agreed, and whether labels can then be computed.
AGREEMENTS: dict[str, tuple[dict[str, Any], bool]] = {
    "none": (MECHANISMS["none"], True),
    "none, newton": ({**MECHANISMS["none"], **NEWTON}, True),
    "add": (MECHANISMS["add"], False),
    "add, true updates": (TRUE_UPDATES, True),
    "add, patience": (EARLY, True),
    "mult": (MECHANISMS["mult"], False),
    "mult one-sided": (ONE_SIDED, True),
    "label-rr": (MECHANISMS["label-rr"], False),
    "label-rr, newton": ({**MECHANISMS["label-rr"], **NEWTON}, False),
    "label-rr over sealed": (OVER_SEALED, False),
    "label-rr over sealed, newton": ({**OVER_SEALED, **NEWTON}, False),
    "hybrid": (MECHANISMS["hybrid"], True),
    "sealed": (MECHANISMS["sealed"], False),
    "sealed, newton": (MECHANISMS["sealed"], False),
    "sealed, told": ({**MECHANISMS["sealed"], **TOLD}, True),
    "mutual, told": ({**MECHANISMS["mutual"], **TOLD}, True),
    "label-rr, told": ({**MECHANISMS["label-rr"], **TOLD}, True),
    "label-rr, told with noise": ({**MECHANISMS["label-rr"], **NOISY}, False),
    "add, told with noise": ({**MECHANISMS["add"], **NOISY}, False),
    "label-rr over sealed, revealed": ({**OVER_SEALED, "reveal": True}, False),
    "sealed, revealed": (REVEALED, True),
    "sealed, newton, revealed": ({**REVEALED, **NEWTON}, True),
    "mutual": (MECHANISMS["mutual"], False),
    "mutual, revealed": ({"mechanism": "mutual", "reveal": True}, True),
    "sealed, revealed with noise": ({**REVEALED, **NEWTON, "reveal-epsilon": 4.0}, False),
}
LEAKING = [name for name, (_, leaks) in AGREEMENTS.items() if leaks]
# Where no training score is opened to Bob.
UNSEEN = [name for name, (agreed, _) in AGREEMENTS.items() if agreed["mechanism"] == "mutual"]
# Batches that are drawn, or a training that ends early, may release a row less often.
AT_MOST = ("hybrid", "add, patience")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path, rows=60)
    return tmp_path


def set_up(folder: Path, agreement: dict[str, Any], **privacy: Any) -> None:
    for role in ("alice", "bob"):
        own = {"privacy": privacy} if role == "bob" else {}
        write_config(folder, role, agreement=agreement, **own)


def read(folder: Path, role: str = "bob") -> PartyConfig:
    return PartyConfig.read(folder / f"{role}.toml")


def foreseen(folder: Path, role: str = "bob") -> Outlook:
    return TrainingPlan.from_config(read(folder, role)).outlook()


def test_a_dry_run_says_it_to_both(folder):
    set_up(folder, MECHANISMS["none"], **{"accept-leak": None})
    hers, his = run_both(folder, act=lambda party: party.dry_run()).records
    assert his["ledger"]["label_epsilon_total"] == "inf"
    assert ACCEPTED_LEAK in his["refused"]["way_out"]
    # She has no ledger, and both are told the same of both.
    assert hers["ledger"] == {}
    assert "refused" not in hers
    assert hers["learns"] == his["learns"]
    assert hers["columns_exposed"]["scores_per_row"] == 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name",
    seldom(AGREEMENTS, always=["add", "mult one-sided", "hybrid", "sealed, newton", "mutual"]),
)
def test_the_forecast_is_the_ledger_of_the_training(folder, name):
    agreement, leaks = AGREEMENTS[name]
    set_up(folder, agreement)
    before = record_of(foreseen(folder))["ledger"]
    _, bob = run_both(folder).records
    after = bob["ledger"]
    assert (before["label_epsilon_total"] == "inf") == leaks
    if name in AT_MOST:
        assert before.pop("releases_per_row") >= after.pop("releases_per_row") > 0
    assert before == after


def test_a_budget_ends_the_forecast_where_it_ends_the_training(folder):
    set_up(folder, {**MECHANISMS["add"], "epochs": 6}, budget=3.5)
    before = record_of(foreseen(folder))["ledger"]
    _, bob = run_both(folder).records
    assert bob["stopped"]
    assert before == bob["ledger"]
    assert before["releases_per_row"] == 3


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", LEAKING)
def test_labels_become_readable_only_where_bob_says_so(folder, name):
    agreement, _ = AGREEMENTS[name]
    set_up(folder, agreement, **{"accept-leak": None})
    ends = run_both(folder)
    assert isinstance(ends.bob, ConfigError)
    assert ends.bob.setting == "accept_leak"
    assert f'accept-leak = "{ACCEPTED_LEAK}"' in ends.bob.diagnostics(read(folder).syntax)
    # She is told, and nothing was begun.
    assert isinstance(ends.alice, PeerStopped)
    assert not (folder / "bob-state" / "journal").exists()
    # Without a meeting the price and the line that is missing are said too.
    price = foreseen(folder)
    assert price.refused is not None
    assert f'accept-leak = "{ACCEPTED_LEAK}"' in price.refused.way_out


@pytest.mark.parametrize("name", [name for name in AGREEMENTS if name not in LEAKING])
def test_what_is_protected_needs_no_such_line(folder, name):
    set_up(folder, AGREEMENTS[name][0], **{"accept-leak": None})
    price = foreseen(folder)
    assert price.refused is None
    assert price.ledger is not None
    assert math.isfinite(price.ledger.label_epsilon_total)


@pytest.mark.parametrize(
    ("name", "role", "setting"), [("add", "bob", "accept-leak"), ("mutual", "alice", EXPOSURE)]
)
def test_a_line_that_is_not_needed_is_noted(folder, name, role, setting):
    set_up(folder, AGREEMENTS[name][0])
    run_both(folder).records  # noqa: B018 - raises where a side failed
    assert setting in (folder / f"{role}.log").read_text()


def without_alices_line(folder: Path, agreement: dict[str, Any]) -> None:
    set_up(folder, agreement)
    write_config(folder, "alice", agreement=agreement, privacy={EXPOSURE: None})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in AGREEMENTS if name not in UNSEEN])
def test_training_scores_are_opened_only_where_alice_says_so(folder, name):
    without_alices_line(folder, AGREEMENTS[name][0])
    ends = run_both(folder)
    assert isinstance(ends.alice, ConfigError)
    assert ends.alice.setting == "accept_column_exposure"
    text = ends.alice.diagnostics(read(folder, "alice").syntax)
    assert f'{EXPOSURE} = "{ACCEPTED_EXPOSURE}"' in text
    assert "mutual" in text
    # Bob is not told the kind of it; nothing was begun or counted.
    assert isinstance(ends.bob, PeerStopped)
    assert ends.bob.code == 0
    assert not (folder / "alice-state" / "journal").exists()
    assert not (folder / "alice.consent.sqlite").exists()
    # Without a meeting the line that is missing is said too.
    price = foreseen(folder, "alice")
    assert price.refused is not None
    assert f'{EXPOSURE} = "{ACCEPTED_EXPOSURE}"' in price.refused.way_out
    assert price.learns.columns is not None


@pytest.mark.parametrize("name", UNSEEN)
def test_where_no_training_score_is_opened_alice_accepts_nothing(folder, name):
    without_alices_line(folder, AGREEMENTS[name][0])
    price = foreseen(folder, "alice")
    assert price.refused is None
    assert price.learns.columns is None


ACCEPTED = {
    "bob": ("accept-leak", ACCEPTED_LEAK),
    "alice": (EXPOSURE, ACCEPTED_EXPOSURE),
}


@pytest.mark.parametrize("role", ACCEPTED)
@pytest.mark.parametrize("change", [str.upper, "{}.".format, "yes".format])
def test_only_the_very_words_accept(folder, role, change):
    name, words = ACCEPTED[role]
    write_config(folder, role, privacy={name: change(words)})
    with pytest.raises(ConfigError) as caught:
        read(folder, role)
    assert caught.value.setting == name.replace("-", "_")
    assert f'{name} = "{words}"' in caught.value.hint


@pytest.mark.parametrize("role", ACCEPTED)
def test_it_is_not_the_other_sides_to_accept(folder, role):
    name, words = ACCEPTED["bob" if role == "alice" else "alice"]
    write_config(folder, role, privacy={name: words})
    with pytest.raises(ConfigError) as caught:
        read(folder, role)
    assert caught.value.setting == name.replace("-", "_")


@pytest.mark.parametrize(
    ("name", "alice", "bob"),
    [("none", "", "3"), ("sealed, revealed", "", "2"), ("label-rr", "11.92 %", "3")],
)
def test_each_side_is_told_what_both_will_receive(folder, name, alice, bob):
    set_up(folder, AGREEMENTS[name][0])
    prices = [foreseen(folder, role) for role in ("alice", "bob")]
    assert prices[0].learns == prices[1].learns
    assert alice in prices[0].learns.alice
    assert bob in prices[0].learns.bob
