"""What Bob tells Alice of the model by agreement: the same on both sides, once, and paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

from taciturn.jobs.train.report import party_blocks
from taciturn.model.share import ModelShare
from taciturn.protocol.observations import QualityTold, Signal
from taciturn_audit.recording import RecordedSession
from taciturn_audit.views.alice_view import AliceView
from taciturn_risk.scorecard.card import card
from tests.party.sides import (
    MECHANISMS,
    record,
    run_both,
    set_up,
    write_tables,
)
from tests.party.test_told_quality import SEALED, TOLD
from tests.report.test_terminal import shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tables(tmp_path, rows=80)
    return tmp_path


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "agreed", [MECHANISMS["none"], MECHANISMS["hybrid"], SEALED], ids=["none", "hybrid", "sealed"]
)
def test_alice_has_bobs_figures_in_whole_per_cent(folder, agreed):
    set_up(folder, **agreed, **TOLD)
    ends = run_both(folder, act=record(folder))
    alice, bob = ends.records
    exact = bob["metrics"]["held_out"]
    quality = alice["told_quality"]
    assert quality == bob["told_quality"]
    assert quality["rows"] == bob["held_out_rows"]
    for figure in ("accuracy", "auc"):
        assert quality[figure] == pytest.approx(exact[figure], abs=0.005001)
        assert quality[figure] == round(quality[figure], 2)
    assert bob["ledger"]["label_epsilon_total"] == "inf"
    text = shown(party_blocks(ends.alice))
    for name in ("accuracy", "auc"):
        assert f"{round(100 * quality[name])} %" in text
    model = ModelShare.load(folder / "alice.model.json")
    assert model.metrics == {"told_quality": quality}
    assert f"{round(100 * quality['auc'])} %" in shown(card(model).blocks(3))
    # Her view has it, for whichever attack needs it.
    session = RecordedSession.read(folder / "alice.transcript", folder / "alice.toml")
    assert isinstance(session.view, AliceView)
    (seen,) = session.view.observations.of_kind(QualityTold)
    assert (seen.quality.accuracy, seen.quality.auc) == (quality["accuracy"], quality["auc"])
    assert seen.signal is Signal.QUALITY
