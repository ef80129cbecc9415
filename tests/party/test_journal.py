"""A session's journal: what it gives back, across checkpoints, rollback and a deleted seed."""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from pathlib import Path

import pytest

from taciturn.errors import StateError
from taciturn.party.encrypted_log import EncryptedLog, records
from taciturn.party.journal import Checkpoint, Journal, Mark, Meta, Past
from tests.expected import refused

KEY = bytes(32)
A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
SEED = b"thirty-two secret bytes of a side"
SEED_NUMBER = 1


def resumed(path: Path) -> Past:
    journal = Journal(path, KEY)
    with closing(journal):
        past = journal.resume()
    assert past is not None
    return past


@pytest.mark.parametrize("keeps", [False, True])
def test_what_was_noted_comes_back(tmp_path, keeps):
    meta = Meta({"role": "bob"}, SEED, B, keeps)
    journal = Journal(tmp_path / "journal", KEY, sync=False)
    journal.begin(meta)
    journal.met(A, C)
    journal.mark(Mark.OWN_SIGNATURE, b"of step 5")
    for frame in (b"four", b"five"):
        journal.sent(frame)
    journal.checkpoint(Checkpoint(5, 4, b"state"), {5: b"five"})
    journal.received(b"cinque")
    journal.taken()
    journal.persisted(b"kept")
    journal.sent(b"six")
    journal.mark(Mark.WAITS)
    journal.done(b"done")
    journal.close()
    past = resumed(tmp_path / "journal")
    hashes = [hashlib.sha256(frame).digest() for frame in (b"four", b"five", b"six")]
    assert past == Past(
        meta,
        A,
        Checkpoint(5, 4, b"state"),
        {5: b"five"},
        [b"six"],
        [b"cinque"],
        [b"kept"],
        b"done",
        peer_drawn=C,
        taken=[0],
        marks=[(Mark.OWN_SIGNATURE, b"of step 5"), (Mark.WAITS, b"")],
        own_hashes=hashes if keeps else [],
    )
    assert past.counts == (6, 5)
    assert past.waits_for_verdict
    # Its records, so that the format changes with its version alone.
    kinds = [record[0] for record in records(tmp_path / "journal", KEY)]
    kept = [5, 5] if keeps else []
    assert kinds == [1, 2, 3, 9, *kept, 4, 6, 7, 8, 5, 9, 10]


def test_a_session_ends_its_wait_with_a_verdict(tmp_path):
    journal = Journal(tmp_path / "journal", KEY)
    past = journal.begin(Meta({}, SEED, B))
    for mark, waits in ((Mark.WAITS, True), (Mark.VERDICT, False)):
        journal.mark(mark, b"signed")
        assert past.waits_for_verdict is waits
    journal.checkpoint(Checkpoint(), {})
    journal.close()
    assert not resumed(tmp_path / "journal").waits_for_verdict


def test_a_session_that_keeps_its_frames_has_them_in_the_order_of_the_program(tmp_path):
    """Frames arrive before the program takes them, and checkpoints come between."""
    path = tmp_path / "journal"
    journal = Journal(path, KEY, sync=False)
    journal.begin(Meta({}, SEED, B, keeps=True))
    journal.received(b"of the first")
    journal.received(b"of the second", 1)
    journal.taken(1)
    journal.sent(b"answer", 1)
    journal.checkpoint(Checkpoint(0, 0, b"state"), {}, [(Checkpoint(1, 1), {1: b"answer"})])
    journal.close()
    again = Journal(path, KEY, sync=False)
    again.resume()
    again.taken()
    again.received(b"later")
    again.taken()
    again.close()
    assert list(again.history()) == [
        ("taken", 1, b"of the second"),
        ("sent", 1, hashlib.sha256(b"answer").digest()),
        ("taken", 0, b"of the first"),
        ("taken", 0, b"later"),
    ]


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("when", ["begun", "at a checkpoint", "resumed"])
def test_a_seed_that_was_deleted_is_in_no_file_and_the_session_stays(tmp_path, keeps, when):
    path, meta = tmp_path / "journal", Meta({}, SEED, B, keeps)
    journal = Journal(path, KEY)
    journal.begin(meta)
    journal.mark(Mark.SEALED_SEED, b"for a verifier")
    journal.sent(b"frame")
    if when == "at a checkpoint":
        journal.checkpoint(Checkpoint(1, 0, b"state"), {1: b"frame"})
    elif when == "resumed":
        journal.close()
        journal = Journal(path, KEY)
        journal.resume()
    journal.delete_seed()
    # A checkpoint afterwards does not bring it back.
    journal.checkpoint(Checkpoint(1, 0, b"later"), {1: b"frame"})
    journal.sent(b"another")
    journal.close()
    past = resumed(path)
    assert past.meta.entropy == b""
    assert (past.meta.drawn, past.meta.charge_name) == (meta.drawn, meta.charge_name)
    assert past.marks == [(Mark.SEALED_SEED, b"for a verifier"), (Mark.SEED_DELETED, b"")]
    assert past.sent == [b"another"]
    assert not any(SEED in record for record in records(path, KEY, SEED_NUMBER))


