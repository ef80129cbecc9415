r"""A file of encrypted records that only grows, for what a party must not lose and nobody may read.

::

    file   = head record* end record*            head = "TACITURN-JOURNAL\n" version:u8 salt:32
    record = count:u32 salt:32 proof:16 box      box = ChaCha20-Poly1305(record)
    end    = 0:u32 salt:32 proof:16

The key of a file comes from the party's own key and the file's salt (HKDF-SHA256), the key of a
record from the file's key and 32 bytes that are drawn when the record is sealed. The nonce is zero.
A box is bound to the salt of the record before it, the first one to the head; so is the proof, an
HKDF output of the file's key for the record's count and salt. The end follows what ``create`` wrote
and put on the disk as a whole; what comes after it was appended.

A file is continued in place. An append that a stop cut short is left out, and removed by the next
one: the file ends within it, or its box cannot be opened and nothing but zeros follows. Who waits
for ``sync`` before acting upon a record has not acted upon one that a stop cut.

**Guarantee.** Without the key a file tells how many records it holds and how long they are. No key
seals two records: nothing is counted, so this also holds where a process was killed while it wrote,
where an older copy of the file was put back and continued, and where two programs continue two
copies. Records can be neither altered, left out nor swapped, nor taken from another file or from
another continuation of the same copy: what follows a record names its salt, and no other record has
that. What ``create`` wrote is whole or refused, and so is a record whose count was altered. That a
file lacks records at its end, or that its last one was damaged later, shows only in what the peer
has. ``erase`` overwrites a record in place; the others stay.

**Assumes.** The key lies elsewhere than the file: anyone who has both has everything. The system
never gives the same 32 bytes twice, also after a machine was restored from a snapshot. What
``erase`` overwrites may stay readable below the file: a file system that copies on write, an SSD
that levels wear, a snapshot or a backup keeps former blocks.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from taciturn import files
from taciturn.errors import StateError
from taciturn.files import sync_folder
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint
from taciturn.version import JOURNAL_VERSION

MAGIC = b"TACITURN-JOURNAL\n"
KEY_BYTES = 32
_SALT = 32
_HEAD = len(MAGIC) + 1 + _SALT
_COUNT = struct.Struct("<I")
_PROOF = 16
_RECORD_HEAD = _COUNT.size + _SALT + _PROOF
_LONGEST = 1 << 30
# Each key seals one record.
_NONCE = bytes(12)
_KEY = (
    "use the key with which the training started; if the state folder was moved since, name that "
    "key as [state] key"
)


class EncryptedLog:
    """A file of encrypted records, open for writing; no other file has its salt."""

    def __init__(self, path: Path, key: bytes, head: bytes) -> None:
        self.salt = head[-_SALT:]
        self._path = path
        self._stream: BinaryIO = BytesIO()
        self._key = HKDF(SHA256(), KEY_BYTES, self.salt, b"taciturn journal").derive(key)
        self._before, self._end, self._number = head, len(head), 0

    @classmethod
    def create(cls, path: Path, key: bytes, records: Iterable[bytes]) -> EncryptedLog:
        """A new file with these records in place of whatever has that name, whole or not at all.

        One record is in memory at a time.
        """
        log = cls(path, key, MAGIC + bytes([JOURNAL_VERSION]) + SystemEntropy().token(_SALT))
        fresh = path.with_name(path.name + ".new")
        with reporting_write_errors(path), contextlib.ExitStack() as failed:
            # A left-over would keep its own mode.
            fresh.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
            log._stream = os.fdopen(os.open(fresh, flags, 0o600), "ab", buffering=0)
            # What was written so far would take the room that the next attempt needs.
            failed.callback(fresh.unlink, missing_ok=True)
            failed.callback(log.close)
            _write_all(log._stream, log._before)
            for record in records:
                log._write(record)
            log._write_end()
            # First the content, then the name: a power cut leaves the old file or the new one.
            os.fsync(log._stream.fileno())
            fresh.replace(path)
            sync_folder(path.parent)
            failed.pop_all()
        return log

    @classmethod
    def open(
        cls,
        path: Path,
        key: bytes,
        take: Callable[[int, bytes], object],
        erasable: int | None = None,
    ) -> EncryptedLog:
        """An existing file, to append to; it is not written before something is appended.

        ``take`` is given each record with its number from 0. Of all records only number
        ``erasable``, one that ``create`` wrote, may be erased, wholly or in part: it is empty then.
        """
        with _reading(path) as stream:
            log = cls(path, key, _head_of(stream, path))
            for number, record in enumerate(log._whole_records(stream, erasable)):
                take(number, record)
        with reporting_write_errors(path):
            log._stream = path.open("ab", buffering=0)
        return log

    def append(self, record: bytes) -> None:
        """Adds a record; it survives the end of this process, and after ``sync`` of the machine."""
        with reporting_write_errors(self._path):
            self._write(record)

    def erase(self, number: int) -> None:
        """Overwrites a record that others follow: its content is gone, on the disk, afterwards."""
        with reporting_write_errors(self._path), self._path.open("r+b", buffering=0) as stream:
            start, left = _HEAD, number
            while True:
                (count,) = _COUNT.unpack(os.pread(stream.fileno(), _COUNT.size, start))
                start += _RECORD_HEAD
                if count and not left:
                    break
                start, left = start + count, left - bool(count)
            stream.seek(start)
            _write_all(stream, bytes(count))
            os.fsync(stream.fileno())

    def sync(self) -> None:
        """Waits until everything is on the disk."""
        with reporting_write_errors(self._path):
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Closes the file; it can be opened again."""
        self._stream.close()

    def _write(self, record: bytes) -> None:
        salt = SystemEntropy().token(_SALT)
        box = self._cipher(salt).encrypt(_NONCE, record, self._before)
        if len(box) > _LONGEST:
            problem = f"a record of {len(record):,} bytes is longer than a file of records takes"
            raise _unfit(problem, self._path)
        self._put(salt, box)
        self._number += 1

    def _write_end(self) -> None:
        """A record's head without a box: everything before it was written at once."""
        self._put(SystemEntropy().token(_SALT), b"")

    def _put(self, salt: bytes, box: bytes) -> None:
        head = self._record_head(len(box), salt)
        descriptor = self._stream.fileno()
        if os.fstat(descriptor).st_size > self._end:
            # A stop cut an append short. Only here: a file that is refused stays as it is.
            os.ftruncate(descriptor, self._end)
        try:
            _write_all(self._stream, head + box)
        except OSError:
            # Behind a part of a record no further one would be found.
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, self._end)
            raise
        self._passed(salt, len(box))

    def _passed(self, salt: bytes, count: int) -> None:
        """The next record follows this one."""
        self._before = salt
        self._end += _RECORD_HEAD + count

    def _cipher(self, salt: bytes) -> ChaCha20Poly1305:
        return ChaCha20Poly1305(HKDFExpand(SHA256(), KEY_BYTES, salt).derive(self._key))

    def _record_head(self, count: int, salt: bytes) -> bytes:
        fields = _COUNT.pack(count) + salt
        # Longer than a salt alone: no record's key comes from the same bytes.
        bound = HKDFExpand(SHA256(), _PROOF, b"head" + self._before + fields)
        return fields + bound.derive(self._key)

    def _whole_records(self, stream: BinaryIO, erasable: int | None = None) -> Iterator[bytes]:
        size, appended = os.fstat(stream.fileno()).st_size, False
        while True:
            head = stream.read(_RECORD_HEAD)
            if not self._is_head(head):
                # The file ends, but for zeros that a file system leaves, within a record's head.
                if appended and len(head.rstrip(b"\0")) < _RECORD_HEAD and _only_zeros(stream):
                    return
                raise self._altered()
            (count,), salt = _COUNT.unpack_from(head), head[_COUNT.size : -_PROOF]
            if not count:
                appended = True
                self._passed(salt, count)
                continue
            if stream.tell() + count > size:
                if appended:
                    return
                raise self._altered()
            box = stream.read(count)
            try:
                record = self._cipher(salt).decrypt(_NONCE, box, self._before)
            except InvalidTag:
                if self._number == erasable:
                    record = b""
                elif appended and _only_zeros(stream):
                    # The machine stopped while the last record was on its way to the disk.
                    return
                else:
                    raise self._altered() from None
            self._passed(salt, count)
            self._number += 1
            yield record

    def _is_head(self, head: bytes) -> bool:
        """Whether these bytes follow the last record as the head of another."""
        if len(head) < _RECORD_HEAD:
            return False
        (count,) = _COUNT.unpack_from(head)
        return hmac.compare_digest(head, self._record_head(count, head[_COUNT.size : -_PROOF]))

    def _altered(self) -> StateError:
        if not self._number:
            problem = "the journal cannot be opened with this key, or its beginning was altered"
            return _unfit(problem, self._path, _KEY)
        problem = f"record {self._number} of the journal was altered, or the key is wrong"
        return _unfit(problem, self._path, _KEY)


