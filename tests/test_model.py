"""A model's file: the same to the last bit, whole or not at all, for its owner alone."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.own import DEFAULTS
from tacit.data.prepare import fit
from tacit.errors import FileError, OutputError
from tacit.model import ModelShare, write_private

FRAME = pl.DataFrame({"age": [31.0, 44.0, 58.0, 20.0], "town": ["A", "B", "A", "C"]})


def share(**changes: Any) -> ModelShare:
    plan = fit(FRAME, DEFAULTS)
    found = ModelShare(
        role="alice",
        columns=plan.columns,
        weights=np.linspace(-1, 1, len(plan.columns)) / 3,
        preparation=plan,
        agreement={"mechanism": "add", "epsilon": 1.0},
        session="ab" * 16,
        rows=4,
        data_digest="cd" * 32,
        metrics={"train": {"auc": 0.5}},
        ledger={"label_epsilon_total": float("inf")},
        notes=("a note",),
    )
    return replace(found, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.json"


def test_what_is_written_is_read_back(path):
    before = share()
    before.save(path)
    after = ModelShare.load(path)
    assert after.weights.tobytes() == before.weights.tobytes()
    assert after.columns == before.columns
    assert after.preparation == before.preparation
    assert after.notes == before.notes
    assert (after.role, after.session, after.rows) == ("alice", "ab" * 16, 4)
    assert after.agreement == before.agreement
    assert after.ledger == {"label_epsilon_total": "inf"}
    assert np.array_equal(after.preparation.apply(FRAME), before.preparation.apply(FRAME))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=8))
def test_weights_come_back_to_the_last_bit(tmp_path_factory, weights):
    path = tmp_path_factory.mktemp("model") / "model.json"
    names = tuple(f"c{number}" for number in range(len(weights)))
    before = np.array(weights, dtype=np.float64)
    share(columns=names, weights=before).save(path)
    assert ModelShare.load(path).weights.tobytes() == before.tobytes()


def test_a_side_without_columns_has_a_model_too(path):
    share(columns=(), weights=np.empty(0)).save(path)
    assert ModelShare.load(path).weights.shape == (0,)


def test_only_the_owner_may_read_it_whatever_was_there_before(path):
    path.write_text("old")
    path.chmod(0o644)
    share().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_write_that_fails_leaves_the_old_file_whole(path, monkeypatch):
    share().save(path)
    before = path.read_bytes()

    def fails(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OutputError, match="No space left"):
        share(session="another").save(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_an_unwritable_folder_is_named(tmp_path):
    for wrong in (tmp_path / "no" / "where.json", tmp_path):
        with pytest.raises(OutputError, match="cannot be written") as caught:
            share().save(wrong)
        assert caught.value.where == str(wrong)


def test_a_file_that_was_readable_by_others_before_a_stop_is_not_written_into(tmp_path):
    """A left-over of an earlier attempt keeps neither its text nor its mode."""
    left = tmp_path / "model.json.new"
    left.write_text("x" * 10_000)
    left.chmod(0o666)
    write_private(tmp_path / "model.json", "short\n")
    assert (tmp_path / "model.json").read_text() == "short\n"
    assert stat.S_IMODE((tmp_path / "model.json").stat().st_mode) == 0o600


# --- files that are not fit for use --------------------------------------------------------------


def refused(path: Path, match: str) -> None:
    with pytest.raises(FileError, match=match) as caught:
        ModelShare.load(path)
    assert caught.value.where == str(path)


def altered(path: Path, **changes: Any) -> Path:
    share().save(path)
    values = {**json.loads(path.read_text()), **changes}
    kept = {key: value for key, value in values.items() if value is not ...}
    path.write_text(json.dumps(kept))
    return path


def test_an_absent_file_and_a_folder(path, tmp_path):
    refused(path, "No such file")
    refused(tmp_path, "cannot be read")


@pytest.mark.parametrize("keep", [0, 1, 40, -2])
def test_a_cut_file(path, keep):
    share().save(path)
    path.write_text(path.read_text()[:keep])
    refused(path, "not a whole model file")


def test_bytes_that_are_no_text(path):
    path.write_bytes(b"\xff\xfe\x00")
    refused(path, "not a whole model file")


def test_something_else(path):
    for text in ("[]", "3", "{}", '{"format": "another"}'):
        path.write_text(text)
        refused(path, "not a model of tacit")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_version(path, version):
    refused(altered(path, version=version), "of version")


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": ...},
        {"session": ...},
        {"preparation": ...},
        {"surplus": 1},
        {"weights": "many"},
        {"columns": 7},
        {"preparation": {"version": 99}},
    ],
    ids=str,
)
def test_a_part_that_is_missing_wrong_or_too_many(path, changes):
    refused(altered(path, **changes), "lacks a part")


@pytest.mark.parametrize("weights", [[], [0.5], [0.1] * 9, [[0.1], [0.2], [0.3], [0.4]]])
def test_weights_of_another_length(path, weights):
    refused(altered(path, weights=weights), "do not fit its columns")