def test_a_deletion_that_was_stopped_is_made_up_for(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    journal = Journal(path, KEY)
    journal.begin(Meta({}, SEED, B))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EncryptedLog, "erase", killed)
        with pytest.raises(KeyboardInterrupt):
            journal.delete_seed()
    journal.close()
    assert any(SEED in record for record in records(path, KEY, SEED_NUMBER))
    assert resumed(path).meta.entropy == b""
    assert not any(SEED in record for record in records(path, KEY, SEED_NUMBER))


@pytest.mark.parametrize("left", [1, 20, 48])
def test_a_seed_that_was_overwritten_in_part_is_read_as_deleted(tmp_path, monkeypatch, left):
    """The machine stopped while the zeros were on their way to the disk."""
    path = tmp_path / "journal"
    journal = Journal(path, KEY)
    journal.begin(Meta({}, SEED, B))
    journal.sent(b"frame")
    before = path.read_bytes()
    journal.delete_seed()
    journal.close()
    after = path.read_bytes()
    overwritten = [
        place for place, (one, two) in enumerate(zip(before, after, strict=False)) if one != two
    ]
    torn = bytearray(after)
    for place in overwritten[-left:]:
        torn[place] = before[place]
    path.write_bytes(torn)
    assert resumed(path).meta.entropy == b""
    assert path.read_bytes() == after
    # Without the mark it is another's work.
    path.write_bytes(torn[: len(before)])
    with refused(StateError, names=path):
        resumed(path)


def test_what_a_stopped_process_left_is_on_the_disk_before_it_is_sent_again(tmp_path, monkeypatch):
    path, synced = tmp_path / "journal", list[int]()
    journal = Journal(path, KEY)
    journal.begin(Meta({}, SEED, B))
    with monkeypatch.context() as patch:
        # Killed between the record and its way to the disk.
        patch.setattr(Journal, "settle", lambda _: None)
        journal.sent(b"frame")
    journal.close()
    again = Journal(path, KEY)
    past = again.resume()
    assert past is not None
    assert past.sent == [b"frame"]
    monkeypatch.setattr(os, "fsync", synced.append)
    # What a link does before it opens.
    again.settle()
    assert len(synced) == 1
    again.settle()
    assert len(synced) == 1
    again.close()


def test_an_erased_record_without_the_mark_is_refused(tmp_path):
    journal = Journal(tmp_path / "journal", KEY)
    journal.begin(Meta({}, SEED, B))
    journal.sent(b"frame")
    journal.sent(b"frame")
    journal.close()
    whole = (tmp_path / "journal").read_bytes()
    for number in (0, 1, 2):
        (tmp_path / "journal").write_bytes(whole)
        log = EncryptedLog.open(tmp_path / "journal", KEY, lambda *_: None)
        log.erase(number)
        log.close()
        with refused(StateError, names=tmp_path / "journal"):
            resumed(tmp_path / "journal")


@pytest.mark.parametrize("tail", [b"\x0b\x00", b"\x01\x00{}", b"\x02\x00seed", b"\x63"])
def test_a_record_of_no_known_kind_or_place_is_refused(tmp_path, tail):
    meta = Meta({}, b"", B)
    held = [b"\x01\x00" + meta.to_bytes(), b"\x02\x00", b"\x05\x00frame", tail]
    EncryptedLog.create(tmp_path / "journal", KEY, held).close()
    with refused(StateError, names=tmp_path / "journal"):
        resumed(tmp_path / "journal")


@pytest.mark.parametrize("held", [[], [b"\x05\x00frame"], [b"\x02\x00seed"]])
def test_a_journal_without_a_beginning_is_refused(tmp_path, held):
    EncryptedLog.create(tmp_path / "journal", KEY, held).close()
    with refused(StateError, names=tmp_path / "journal"):
        resumed(tmp_path / "journal")
