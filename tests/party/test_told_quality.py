"""What Bob tells Alice of the model by agreement: the same on both sides, once, and paid for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.engine.callbacks import Callbacks
from taciturn.errors import RemoteProtocolError
from taciturn.jobs.train.report import party_blocks
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn.party.consent.label_budget import LabelBudget
from taciturn.privacy.base import Released
from taciturn.privacy.events import NoisyAccuracy
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.party import hear
from taciturn.protocol.events import Event
from taciturn.protocol.messages import HeldOutQuality
from taciturn.protocol.observations import QualityTold
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.party.sides import (
    MECHANISMS,
    NEWTON,
    Pulled,
    alone,
    pulled_at,
    run_both,
    set_up,
    write_tables,
)
from tests.report.test_terminal import shown

TOLD = {"share-metrics": "quality"}
SEALED: dict[str, Any] = {**NEWTON, "mechanism": "sealed"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path, rows=80)
    return tmp_path


@pytest.mark.parametrize(
    ("agreed", "total"),
    [
        ({**NEWTON, **MECHANISMS["label-rr"], "metrics-epsilon": 0.5}, 2.5),
        (SEALED, math.inf),
    ],
    ids=["with noise", "as it is"],
)
def test_the_ledger_has_its_price_and_held_out_labels_pay_too(folder, agreed, total):
    set_up(folder, **agreed, **TOLD)
    alice, bob = run_both(folder).records
    assert alice["told_quality"] == bob["told_quality"]
    assert (alice["told_quality"]["auc"] is None) == math.isfinite(total)
    assert alice["told_quality"].get("epsilon") == agreed.get("metrics-epsilon")
    assert float(bob["ledger"]["label_epsilon_total"]) == total
    (account,) = LabelBudget.from_config(PartyConfig.read(folder / "bob.toml")).accounts()
    assert account.rows == 80
    assert account.ledger.label_epsilon_total == total


@pytest.mark.parametrize("noisy", [False, True])
def test_who_was_stopped_when_it_was_told_is_told_the_same(folder, noisy):
    set_up(folder, **MECHANISMS["add"], **TOLD, **({"metrics-epsilon": 0.5} if noisy else {}))
    stop, heard = pulled_at("alice", 1, QualityTold)["alice"], list[object]()

    def observe(event: Event) -> None:
        if isinstance(event, QualityTold):
            heard.append(event.quality)
        stop.observe(event)

    watch = {"alice": Callbacks(observe=observe)}
    assert isinstance(run_both(folder, watch=watch).alice, Pulled)
    alice, bob = run_both(folder, watch=watch).records
    assert len(heard) == 2
    assert heard[0] == heard[1]
    assert alice["told_quality"] == bob["told_quality"]
    (account,) = LabelBudget.from_config(PartyConfig.read(folder / "bob.toml")).accounts()
    assert account.trainings == 1


@pytest.mark.parametrize("reveal", [True, False])
def test_her_columns_by_importance_where_she_has_their_weights(folder, reveal):
    set_up(folder, **SEALED, reveal=reveal)
    ends = run_both(folder)
    alice, bob = ends.records
    assert "importance" not in bob
    assert "told_quality" not in alice
    assert ("importance" in alice) == reveal
    if reveal:
        columns = alice["importance"]
        sizes = [column["importance"] for column in columns]
        assert sizes == sorted(sizes, reverse=True)
        model = ModelShare.load(folder / "alice.model.json")
        weights = dict(zip(model.columns, model.weights, strict=True))
        assert {column["column"]: column["weight"] for column in columns} == weights
        assert columns[0]["column"] in shown(party_blocks(ends.alice))


@pytest.mark.parametrize(
    "quality",
    [
        Released.unprotected(np.array([101, 50])),
        Released.unprotected(np.array([50])),
        Released(np.array([50, 50]), NoisyAccuracy(1.0)),
    ],
)
def test_alice_refuses_what_was_not_agreed(folder, quality):
    set_up(folder, **MECHANISMS["none"], **TOLD)
    party = alone(folder, "alice").prepared()
    inputs = AliceInputs(
        party.tables.train, party.terms, KeyedEntropy.from_seed(1), held_out=party.tables.held_out
    )
    program = hear(inputs, 3)
    next(program)
    with refused(RemoteProtocolError):
        program.send(HeldOutQuality(quality))
