"""What Bob tells Alice of the model by agreement: the same on both sides, once, and paid for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from taciturn.audit import RecordedSession
from taciturn.deploy import Party, PartyConfig
from taciturn.deploy import open_ledger_book as ledger_book
from taciturn.engine import Callbacks
from taciturn.errors import AgreementError, ConfigError, RemoteProtocolError
from taciturn.model import ModelShare
from taciturn.model import model_card as card
from taciturn.privacy import NoisyAccuracy, Released
from taciturn.protocol import Event, HeldOutQuality, QualityTold, Signal
from taciturn.protocol.alice import AliceInputs, hear
from taciturn.report import card_blocks, party_blocks
from taciturn.rng import KeyedEntropy
from taciturn.view import AliceView
from tests.deploy.sides import MECHANISMS, Ends, run_both, write_config, write_tables
from tests.deploy.wires import Wire
from tests.report.test_terminal import shown

TOLD = {"tell-alice": "quality"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path, rows=80)
    return tmp_path


def set_up(folder: Path, **agreement: Any) -> None:
    for role in ("alice", "bob"):
        write_config(folder, role, agreement={**agreement, **TOLD})


def recorded(folder: Path, **watch: Any) -> Ends:
    act = lambda side: side.run(record=folder / f"{side.config.role}.transcript")  # noqa: E731
    return run_both(folder, act=act, **watch)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["none", "hybrid", "sealed", "newton"])
def test_alice_has_bobs_figures_in_whole_per_cent(folder, name):
    set_up(folder, **(MECHANISMS["sealed"] if name == "newton" else MECHANISMS[name]))
    ends = recorded(folder)
    alice, bob = ends.records
    exact = bob["metrics"]["held_out"]
    quality = alice["told_quality"]
    assert quality == bob["told_quality"]
    assert quality["rows"] == bob["held_out_rows"]
    for figure in ("accuracy", "auc"):
        assert quality[figure] == pytest.approx(exact[figure], abs=0.005001)
        assert quality[figure] == round(quality[figure], 2)
    assert bob["ledger"]["label_epsilon_total"] == "inf"
    text = " ".join(shown(party_blocks(ends.alice)).split())
    hundred = {name: round(100 * quality[name]) for name in ("accuracy", "auc")}
    figures = f"accuracy {hundred['accuracy']} %, AUC {hundred['auc']} %"
    assert f"Bob tells: {figures}" in text
    model = ModelShare.load(folder / "alice.model.json")
    assert model.metrics == {"told_quality": quality}
    assert "told to Alice" in shown(card_blocks(card(model), 3))
    # Her view has it, for whichever attack needs it.
    session = RecordedSession.read(folder / "alice.transcript", folder / "alice.toml")
    assert isinstance(session.view, AliceView)
    (seen,) = session.view.observations.of(QualityTold)
    assert (seen.quality.accuracy, seen.quality.auc) == (quality["accuracy"], quality["auc"])
    assert seen.signal is Signal.QUALITY


def test_with_noise_the_ledger_has_its_price_and_held_out_labels_pay_too(folder):
    agreed = {**MECHANISMS["label-rr"], "tell-epsilon": 0.5}
    set_up(folder, **agreed)
    ends = recorded(folder)
    alice, bob = ends.records
    assert alice["told_quality"] == bob["told_quality"]
    assert alice["told_quality"]["auc"] is None
    assert alice["told_quality"]["epsilon"] == 0.5
    assert bob["ledger"]["label_epsilon_total"] == 2.5
    assert "with noise for epsilon 0.5" in " ".join(shown(party_blocks(ends.alice)).split())
    (account,) = ledger_book(PartyConfig.read(folder / "bob.toml")).accounts()
    assert account.rows == 80
    assert account.ledger.label_epsilon_total == 2.5


def test_told_as_it_is_every_label_has_paid_infinity(folder):
    set_up(folder, **MECHANISMS["sealed"])
    run_both(folder).records  # noqa: B018 - raises where a side failed
    (account,) = ledger_book(PartyConfig.read(folder / "bob.toml")).accounts()
    assert account.rows == 80
    assert math.isinf(account.ledger.label_epsilon_total)


class Pulled(Exception):
    """A side was stopped."""


@pytest.mark.parametrize("noisy", [False, True])
def test_who_was_stopped_when_it_was_told_is_told_the_same(folder, noisy):
    set_up(folder, **MECHANISMS["add"], **({"tell-epsilon": 0.5} if noisy else {}))
    heard: list[object] = []

    def observe(event: Event) -> None:
        if isinstance(event, QualityTold):
            heard.append(event.quality)
            if len(heard) == 1:
                raise Pulled

    watch = {"alice": Callbacks(observe=observe)}
    assert isinstance(recorded(folder, watch=watch).alice, Pulled)
    alice, bob = recorded(folder, watch=watch).records
    assert len(heard) == 2
    assert heard[0] == heard[1]
    assert alice["told_quality"] == bob["told_quality"]
    (account,) = ledger_book(PartyConfig.read(folder / "bob.toml")).accounts()
    assert account.trainings == 1


def test_her_columns_by_importance_where_she_has_their_weights(folder):
    reveal = {"mechanism": "sealed", "reveal": True}
    for role in ("alice", "bob"):
        write_config(folder, role, agreement=reveal)
    ends = run_both(folder)
    alice, bob = ends.records
    assert "importance" not in bob
    assert "told_quality" not in alice
    columns = alice["importance"]
    sizes = [column["importance"] for column in columns]
    assert sizes == sorted(sizes, reverse=True)
    model = ModelShare.load(folder / "alice.model.json")
    weights = dict(zip(model.columns, model.weights, strict=True))
    assert {column["column"]: column["weight"] for column in columns} == weights
    text = shown(party_blocks(ends.alice))
    assert "her columns by importance" in " ".join(text.split())
    assert columns[0]["column"] in text


def test_without_her_weights_there_is_no_importance(folder):
    for role in ("alice", "bob"):
        write_config(folder, role, agreement={"mechanism": "sealed"})
    alice, _ = run_both(folder).records
    assert "importance" not in alice


def test_both_must_agree(folder):
    write_config(folder, "alice", agreement={"mechanism": "sealed"})
    write_config(folder, "bob", agreement={"mechanism": "sealed", **TOLD})
    ends = run_both(folder)
    assert isinstance(ends.alice, AgreementError)
    assert "tell_alice" in ends.alice.message


@pytest.mark.parametrize(
    ("agreement", "reason"),
    [
        ({"mechanism": "sealed", **TOLD, "held-out": 0}, "there are none"),
        ({"mechanism": "label-rr", "epsilon": 1.0, "tell-epsilon": 1.0}, "she is told nothing"),
        ({"mechanism": "sealed", **TOLD, "tell-epsilon": 1.0}, "every training label"),
        ({"mechanism": "none", **TOLD, "tell-epsilon": 1.0}, "every training label"),
    ],
)
def test_what_cannot_be_told_is_refused(folder, agreement, reason):
    with pytest.raises(ConfigError, match=reason):
        PartyConfig.read(write_config(folder, "bob", agreement=agreement))


@pytest.mark.parametrize(
    "quality",
    [
        Released.unprotected(np.array([101, 50])),
        Released.unprotected(np.array([50])),
        Released(np.array([50, 50]), NoisyAccuracy(1.0)),
    ],
)
def test_alice_refuses_what_was_not_agreed(folder, quality):
    set_up(folder, **MECHANISMS["none"])
    config = PartyConfig.read(folder / "alice.toml")
    party = Party(config, Wire().endpoint(serves=True), Callbacks())
    inputs = AliceInputs(
        party.tables.train, party.terms, KeyedEntropy.from_seed(1), held_out=party.tables.held_out
    )
    program = hear(inputs, 3)
    next(program)
    with pytest.raises(RemoteProtocolError, match="not what was agreed"):
        program.send(HeldOutQuality(quality))
