"""A model's file: the same to the last bit, whole or not at all, for its owner alone."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.prepare import Preparation, fit
from taciturn.data.rules import NumericRule
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import FileError, OutputError
from taciturn.files import canonical_json, write_private
from taciturn.model.share import ModelShare, add_metrics
from taciturn.version import __version__
from tests.expected import refused

FRAME = pl.DataFrame({"age": [31.0, 44.0, 58.0, 20.0], "town": ["A", "B", "A", "C"]})


def share(**changes: Any) -> ModelShare:
    plan = fit(FRAME, DEFAULTS)
    default = ModelShare(
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
        noise_key="ef" * 32,
    )
    return replace(default, **changes)


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


def test_metrics_are_added_to_the_file_of_their_session_alone(path):
    before, figures = share(), {"train": {"auc": 0.75}, "converged": True}
    replace(before, metrics={**before.metrics, **figures}).save(path)
    expected = path.read_bytes()
    before.save(path)
    written = path.read_bytes()
    assert not add_metrics(path, "ba" * 16, figures)
    assert path.read_bytes() == written
    assert add_metrics(path, before.session, figures)
    assert path.read_bytes() == expected
    path.write_bytes(expected.replace(b"0.75", b"0.85"))
    with pytest.raises(FileError):
        add_metrics(path, before.session, figures)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), max_size=8))
def test_weights_come_back_to_the_last_bit(tmp_path_factory, weights):
    path = tmp_path_factory.mktemp("model") / "model.json"
    plan = Preparation(tuple(NumericRule(f"c{number}") for number in range(len(weights))))
    before = np.array(weights, dtype=np.float64)
    share(columns=plan.columns, preparation=plan, weights=before).save(path)
    assert ModelShare.load(path).weights.tobytes() == before.tobytes()


@pytest.mark.parametrize("key", ["means", "whitening", "bob_share"])
def test_a_file_that_does_not_say_how_its_columns_are_centred_or_shared_is_refused(path, key):
    share().save(path)
    record = json.loads(path.read_text())
    del record[key], record["digest"]
    record["digest"] = hashlib.sha256(canonical_json(record).encode()).hexdigest()
    path.write_text(json.dumps(record))
    with refused(FileError):
        ModelShare.load(path)


def test_a_side_without_columns_has_a_model_too(path):
    share(columns=(), preparation=Preparation(()), weights=np.empty(0)).save(path)
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
    with refused(OutputError):
        share(session="another").save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_unwritable_folder_is_named(tmp_path):
    for wrong in (tmp_path / "no" / "where.json", tmp_path):
        with refused(OutputError) as caught:
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


def not_read(path: Path, *names: object) -> None:
    with refused(FileError, names=names) as caught:
        ModelShare.load(path)
    assert caught.value.where == str(path)


def altered(path: Path, **changes: Any) -> Path:
    """A file in which something is changed on purpose: its digest is made anew."""
    share().save(path)
    values = {**json.loads(path.read_text()), **changes}
    kept = {key: value for key, value in values.items() if value is not ...}
    if "digest" not in changes:
        del kept["digest"]
        kept["digest"] = hashlib.sha256(canonical_json(kept).encode()).hexdigest()
    path.write_text(json.dumps(kept))
    return path


def test_what_is_no_model_file(path, tmp_path):
    not_read(path)
    not_read(tmp_path)
    for content in (b"\xff\xfe\x00", b"[]", b"3", b"{}", b'{"format": "another"}'):
        path.write_bytes(content)
        not_read(path)


@pytest.mark.parametrize("keep", [0, 1, 40, -2])
def test_a_cut_file(path, keep):
    share().save(path)
    path.write_text(path.read_text()[:keep])
    not_read(path)


@pytest.mark.parametrize("version", [0, 3, 6, "7", None, True, 7.0])
def test_another_version(path, version):
    not_read(altered(path, version=version), version)


SCALES = {"modulus_bits": 50, "feature_bits": 9, "residue_bits": 20, "decay": 1.0}


@pytest.mark.parametrize(
    "changes",
    [
        # A part is missing or too many.
        *({name: ...} for name in ("weights", "session", "preparation")),
        {"surplus": 1},
        # Or it is of another type.
        *({"weights": "many"}, {"columns": 7}, {"preparation": {"version": 99}}),
        *({"role": "carol"}, {"session": 5}, {"ledger": []}, {"notes": [1]}),
        *({"rows": rows} for rows in ("four", True)),
        *({"share": numbers} for numbers in ([0.5], [1 << 80])),
        {"scales": {"modulus_bits": 50}},
        {"scales": {**SCALES, "feature_bits": 900}},
        {"scales": {**SCALES, "decay": "much"}},
        # Or the parts do not fit each other.
        {"columns": ["age", "town=B", "town=Z"]},
        {"scales": SCALES, "share": [1]},
        *({"weights": numbers} for numbers in ([], [0.5], [0.1] * 9, [[0.1], [0.2], [0.3]])),
        {"weights": [0.5, 0.5, "inf"]},
        # Alice alone has a key of the noise on scores.
        *({"noise_key": key} for key in ("", "ef" * 31, "EF" * 32)),
        {"role": "bob"},
    ],
    ids=str,
)
def test_a_part_that_is_missing_wrong_or_does_not_fit(path, changes):
    not_read(altered(path, **changes))


def test_where_it_comes_from_is_in_it(path):
    share(magnitude_bits=5).save(path)
    loaded = ModelShare.load(path)
    assert loaded.taciturn == __version__
    assert loaded.magnitude_bits == 5
    assert loaded.agreement_digest == share().agreement_digest
    assert loaded.agreement_digest != share(agreement={"mechanism": "none"}).agreement_digest


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": [0.5, 0.5, 0.5]},
        {"session": "ee" * 16},
        {"ledger": {"label_epsilon_total": 0.1}},
        {"digest": "0" * 64},
        {"digest": 7},
    ],
    ids=str,
)
def test_a_file_that_was_changed_and_not_digested_anew(path, changes):
    share().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    not_read(path)


@given(data=st.data())
def test_whatever_is_done_to_the_bytes_is_refused_by_name(tmp_path_factory, data):
    """Cut, flipped, filled: a FileError, or the model as it was (blanks may be lost)."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    share().save(path)
    octets = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(octets) - 1))
    kind = data.draw(st.sampled_from(["cut", "byte", "insert", "repeat"]))
    if kind == "cut":
        del octets[at:]
    elif kind == "byte":
        octets[at] = data.draw(st.integers(0, 255))
    elif kind == "insert":
        octets[at:at] = data.draw(st.binary(min_size=1, max_size=8))
    else:
        octets += octets[at:]
    path.write_bytes(octets)
    try:
        loaded = ModelShare.load(path)
    except FileError:
        return
    assert loaded.weights.tobytes() == share().weights.tobytes()
    assert (loaded.session, loaded.columns) == (share().session, share().columns)


PARTS = [field.name for field in fields(ModelShare)] + ["version", "format"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(name=st.sampled_from(PARTS), value=JSON)
def test_whatever_stands_in_a_part_is_read_or_refused_by_name(tmp_path_factory, name, value):
    """Also where somebody makes the digest anew."""
    path = tmp_path_factory.getbasetemp() / "part.json"
    try:
        altered(path, **{name: value})
    except ValueError:
        return  # not a number: no file can hold it
    try:
        loaded = ModelShare.load(path)
    except FileError:
        return
    assert loaded.weights.shape == (3,)
