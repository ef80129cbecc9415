"""Encrypted records: whole, in order, under one key, or a named error."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import OutputError, StateError
from taciturn.party.encrypted_log import MAGIC, EncryptedLog
from tests.expected import refused
from tests.modules import module_of
from tests.system import small_disk

KEY, OTHER = bytes(range(32)), bytes(32)
# Its magic, version and salt.
HEAD = len(MAGIC) + 1 + 32


def written(path: Path, records: list[bytes]) -> None:
    encrypted_log = EncryptedLog.create(path, KEY, records[:1])
    for record in records[1:]:
        encrypted_log.append(record)
    encrypted_log.sync()
    encrypted_log.close()


def reread(path: Path, key: bytes = KEY) -> list[bytes]:
    encrypted_log, records = EncryptedLog.open(path, key)
    encrypted_log.close()
    return records


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=8))
def test_records_come_back_in_order(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("vault") / "journal"
    written(path, records)
    assert reread(path) == records


def test_nothing_of_a_record_is_readable_and_only_its_owner_may_try(tmp_path):
    path = tmp_path / "journal"
    written(path, [b"a secret key" * 10, b"a secret key" * 10])
    data = path.read_bytes()
    assert b"secret" not in data
    assert path.stat().st_mode & 0o777 == 0o600
    boxes = data[-2 * (120 + 16 + 4) :]
    assert boxes[: len(boxes) // 2] != boxes[len(boxes) // 2 :]


def test_cut_anywhere_the_whole_records_remain_and_writing_goes_on(tmp_path):
    path = tmp_path / "journal"
    written(path, [b"first", b"second", b"third"])
    data = path.read_bytes()
    ends = [HEAD]
    for record in (b"first", b"second", b"third"):
        ends.append(ends[-1] + 4 + len(record) + 16)
    for size in range(ends[1], len(data)):
        path.write_bytes(data[:size])
        encrypted_log, records = EncryptedLog.open(path, KEY)
        assert records == [b"first", b"second", b"third"][: sum(end <= size for end in ends[1:])]
        encrypted_log.append(b"again")
        encrypted_log.close()
        assert reread(path) == [*records, b"again"]


def test_no_nonce_is_used_twice(tmp_path):
    """A cut record and the one that takes its place are sealed under different keys.

    Whoever has a copy of the file from before and one from after could else add the two boxes up.
    """
    path = tmp_path / "journal"
    written(path, [b"first", b"second"])
    before = path.read_bytes()
    path.write_bytes(before[:-3])
    encrypted_log, _ = EncryptedLog.open(path, KEY)
    encrypted_log.append(b"SECOND")
    encrypted_log.close()
    after = path.read_bytes()
    salts = [data[len(MAGIC) + 1 : len(MAGIC) + 33] for data in (before, after)]
    assert salts[0] != salts[1]
    streams = [data[-22:-16] for data in (before, after)]
    mixed = bytes(one ^ two for one, two in zip(*streams, strict=True))
    assert mixed != bytes(one ^ two for one, two in zip(b"second", b"SECOND", strict=True))


def test_a_last_record_of_garbage_was_never_acted_upon(tmp_path):
    """After a power cut a file may have its new length, but not its new content."""
    path = tmp_path / "journal"
    written(path, [b"first", b"second"])
    data = path.read_bytes()
    path.write_bytes(data[:-10] + bytes(10))
    assert reread(path) == [b"first"]


def altered(data: bytes) -> bytes:
    """One bit of the first record."""
    place = HEAD + 4 + 3
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def swapped(data: bytes) -> bytes:
    """The last two records change places."""
    size = 4 + 5 + 16
    one, two, three = (data[HEAD + n * size : HEAD + (n + 1) * size] for n in range(3))
    return data[:HEAD] + one + three + two


@pytest.mark.parametrize(
    "damage",
    [
        altered,
        swapped,
        lambda data: b"",
        lambda data: MAGIC.lower() + data[len(MAGIC) :],
        lambda data: MAGIC + b"\x09" + data[len(MAGIC) + 1 :],
        lambda data: data[: HEAD + 25] + b"\xff" * 4 + data[HEAD + 29 :],
        lambda data: None,
    ],
    ids=["altered", "swapped", "empty", "another file", "another version", "length", "absent"],
)
def test_what_is_not_as_it_was_written_is_refused(tmp_path, damage):
    path = tmp_path / "journal"
    written(path, [b"first", b"secnd", b"third"])
    data = damage(path.read_bytes())
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    with refused(StateError, names=path):
        EncryptedLog.open(path, KEY)


@pytest.mark.parametrize("records", [[b"one"], [b"one", b"two"]])
def test_another_key_is_refused(tmp_path, records):
    written(tmp_path / "journal", records)
    with refused(StateError):
        EncryptedLog.open(tmp_path / "journal", OTHER)


@pytest.mark.parametrize("when", ["create", "append", "sync"])
def test_a_full_disk_is_said_in_words(tmp_path, monkeypatch, when):
    path = tmp_path / "journal"
    encrypted_log = EncryptedLog.create(path, KEY, [b"first"])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    if when == "append":
        monkeypatch.setattr(module_of(EncryptedLog), "_write_all", full)
    acts: dict[str, Callable[[], Any]] = {
        "create": lambda: EncryptedLog.create(tmp_path / "other", KEY, [b"first"]),
        "append": lambda: encrypted_log.append(b"second"),
        "sync": encrypted_log.sync,
    }
    with refused(OutputError, names=os.strerror(errno.ENOSPC)):
        acts[when]()
    encrypted_log.close()


def test_a_replacement_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    written(path, [b"old"])

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError):
        EncryptedLog.create(path, KEY, [b"new"])
    monkeypatch.undo()
    assert reread(path) == [b"old"]


def test_resuming_says_how_much_room_it_takes(tmp_path):
    """The journal takes more than half of the disk; one that takes less is resumed."""
    with small_disk(tmp_path, 8 << 20) as disk:
        path = disk / "journal"
        written(path, [bytes(1 << 20)] * 5)
        before = path.read_bytes()
        with refused(OutputError, names=("5.0 MiB", "3.0 MiB")):
            reread(path)
        assert path.read_bytes() == before
        assert os.listdir(disk) == ["journal"]
        path.unlink()
        written(path, [bytes(1 << 20)] * 3)
        assert len(reread(path)) == 3


def test_a_copy_that_finds_no_room_is_taken_away_again(tmp_path):
    with small_disk(tmp_path, 4 << 20) as disk:
        with refused(OutputError, names=os.strerror(errno.ENOSPC)):
            EncryptedLog.create(disk / "journal", KEY, [bytes(5 << 20)])
        assert os.listdir(disk) == []
