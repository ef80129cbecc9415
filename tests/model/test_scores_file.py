"""Scores beside a model: as they were, for their owner, and refused where they are not whole."""

from __future__ import annotations

import json

import numpy as np
import pytest

from taciturn.data.prepare import fit
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import FileError
from taciturn.model.archive import archive_model
from taciturn.model.scores_file import ScoredRows, StoredScores, scores_path
from tests.model.models import people, share_of


def kept(session: str = "ab" * 16) -> StoredScores:
    train = ScoredRows(np.linspace(-3, 3, 7) / 3, np.arange(7) % 2)
    held_out = ScoredRows(np.array([0.1, -1e300]), np.array([1, 0]))
    return StoredScores(session, train, held_out)


def test_scores_come_back_bit_for_bit_and_belong_to_their_owner(tmp_path):
    path, scores = tmp_path / "bob.model.scores", kept()
    scores.save(path)
    again = StoredScores.load(path)
    assert again.session == scores.session
    for one, other in ((again.train, scores.train), (again.held_out, scores.held_out)):
        assert one is not None
        assert other is not None
        assert one.scores.tolist() == other.scores.tolist()
        assert one.labels.tolist() == other.labels.tolist()
    assert path.stat().st_mode & 0o777 == 0o600
    assert "0.1" not in repr(scores)


@pytest.mark.parametrize("absent", ["train", "held_out"])
def test_either_set_may_be_absent(tmp_path, absent):
    path = tmp_path / "x.scores"
    rows = kept()
    StoredScores(
        "s",
        **{name: None if name == absent else getattr(rows, name) for name in ("train", "held_out")},
    ).save(path)
    again = StoredScores.load(path)
    assert getattr(again, absent) is None
    assert (again.train or again.held_out) is not None


def test_what_is_not_whole_is_refused(tmp_path):
    path = tmp_path / "x.scores"
    kept().save(path)
    whole = path.read_bytes()
    line, _, body = whole.partition(b"\n")
    record = json.loads(line)
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    wrong = {
        "cut": whole[:-1],
        "longer": whole + b"\0",
        "changed": bytes(flipped),
        "no line": body,
        "empty": b"",
        "more rows": json.dumps({**record, "train": 10**12}).encode() + b"\n" + body,
        "less than none": json.dumps({**record, "train": -1}).encode() + b"\n" + body,
        "no number": json.dumps({**record, "train": "7"}).encode() + b"\n" + body,
        "other kind": json.dumps({**record, "format": "x"}).encode() + b"\n" + body,
        "newer": json.dumps({**record, "version": 9}).encode() + b"\n" + body,
        "a list": b"[1]\n" + body,
    }
    for name, content in wrong.items():
        path.write_bytes(content)
        with pytest.raises(FileError) as refused:
            StoredScores.load(path)
        assert refused.value.hint, name
    path.unlink()
    with pytest.raises(FileError):
        StoredScores.load(path)


def test_scores_go_aside_with_their_model(tmp_path):
    hers, _ = people(30)
    path = tmp_path / "bob.model.json"
    share = share_of(fit(hers, DEFAULTS), "alice")
    share.save(path)
    kept(share.session).save(scores_path(path))
    aside = archive_model(path, "cd" * 16)
    assert aside is not None
    assert not scores_path(path).exists()
    assert StoredScores.load(scores_path(aside)).session == share.session
