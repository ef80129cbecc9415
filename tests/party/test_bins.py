"""Bins in a real party's file: trained, predicted, kept on disk, agreed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taciturn.errors import AgreementError
from taciturn.jobs.train.job import TrainJob
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from tests.expected import refused
from tests.jobs.predict.test_sides import ROLES, answers, expected, in_threads, question, write_new
from tests.party.sides import NEWTON, run_both, write_config, write_tables

HERS = {"bins.mean_radius": [12, 15, 18], "bins.mean_texture": 4, "impute": "bin"}
HIS = {"bins": 6, "impute": "bin"}
WIDTH = 3 + 1 + 3 + 1 + 4


def written(folder: Path, **changes: dict[str, Any]) -> Path:
    write_tables(folder)
    agreed = {"mechanism": "sealed", **NEWTON, **changes.pop("agreement", {})}
    for role, data in (("alice", HERS), ("bob", HIS)):
        write_config(folder, role, agreement=agreed, data=data, **changes)
    return folder


def config(folder: Path, role: str = "bob", **changes: Any) -> PartyConfig:
    data = {**(HERS if role == "alice" else HIS), **changes.pop("data", {})}
    agreed = {"mechanism": "sealed", **NEWTON, **changes.pop("agreement", {})}
    return PartyConfig.read(write_config(folder, role, agreement=agreed, data=data, **changes))


def test_two_parties_train_and_predict_with_bins_of_every_kind(tmp_path):
    """Encrypted: new rows lie in bins without a training row, and lack values that none lacked."""
    folder = written(tmp_path)
    write_new(folder)
    hers, his = run_both(folder).records
    alice, bob = (ModelShare.load(folder / f"{role}.model.json") for role in ROLES)
    assert len(alice.columns) == WIDTH
    assert len(bob.columns) == 3 * (5 + 1) + 1
    answer = answers(in_threads(folder, {role: question(folder, role) for role in ROLES}))[1]
    wanted, slack = expected(folder)
    scores = {row.id: row.score for row in answer.rows()}
    assert scores.keys() == wanted.keys()
    for name, score in scores.items():
        assert abs(score - wanted[name]) <= slack
    assert his["rows"] == hers["rows"]


def test_an_agreed_number_of_columns_holds_for_given_edges(tmp_path):
    folder = written(tmp_path, agreement={"alice-columns": WIDTH})
    ends = run_both(folder, act=lambda party: party.dry_run())
    assert {type(ends.alice).__name__, type(ends.bob).__name__} == {"DryRun"}
    fewer = config(folder, "alice", agreement={"alice-columns": WIDTH - 1})
    with refused(AgreementError, names=WIDTH - 1):
        TrainJob().prepare(fewer)
