"""Encrypted records: whole, in order, under one key, or a named error."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import accumulate, product
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
# A record's count, salt and proof, and the tag of its box.
RECORD_HEAD = 4 + 32 + 16
OVERHEAD = RECORD_HEAD + 16
# Before what was appended.
END = RECORD_HEAD


def written(path: Path, records: list[bytes]) -> None:
    encrypted_log = EncryptedLog.create(path, KEY, records[:1])
    for record in records[1:]:
        encrypted_log.append(record)
    encrypted_log.sync()
    encrypted_log.close()


def reread(path: Path, key: bytes = KEY) -> list[bytes]:
    encrypted_log, records = opened(path, key)
    encrypted_log.close()
    return records


def opened(
    path: Path, key: bytes = KEY, erasable: int | None = None
) -> tuple[EncryptedLog, list[bytes]]:
    records: list[bytes] = []
    log = EncryptedLog.open(path, key, lambda _, record: records.append(record), erasable)
    return log, records


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
    one, two = boxes_of(data)
    assert one[32:] != two[32:]


def test_cut_anywhere_the_whole_records_remain_and_writing_goes_on(tmp_path):
    path = tmp_path / "journal"
    written(path, [b"first", b"second", b"third"])
    data = path.read_bytes()
    ends = ends_of([b"first", b"second", b"third"])
    for size, zeros in product(range(ends[0], len(data)), (0, 1, 5000)):
        # A file system may have given the file its new length before its new content.
        path.write_bytes(data[:size] + bytes(zeros))
        encrypted_log, records = opened(path)
        # The zeros may be what is missing.
        count = sum((data[:size] + bytes(zeros)).startswith(data[:end]) for end in ends)
        assert records == [b"first", b"second", b"third"][:count]
        encrypted_log.append(b"again")
        encrypted_log.close()
        assert reread(path) == [*records, b"again"]


def ends_of(records: list[bytes]) -> list[int]:
    """Where each record ends, the first one with the end of what was created."""
    sizes = [OVERHEAD + len(record) for record in records]
    return list(accumulate(sizes[1:], initial=HEAD + sizes[0] + END))


def test_what_was_created_is_whole_or_refused_and_never_cut(tmp_path):
    path = tmp_path / "journal"
    log = EncryptedLog.create(path, KEY, [b"first", b"a checkpoint"])
    log.close()
    data = path.read_bytes()
    for size, zeros in product(range(len(data)), (0, 5000)):
        damaged = data[:size] + bytes(zeros)
        if damaged.startswith(data):
            continue
        path.write_bytes(damaged)
        with refused(StateError, names=path):
            opened(path)
        assert path.read_bytes() == damaged


def test_no_flipped_bit_hides_the_records_after_it(tmp_path):
    """Neither in what was created nor in what was appended; the file stays as it is."""
    path = tmp_path / "journal"
    written(path, [b"first", b"second", b"third"])
    data = path.read_bytes()
    last_box = len(data) - len(b"third") - 16
    for place in range(last_box):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with refused(StateError, names=path):
            opened(path)
        assert path.read_bytes() == damaged


def test_what_a_stop_cut_stays_until_something_is_appended(tmp_path):
    path = tmp_path / "journal"
    written(path, [b"first", b"second"])
    cut = path.read_bytes()[:-3]
    path.write_bytes(cut)
    assert reread(path) == [b"first"]
    assert path.read_bytes() == cut


def test_a_record_that_is_too_long_to_be_read_is_not_written(tmp_path, monkeypatch):
    path = tmp_path / "journal"
    written(path, [b"first"])
    monkeypatch.setattr(module_of(EncryptedLog), "_LONGEST", 100 + 16)
    encrypted_log, _ = opened(path)
    for write in (
        lambda: encrypted_log.append(bytes(101)),
        lambda: EncryptedLog.create(path, KEY, [b"new", bytes(101)]),
    ):
        with refused(StateError, names=(path, 101)):
            write()
    encrypted_log.append(bytes(100))
    encrypted_log.close()
    assert reread(path) == [b"first", bytes(100)]
    assert os.listdir(tmp_path) == ["journal"]


def boxes_of(data: bytes) -> list[bytes]:
    """The records of a file, each with its salt; not the end of what was created."""
    boxes, at = [], HEAD
    while at < len(data):
        start, count = at + RECORD_HEAD, int.from_bytes(data[at : at + 4], "little")
        if count:
            boxes.append(data[at + 4 : at + 36] + data[start : start + count])
        at = start + count
    return boxes


def continued(path: Path, before: bytes, record: bytes) -> bytes:
    """The file after a copy of it was put back, and a record added."""
    path.write_bytes(before)
    encrypted_log, _ = opened(path)
    encrypted_log.append(record)
    encrypted_log.close()
    return path.read_bytes()


@pytest.mark.parametrize("cut", [0, 3, 25])
def test_two_continuations_of_one_copy_never_use_one_key(tmp_path, cut):
    """Neither does a record that was cut and the one in its place.

    Whoever has both files could else add the two boxes up.
    """
    path = tmp_path / "journal"
    written(path, [b"first", b"second"])
    whole = path.read_bytes()
    files = [whole, *(continued(path, whole[: len(whole) - cut], b"SECOND") for _ in range(3))]
    last = [boxes_of(data)[-1] for data in files]
    assert len({box[:32] for box in last}) == len(files)
    streams = {
        bytes(one ^ two for one, two in zip(box[32:38], text, strict=True))
        for box, text in zip(last, [b"second", *[b"SECOND"] * 3], strict=True)
    }
    assert len(streams) == len(files)


def test_a_record_of_another_continuation_is_refused(tmp_path):
    path = tmp_path / "journal"
    written(path, [b"first"])
    before = path.read_bytes()
    one, two = (continued(path, before, b"second") for _ in range(2))
    one, two = (continued(path, data, b"third") for data in (one, two))
    end = len(before) + 6 + OVERHEAD
    path.write_bytes(one[:end] + two[end:] + two[end:])
    with refused(StateError, names=path):
        opened(path)


def test_a_record_that_was_erased_is_gone_and_the_others_stay(tmp_path):
    path = tmp_path / "journal"
    EncryptedLog.create(path, KEY, [b"first", b"a seed", b"third"]).close()
    box = boxes_of(path.read_bytes())[1][32:]
    encrypted_log, _ = opened(path)
    encrypted_log.erase(1)
    assert box not in path.read_bytes()
    encrypted_log.append(b"fourth")
    encrypted_log.close()
    again, records = opened(path, erasable=1)
    again.close()
    assert records == [b"first", b"", b"third", b"fourth"]
    for other in (None, 0, 2):
        with refused(StateError, names=path):
            opened(path, erasable=other)


def test_what_a_full_disk_took_of_a_record_hides_none_after_it(tmp_path):
    with small_disk(tmp_path, 4 << 20) as disk:
        path = disk / "journal"
        written(path, [b"first"])
        encrypted_log, _ = opened(path)
        with refused(OutputError, names=os.strerror(errno.ENOSPC)):
            encrypted_log.append(bytes(5 << 20))
        encrypted_log.append(b"second")
        encrypted_log.close()
        assert reread(path) == [b"first", b"second"]


def test_a_last_record_of_garbage_was_never_acted_upon(tmp_path):
    """After a power cut a file may have its new length, but not its new content."""
    path = tmp_path / "journal"
    written(path, [b"first", b"second"])
    data = path.read_bytes()
    path.write_bytes(data[:-10] + bytes(10))
    assert reread(path) == [b"first"]


def altered(data: bytes) -> bytes:
    """One bit of the first record."""
    place = HEAD + RECORD_HEAD + 3
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def swapped(data: bytes) -> bytes:
    """The last two records change places."""
    start, middle, _ = ends_of([b"first", b"secnd", b"third"])
    return data[:start] + data[middle:] + data[start:middle]


@pytest.mark.parametrize(
    "damage",
    [
        altered,
        swapped,
        lambda data: b"",
        lambda data: MAGIC.lower() + data[len(MAGIC) :],
        lambda data: MAGIC + b"\x08" + data[len(MAGIC) + 1 :],
        lambda data: data[: HEAD + 5 + OVERHEAD] + b"\xff" * 4 + data[HEAD + 9 + OVERHEAD :],
        lambda data: data + b"\x01" * RECORD_HEAD,
        lambda data: None,
    ],
    ids=[
        "altered",
        "swapped",
        "empty",
        "another file",
        "another version",
        "length",
        "longer",
        "absent",
    ],
)
def test_what_is_not_as_it_was_written_is_refused(tmp_path, damage):
    path = tmp_path / "journal"
    written(path, [b"first", b"secnd", b"third"])
    data = damage(path.read_bytes())
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    with refused(StateError, names=path):
        opened(path)


@pytest.mark.parametrize("records", [[b"one"], [b"one", b"two"]])
def test_another_key_is_refused(tmp_path, records):
    written(tmp_path / "journal", records)
    with refused(StateError):
        opened(tmp_path / "journal", OTHER)


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


def test_a_file_that_fills_the_disk_is_continued_in_place(tmp_path):
    with small_disk(tmp_path, 8 << 20) as disk:
        path = disk / "journal"
        written(path, [bytes(1 << 20)] * 6)
        encrypted_log, records = opened(path)
        encrypted_log.append(b"another")
        encrypted_log.close()
        assert len(records) == 6
        assert len(reread(path)) == 7
        assert os.listdir(disk) == ["journal"]


def test_a_copy_that_finds_no_room_is_taken_away_again(tmp_path):
    with small_disk(tmp_path, 4 << 20) as disk:
        with refused(OutputError, names=os.strerror(errno.ENOSPC)):
            EncryptedLog.create(disk / "journal", KEY, [bytes(5 << 20)])
        assert os.listdir(disk) == []
