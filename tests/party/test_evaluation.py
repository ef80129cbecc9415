"""What Bob makes of a training that has ended: after the last word, and for his eyes only."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.jobs.train.evaluation import assessed_training
from taciturn.jobs.train.finished import FinishedTraining, TrainedModel
from taciturn.jobs.train.result import PartyRun
from taciturn.model.share import ModelShare
from taciturn.party.array_store import EncryptedArrayStore
from taciturn.party.config import PartyConfig
from taciturn.party.session import Meeting
from taciturn.party.tables import load_tables
from taciturn.protocol.array_store import INLINE
from taciturn.results.reading import read
from taciturn.results.serialise import record_of
from tests.modules import module_of
from tests.party.sides import NEWTON, run_both, write_tables
from tests.party.sides import set_up as agree


def set_up(folder: Path, rows: int = 120, **agreed: Any) -> None:
    write_tables(folder, rows=rows)
    agree(folder, **NEWTON | {"mechanism": "sealed"} | agreed)


@pytest.fixture(scope="module")
def newton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newton")
    set_up(folder, rows=300, **{"passes": 12, "held-out": 0.3})
    alice, bob = run_both(folder).records
    (folder / "results.json").write_text(json.dumps([alice, bob]))
    return folder


def test_bob_is_told_what_the_partner_adds(newton):
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    alice, bob = json.loads((newton / "results.json").read_text())
    tables = load_tables(PartyConfig.read(newton / "bob.toml"))
    assert tables.labels is not None
    assert tables.held_out is not None
    assert tables.held_out_labels is not None
    columns, truth = tables.train.values[:, :-1], tables.held_out_labels.values
    fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(columns, tables.labels.values)
    scores = fitted.decision_function(tables.held_out.values[:, :-1])
    assert bob["bob_alone"]["auc"] == pytest.approx(roc_auc_score(truth, scores), abs=1e-9)
    held_out, added = bob["metrics"]["held_out"], bob["partner_adds"]
    assert added["auc"] == pytest.approx(held_out["auc"] - bob["bob_alone"]["auc"])
    assert added["low"] <= added["auc"] <= added["high"]
    assert held_out["auc_low"] <= held_out["auc"] <= held_out["auc_high"]
    assert bob["converged"] is True
    assert bob["diverged"] is False
    assert not {"bob_alone", "partner_adds", "converged", "diverged"} & alice.keys()
    kept = ModelShare.load(newton / "bob.model.json").metrics
    assert kept["held_out"] == bob["metrics"]["held_out"]
    assert kept["partner_adds"] == bob["partner_adds"]
    assert ModelShare.load(newton / "alice.model.json").metrics == {}


def test_nothing_is_computed_of_labels_before_the_way_is_closed(tmp_path, monkeypatch):
    """A stop in the middle of it loses nothing, and Alice has long been told farewell."""
    set_up(tmp_path)
    # Scores of many rows wait for it in a file of their own.
    monkeypatch.setattr(module_of(EncryptedArrayStore), "LEAST_BYTES", 1)
    order: list[str] = []

    def stopped(*_: Any) -> None:
        order.append("assessed")
        raise KeyboardInterrupt

    finish = Meeting.finish
    monkeypatch.setattr(module_of(assessed_training), "metrics_of", stopped)

    def finished(meeting: Meeting, seconds: float) -> bool:
        confirmed = finish(meeting, seconds)
        order.append(f"{meeting.role} finished")
        return confirmed

    monkeypatch.setattr(Meeting, "finish", finished)
    ends = run_both(tmp_path)
    assert isinstance(ends.bob, KeyboardInterrupt)
    assert ends.alice.peer_confirmed
    # exact: the test's own notes
    assert order.index("bob finished") < order.index("assessed")
    assert ModelShare.load(tmp_path / "bob.model.json").metrics == {}
    assert (tmp_path / "bob-state" / "results" / "scores-0").exists()
    monkeypatch.undo()
    _, bob = run_both(tmp_path).records
    assert not (tmp_path / "bob-state" / "results").exists()
    assert bob["partner_adds"].keys() == {"auc", "low", "high"}
    assert bob["symmetry"] == {"largest": 0, "passed": True}
    assert "held_out" in ModelShare.load(tmp_path / "bob.model.json").metrics


def shuffle_labels(table: Path) -> None:
    """No weights separate them: some rows lie on the wrong side, and far from it."""
    frame = pl.read_csv(table)
    order = np.random.default_rng(1).permutation(frame.height)
    frame.with_columns(sick=frame["sick"].gather(order)).write_csv(table)


def test_a_worthless_model_is_bobs_secret(tmp_path):
    """Steps that are far too long: the loss is that of no model. Alice cannot tell."""
    sizes = []
    for name, rate in (("raw", 5e4), ("fit", 0.05)):
        folder = tmp_path / name
        folder.mkdir()
        write_tables(folder, rows=60)
        if name == "raw":
            shuffle_labels(folder / "bob.csv")
        agree(folder, **{"mechanism": "none", "learning-rate": rate})
        alice, bob = run_both(folder).records
        sizes.append((alice["run"]["frames_received"], alice["run"]["frames_sent"]))
        assert alice["stopped"] is None
        assert bob["diverged"] is (name == "raw")
        assert "diverged" not in alice
    assert sizes[0] == sizes[1]


def test_without_held_out_rows_there_is_no_comparison(tmp_path):
    set_up(tmp_path, rows=60, **{"held-out": 0})
    _, bob = run_both(tmp_path).records
    assert "partner_adds" not in bob
    assert bob["converged"] in (True, False)


def test_a_training_that_ended_survives_its_record(newton):
    bob = json.loads((newton / "results.json").read_text())[1]
    scores = np.array([0.1, -math.inf, 3e300])
    run = read(PartyRun, bob)
    trained = TrainedModel(number=0, held_out_scores=INLINE.put("scores-0", scores))
    ended = FinishedTraining(trained=(trained,), figures=run.run, ledger=run.ledger)
    again = read(FinishedTraining, json.loads(json.dumps(record_of(ended))))
    assert np.array_equal(INLINE.get(again.trained[0].held_out_scores)(), scores)
    assert again == ended
    assert not again.assessed
