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

from taciturn.deploy import MAGIC, Vault
from taciturn.errors import OutputError, StateError
from tests.modules import module_of
from tests.system import small_disk

KEY, OTHER = bytes(range(32)), bytes(32)


def written(path: Path, records: list[bytes]) -> None:
    vault = Vault.create(path, KEY, records[:1])
    for record in records[1:]:
        vault.append(record)
    vault.sync()
    vault.close()


def reread(path: Path, key: bytes = KEY) -> list[bytes]:
    vault, records = Vault.open(path, key)
    vault.close()
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
    ends = [len(MAGIC) + 1 + 32]
    for record in (b"first", b"second", b"third"):
        ends.append(ends[-1] + 4 + len(record) + 16)
    for size in range(ends[1], len(data)):
        path.write_bytes(data[:size])
        vault, records = Vault.open(path, KEY)
        assert records == [b"first", b"second", b"third"][: sum(end <= size for end in ends[1:])]
        vault.append(b"again")
        vault.close()
        assert reread(path) == [*records, b"again"]


def test_no_nonce_is_used_twice(tmp_path):
    """A cut record and the one that takes its place are sealed under different keys.

    Whoever has a copy of the file from before and one from after could else add the two boxes up.
    """
    path = tmp_path / "journal"
    written(path, [b"first", b"second"])
    before = path.read_bytes()
    path.write_bytes(before[:-3])
    vault, _ = Vault.open(path, KEY)
    vault.append(b"SECOND")
    vault.close()
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


def test_an_altered_record_in_the_middle_is_refused(tmp_path):
    path = tmp_path / "journal"
    written(path, [b"first", b"second", b"third"])
    data = bytearray(path.read_bytes())
    data[len(MAGIC) + 1 + 32 + 4 + 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(StateError, match="record 0 of the journal was altered"):
        Vault.open(path, KEY)


def test_swapped_records_are_refused(tmp_path):
    path = tmp_path / "journal"
    written(path, [b"first", b"secnd", b"third"])
    data = path.read_bytes()
    start, size = len(MAGIC) + 1 + 32, 4 + 5 + 16
    parts = [data[start + n * size : start + (n + 1) * size] for n in range(3)]
    path.write_bytes(data[:start] + parts[0] + parts[2] + parts[1])
    with pytest.raises(StateError, match="altered"):
        Vault.open(path, KEY)


@pytest.mark.parametrize("records", [[b"one"], [b"one", b"two"]])
def test_another_key_is_refused(tmp_path, records):
    path = tmp_path / "journal"
    written(path, records)
    with pytest.raises(StateError, match="key"):
        Vault.open(path, OTHER)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not a journal"),
        (b"something else that is long enough to have a header of its own", "not a journal"),
        (MAGIC + b"\x09" + bytes(40), "version 9"),
    ],
)
def test_other_files_are_refused(tmp_path, data, said):
    path = tmp_path / "journal"
    path.write_bytes(data)
    with pytest.raises(StateError, match=said):
        Vault.open(path, KEY)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(StateError, match="cannot be read"):
        Vault.open(tmp_path / "journal", KEY)


@pytest.mark.parametrize("when", ["create", "append", "sync"])
def test_a_full_disk_is_said_in_words(tmp_path, monkeypatch, when):
    path = tmp_path / "journal"
    vault = Vault.create(path, KEY, [b"first"])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    if when == "append":
        monkeypatch.setattr(module_of(Vault), "_write_all", full)
    acts: dict[str, Callable[[], Any]] = {
        "create": lambda: Vault.create(tmp_path / "other", KEY, [b"first"]),
        "append": lambda: vault.append(b"second"),
        "sync": vault.sync,
    }
    with pytest.raises(OutputError, match="No space left"):
        acts[when]()
    vault.close()


def test_a_replacement_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    written(path, [b"old"])

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError):
        Vault.create(path, KEY, [b"new"])
    monkeypatch.undo()
    assert reread(path) == [b"old"]


def test_resuming_says_how_much_room_it_takes(tmp_path):
    """The journal takes more than half of the disk; one that takes less is resumed."""
    with small_disk(tmp_path, 8 << 20) as disk:
        path = disk / "journal"
        written(path, [bytes(1 << 20)] * 5)
        before = path.read_bytes()
        with pytest.raises(OutputError, match=r"takes another 5\.0 MiB until it is done; 3\.0 MiB"):
            reread(path)
        assert path.read_bytes() == before
        assert os.listdir(disk) == ["journal"]
        path.unlink()
        written(path, [bytes(1 << 20)] * 3)
        assert len(reread(path)) == 3


def test_a_copy_that_finds_no_room_is_taken_away_again(tmp_path):
    with small_disk(tmp_path, 4 << 20) as disk:
        with pytest.raises(OutputError, match="No space left"):
            Vault.create(disk / "journal", KEY, [bytes(5 << 20)])
        assert os.listdir(disk) == []
