"""Models of earlier sessions stay, under names of their own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from taciturn.errors import FileError, OutputError
from taciturn.model.archive import archive_model, listed_models
from taciturn.model.share import ModelShare
from tests.expected import refused
from tests.model.test_share import share

FIRST, SECOND = "a1" * 16, "b2" * 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model of the first session, written on a known day."""
    path = tmp_path / "alice.model.json"
    share(session=FIRST).save(path)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def test_an_earlier_model_gets_a_name_with_its_day_and_session(path):
    before = path.read_bytes()
    kept = archive_model(path, SECOND)
    assert kept is not None
    assert kept.name == "alice.model.2023-11-14.a1a1a1a1.json"
    assert path.read_bytes() == kept.read_bytes() == before
    share(session=SECOND).save(path)
    assert ModelShare.load(kept).session == FIRST
    assert ModelShare.load(path).session == SECOND
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_the_same_session_written_again_and_no_model_at_all_leave_nothing(path):
    assert archive_model(path, FIRST) is None
    path.unlink()
    assert archive_model(path, SECOND) is None
    assert list(path.parent.iterdir()) == []


def test_a_stop_before_the_new_model_makes_no_second_copy(path):
    assert archive_model(path, SECOND) == archive_model(path, SECOND)
    assert len(list(path.parent.iterdir())) == 2


def test_what_is_no_model_is_kept_too_and_no_name_is_taken_twice(path):
    kept = archive_model(path, SECOND)
    assert kept is not None
    kept.unlink()
    kept.write_text("precious")
    another = archive_model(path, SECOND)
    assert another is not None
    assert another.name == "alice.model.2023-11-14.a1a1a1a1-2.json"
    path.unlink()
    path.write_text("also precious")
    third = archive_model(path, SECOND)
    assert third is not None
    # exact: the test's own content
    assert third.read_text() == "also precious"
    assert kept.read_text() == "precious"


def test_a_file_system_without_second_names_gets_a_copy(path, monkeypatch):
    def refuse(*arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    kept = archive_model(path, SECOND)
    assert kept is not None
    assert kept.read_bytes() == path.read_bytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_where_it_cannot_be_kept_nothing_is_lost(path, monkeypatch):
    def refuse(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "open", refuse)
    with refused(OutputError):
        archive_model(path, SECOND)
    monkeypatch.undo()
    assert ModelShare.load(path).session == FIRST


def test_models_are_listed_the_newest_first(path):
    archive_model(path, SECOND)
    share(session=SECOND).save(path)
    (path.parent / "alice.model.2020-01-01.00000000.json").write_text("cut")
    (path.parent / "alice.model.notes.json").write_text("{}")
    (path.parent / "bob.model.json").write_text("{}")
    listed = sorted(listed_models(path).models, key=lambda model: not model.newest)
    newest, *earlier = listed
    assert (newest.file, newest.session, newest.newest) == (str(path), SECOND, True)
    assert {(model.session, model.problem is None) for model in earlier} == {
        (FIRST, True),
        (None, False),
    }
    assert listed_models(path).models[0].newest
    path.unlink()
    assert len(listed_models(path).models) == 2


def test_no_model_at_all_is_an_error(tmp_path):
    for path in (tmp_path / "none.json", tmp_path / "nowhere" / "none.json"):
        with refused(FileError, names=path):
            listed_models(path)
