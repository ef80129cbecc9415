r"""A file of encrypted records that only grows, for what a party must not lose and nobody may read.

::

    file   = "TACITURN-JOURNAL\n" version:u8 salt:32 record*
    record = count:u32 box                       box = ChaCha20-Poly1305(kind:u8 body)

The key of a file comes from the party's own key and the file's salt (HKDF-SHA256), a record's nonce
is its number: records can be neither swapped nor taken from another file. A file that was cut in
the middle of its last record is read up to there: what is not whole was never acted upon. Anyone
who resumes with a file writes it anew under another salt, so that no nonce is ever used twice;
until that is done the disk holds both.

**Guarantee.** Without the key a file tells how many records it holds and how long they are.

**Assumes.** The key lies elsewhere than the file: anyone who has both has everything.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from taciturn import files
from taciturn.errors import OutputError, StateError
from taciturn.files import sync_folder
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint
from taciturn.version import JOURNAL_VERSION

MAGIC = b"TACITURN-JOURNAL\n"
KEY_BYTES = 32
_SALT = 32
_HEAD = len(MAGIC) + 1 + _SALT
_COUNT = struct.Struct("<I")
_LONGEST = 1 << 30
_KEY = (
    "use the key with which the training started; if the state folder was moved since, name that "
    "key as [state] key"
)


class _RecordCipher:
    """Seals and opens the records of one file."""

    def __init__(self, key: bytes, salt: bytes) -> None:
        derived = HKDF(SHA256(), KEY_BYTES, salt, b"taciturn journal").derive(key)
        self._cipher = ChaCha20Poly1305(derived)
        self.number = 0

    def seal(self, record: bytes) -> bytes:
        box = self._cipher.encrypt(self._nonce(), record, None)
        self.number += 1
        return _COUNT.pack(len(box)) + box

    def open(self, box: bytes) -> bytes:
        record = self._cipher.decrypt(self._nonce(), box, None)
        self.number += 1
        return record

    def _nonce(self) -> bytes:
        return self.number.to_bytes(12, "little")


class EncryptedLog:
    """A file of encrypted records, open for writing; no other file has its salt."""

    def __init__(self, path: Path, stream: BinaryIO, boxes: _RecordCipher, salt: bytes) -> None:
        self._path, self._stream, self._boxes, self.salt = path, stream, boxes, salt

    @classmethod
    def create(cls, path: Path, key: bytes, records: Iterable[bytes]) -> EncryptedLog:
        """A new file with these records in place of whatever has that name, whole or not at all.

        One record is in memory at a time.
        """
        salt = SystemEntropy().token(_SALT)
        boxes = _RecordCipher(key, salt)
        fresh = path.with_name(path.name + ".new")
        with reporting_write_errors(path), contextlib.ExitStack() as failed:
            # A left-over would keep its own mode.
            fresh.unlink(missing_ok=True)
            descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            stream = os.fdopen(descriptor, "r+b", buffering=0)
            # What was written so far would take the room that the next attempt needs.
            failed.callback(fresh.unlink, missing_ok=True)
            failed.callback(stream.close)
            _write_all(stream, MAGIC + bytes([JOURNAL_VERSION]) + salt)
            for record in records:
                _write_all(stream, boxes.seal(record))
            # First the content, then the name: a power cut leaves the old file or the new one.
            os.fsync(stream.fileno())
            fresh.replace(path)
            sync_folder(path.parent)
            failed.pop_all()
        return cls(path, stream, boxes, salt)

    @classmethod
    def open(cls, path: Path, key: bytes) -> tuple[EncryptedLog, list[bytes]]:
        """An existing file, to append to, and its records; a cut last one is taken off.

        The records go into a new file under a new salt: a record that was cut was sealed with the
        nonce that the next one would get, and two boxes of one nonce give each other away to
        anyone who has a copy of both.
        """
        held = list(records(path, key))
        _require_room(path)
        return cls.create(path, key, held), held

    def append(self, record: bytes) -> None:
        """Adds a record; it survives the end of this process, and after ``sync`` of the machine."""
        with reporting_write_errors(self._path):
            _write_all(self._stream, self._boxes.seal(record))

    def sync(self) -> None:
        """Waits until everything is on the disk."""
        with reporting_write_errors(self._path):
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Closes the file; it can be opened again."""
        self._stream.close()


