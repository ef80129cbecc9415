"""Session names: two sessions never share one, not even from copies of the same folders."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import PeerAbsent, StateError, TaciturnError
from taciturn.jobs.base import run_job
from taciturn.jobs.predict.job import PredictJob
from taciturn.model.archive import listed_models
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from tests.party.sides import (
    MECHANISMS,
    ROLES,
    Party,
    pulled_at,
    run_both,
    set_up,
    write_certificates,
    write_tables,
)
from tests.party.wires import Wire


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two parties that have started, and met nobody yet."""
    write_certificates(tmp_path / "certs")
    write_tables(tmp_path, rows=80)
    set_up(tmp_path, **MECHANISMS["sealed"])
    for role in ROLES:
        wire = Wire()
        wire.end()
        with pytest.raises(PeerAbsent):
            Party(
                PartyConfig.read(tmp_path / f"{role}.toml"), wire.endpoint(serves=role == "bob")
            ).run()
        shutil.copytree(tmp_path / f"{role}-state", tmp_path / f"{role}-copy")
    return tmp_path


def restore(folder: Path, *roles: str) -> None:
    for role in roles:
        shutil.rmtree(folder / f"{role}-state")
        shutil.copytree(folder / f"{role}-copy", folder / f"{role}-state")


def shares(folder: Path) -> list[ModelShare]:
    return [ModelShare.load(folder / f"{role}.model.json") for role in ROLES]


def test_two_trainings_from_copies_of_one_state_have_two_names_and_two_models(folder):
    run_both(folder).records  # noqa: B018 - raises where a side failed
    first = shares(folder)
    for role in ROLES:
        shutil.copy(folder / f"{role}.model.json", folder / f"{role}.first.json")
    restore(folder, *ROLES)
    run_both(folder).records  # noqa: B018
    second = shares(folder)
    assert first[0].session == first[1].session
    assert second[0].session == second[1].session != first[0].session
    # The first model is set aside, and not overwritten.
    for role in ROLES:
        kept = [entry.session for entry in listed_models(folder / f"{role}.model.json").models]
        assert first[0].session in kept

    def score(party: Party) -> Any:
        role = party.config.role
        model = folder / ("alice.first.json" if role == "alice" else "bob.model.json")
        job = PredictJob(model, folder / f"{role}.csv")
        return run_job(job, party.config, party.callbacks, party.endpoint)

    ends = run_both(folder, act=score)
    assert isinstance(ends.alice, TaciturnError)
    assert isinstance(ends.bob, TaciturnError)
    assert "session" in f"{ends.alice} {ends.bob}"


def test_a_session_that_resumes_keeps_its_name(folder):
    run_both(folder, watch=pulled_at("bob", 2))
    run_both(folder).records  # noqa: B018
    first = shares(folder)
    assert first[0].session == first[1].session


@pytest.mark.parametrize("role", ROLES)
def test_one_side_alone_that_is_restored_to_before_the_meeting_is_refused(folder, role):
    run_both(folder, watch=pulled_at("bob", 2))
    restore(folder, role)
    ends = run_both(folder)
    assert StateError in {type(ends.alice), type(ends.bob)}