def records(path: Path, key: bytes, erasable: int | None = None) -> Iterator[bytes]:
    """The whole records of a file, one at a time; StateError where it is not fit for use."""
    with _reading(path) as stream:
        yield from EncryptedLog(path, key, _head_of(stream, path))._whole_records(stream, erasable)


def salt_of(path: Path) -> bytes:
    """The salt of a file; empty where it is too short to have one, or cannot be read."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return b""
    return head[-_SALT:] if len(head) == _HEAD else b""


def reporting_write_errors(path: Path) -> AbstractContextManager[None]:
    """Turns write errors into OutputError."""
    hint = "make room or name another folder; nothing that was not stored has been sent"
    return files.reporting_write_errors(path, "party's state", hint)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as problem:
        raise _unfit(f"the journal cannot be read: {problem.strerror}", path) from None


def _head_of(stream: BinaryIO, path: Path) -> bytes:
    head = stream.read(_HEAD)
    if len(head) < _HEAD or not head.startswith(MAGIC):
        raise _unfit("this is not a journal of taciturn", path)
    if head[len(MAGIC)] != JOURNAL_VERSION:
        raise _unfit(
            f"the journal is of version {head[len(MAGIC)]}; this program reads {JOURNAL_VERSION}",
            path,
            Hint(
                "finish with the taciturn that started it, or start over on both sides with "
                "{fresh}",
                fresh=True,
            ),
        )
    return head


def _unfit(problem: str, path: Path, hint: str | Hint = "") -> StateError:
    return StateError(problem, where=str(path), hint=hint)


def _write_all(stream: BinaryIO, data: bytes) -> None:
    # An unbuffered file may write less than it was given.
    view = memoryview(data)
    while view:
        view = view[stream.write(view) :]


def _only_zeros(stream: BinaryIO) -> bool:
    """Whether no byte from here to the end of the file is anything else."""
    return not any(part.strip(b"\0") for part in iter(lambda: stream.read(1 << 20), b""))