def records(path: Path, key: bytes) -> Iterator[bytes]:
    """The whole records of a file, one at a time; StateError where it is not fit for use."""
    try:
        with path.open("rb", buffering=0) as stream:
            boxes = _RecordCipher(key, _salt_of(stream.read(_HEAD), path))
            yield from _whole_records(stream, boxes, path)
    except OSError as problem:
        raise StateError(
            f"the journal cannot be read: {problem.strerror}", where=str(path)
        ) from None


def salt_of(path: Path) -> bytes:
    """The salt of a file; empty where it is too short to have one, or cannot be read."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return b""
    return head[-_SALT:] if len(head) == _HEAD else b""


def room_to_resume(path: Path) -> tuple[int, int]:
    """Bytes that resuming takes on the file's disk for a while, and bytes that are free."""
    return path.stat().st_size, shutil.disk_usage(path.parent).free


def _require_room(path: Path) -> None:
    with reporting_write_errors(path):
        needed, free = room_to_resume(path)
    if needed > free:
        raise OutputError(
            f"resuming writes the journal anew, which takes another {needed / 2**20:,.1f} MiB "
            f"until it is done; {free / 2**20:,.1f} MiB are free",
            where=str(path),
            hint="make room on that disk and run again; the journal is as it was",
        )


def reporting_write_errors(path: Path) -> AbstractContextManager[None]:
    """Turns write errors into OutputError."""
    hint = "make room or name another folder; nothing that was not stored has been sent"
    return files.reporting_write_errors(path, "party's state", hint)


def _write_all(stream: BinaryIO, data: bytes) -> None:
    # An unbuffered file may write less than it was given.
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def _salt_of(head: bytes, path: Path) -> bytes:
    if len(head) < _HEAD or not head.startswith(MAGIC):
        raise StateError("this is not a journal of taciturn", where=str(path))
    if head[len(MAGIC)] != JOURNAL_VERSION:
        raise StateError(
            f"the journal is of version {head[len(MAGIC)]}; this program reads {JOURNAL_VERSION}",
            where=str(path),
            hint=Hint(
                "finish with the taciturn that started it, or start over on both sides with "
                "{fresh}",
                fresh=True,
            ),
        )
    return head[-_SALT:]


def _whole_records(stream: BinaryIO, boxes: _RecordCipher, path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    while True:
        head = stream.read(_COUNT.size)
        count = _COUNT.unpack(head)[0] if len(head) == _COUNT.size else 0
        if count > _LONGEST:
            # Not a cut: no record is that long.
            raise _altered(boxes.number, path)
        if not count or stream.tell() + count > size:
            # Cut off, or zeros that a file system left where nothing had been written yet.
            return
        try:
            yield boxes.open(_read_all(stream, count))
        except InvalidTag:
            if stream.tell() < size:
                # A stop can only damage the last record.
                raise _altered(boxes.number, path) from None
            if boxes.number == 0:
                # The first record was on the disk before the file had its name.
                raise StateError(
                    "the journal cannot be opened with this key",
                    where=str(path),
                    hint=_KEY,
                ) from None
            # The machine stopped while the last record was on its way to the disk.
            return


def _altered(number: int, path: Path) -> StateError:
    return StateError(
        f"record {number} of the journal was altered, or the key is wrong",
        where=str(path),
        hint=_KEY,
    )


def _read_all(stream: BinaryIO, count: int) -> bytes:
    parts = []
    while count:
        chunk = stream.read(count)
        if not chunk:
            break
        parts.append(chunk)
        count -= len(chunk)
    return b"".join(parts)
