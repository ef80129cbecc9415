r"""A recorded conversation: every frame in order, chained by hashes.

::

    file   = "TACITURN-TRANSCRIPT\n" version:u8 count:u32 header(JSON) record* end
    record = kind:u8 count:u32 frame
    kind   = 0 alice sent it, 1 bob sent it, 2 the recorder kept it;
             of the link with a further Alice, 3 + 2k she sent it, 4 + 2k bob sent it
    end    = 0xff count:u32 footer(JSON) records:u64 link:32 bytes
    link_0 = SHA-256(header)
    link_k = SHA-256(link_{k-1} || record_k), and the last link takes the footer in

What header and footer say is their writer's business. What the recorder kept are keys, which its
randomness does not reproduce. The order of records holds among those of one link. A file that was
cut has no end; one that was altered has another link. The chain shows damage and careless edits. It
is no signature: anyone who rewrites the whole file can make a new chain.

Runs one party again over a recording, with no peer present.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

from taciturn.engine.callbacks import Observer, noop
from taciturn.engine.driver import Driver, Keeping, discard
from taciturn.errors import CryptoError, OutputError, ProtocolError, TranscriptError
from taciturn.files import canonical_json
from taciturn.protocol.codec import MAX_FRAME
from taciturn.protocol.messages import OTHER, Role
from taciturn.protocol.steps import ONLY, Program
from taciturn.setting_syntax import Hint
from taciturn.settings.schema import MOST_PARTIES
from taciturn.version import TRANSCRIPT_VERSION

MAGIC = b"TACITURN-TRANSCRIPT\n"
MAX_HEADER = 16 << 20
_KEPT, _FURTHER, _END = 2, 3, 0xFF
_LAST = _FURTHER + 2 * (MOST_PARTIES - 1) - 1
_RECORD = struct.Struct("<BI")
_TAIL = struct.Struct("<Q32s")
_SENDERS: tuple[Role, Role] = ("alice", "bob")

Header = dict[str, Any]
Records: TypeAlias = tuple[tuple[Role, bytes], ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A whole conversation in memory.

    ``header`` and ``footer`` are the writer's. ``records`` are the frames of the first link,
    ``further`` those of each further link, and ``persisted`` what the recorder saved for itself.
    """

    header: Header = field(repr=False)
    records: Records = field(repr=False)
    footer: Header = field(default_factory=dict, repr=False)
    persisted: tuple[bytes, ...] = field(default=(), repr=False)
    further: tuple[Records, ...] = field(default=(), repr=False)

    def frames(self, sender: Role) -> Iterator[bytes]:
        """The frames that one side sent, in order; on the first link, if there are several."""
        return (frame for who, frame in self.records if who == sender)

    @property
    def links(self) -> int:
        """Number of Alices."""
        return 1 + len(self.further)

    def link(self, number: int) -> Transcript:
        """The conversation on one of the links, by its place."""
        return replace(self, records=(self.records, *self.further)[number], further=())

    @classmethod
    def load(cls, path: Path) -> Transcript:
        """Reads a transcript file, or raises ``TranscriptError``."""
        try:
            with path.open("rb") as stream:
                return _read(stream)
        except OSError as problem:
            raise TranscriptError(
                f"the transcript cannot be read: {problem.strerror}",
                where=str(path),
                hint="check the path and its permissions",
            ) from None
        except TranscriptError as problem:
            raise TranscriptError(
                problem.message, where=str(path), hint="record the run again"
            ) from None


class Recorder:
    """Collects frames in memory; a tap for the runners."""

    def __init__(self, links: int = 1) -> None:
        self._records: list[list[tuple[Role, bytes]]] = [[] for _ in range(links)]

    def __call__(self, sender: Role, frame: bytes, link: int = 0) -> None:
        """Keeps one frame."""
        self._records[link].append((sender, frame))

    def finish(self, header: Header) -> Transcript:
        """The conversation so far."""
        first, *further = map(tuple, self._records)
        return Transcript(header, first, further=tuple(further))


class TranscriptFile:
    """Writes a conversation as it happens; a tap for the runners and a context manager.

    The file gets its name only when the conversation has ended well: it is written beside it first,
    so that a crash or a full disk never leaves half a transcript under the wanted name.

    ``at`` is the ``position`` from which to resume an unfinished file. ``keep`` leaves that file
    where the conversation fails, to resume it later.
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        at: Header | None = None,
        keep: bool = False,
    ) -> None:
        if not path.name:
            raise OutputError("this is not a file name", where=str(path))
        self._path = path
        self._partial = path.with_name(path.name + ".partial")
        self._keep = keep
        self._records = 0
        self._footer: Header = {}
        if at is None:
            self._begin(header)
        else:
            self._resume(at)

    def _begin(self, header: Header) -> None:
        text = _json_bytes(header)
        try:
            # For its owner's eyes only: a transcript is as sensitive as the labels it gives away.
            descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._stream: BinaryIO = os.fdopen(descriptor, "wb")
            self._stream.write(MAGIC + _RECORD.pack(TRANSCRIPT_VERSION, len(text)) + text)
        except OSError as problem:
            raise self._unwritable(problem) from None
        self._link = hashlib.sha256(text).digest()

    def _resume(self, at: Header) -> None:
        self._records, self._link = int(at["records"]), bytes.fromhex(at["link"])
        try:
            self._stream = self._partial.open("r+b")
            self._stream.seek(0, os.SEEK_END)
            if self._stream.tell() < int(at["offset"]):
                raise TranscriptError(
                    "the unfinished transcript is shorter than it was", where=str(self._partial)
                )
            # The run resumes from the same checkpoint, and records later frames once more.
            self._stream.truncate(int(at["offset"]))
            self._stream.seek(0, os.SEEK_END)
        except OSError as problem:
            raise TranscriptError(
                f"cannot resume the partial transcript: {problem.strerror}",
                where=str(self._partial),
                hint=Hint(
                    "give {record} as before, or start over on both sides with {fresh}", fresh=True
                ),
            ) from None

    def position(self) -> Header:
        """Position in the file as JSON, from which a later writer can resume."""
        try:
            self._stream.flush()
        except OSError as problem:
            raise self._unwritable(problem) from None
        return {"records": self._records, "link": self._link.hex(), "offset": self._stream.tell()}

    def __call__(self, sender: Role, frame: bytes, link: int = 0) -> None:
        """Writes one frame and chains it to those before."""
        further = _FURTHER + 2 * (link - 1) if link else 0
        self._write(further + _SENDERS.index(sender), frame)

    def persisted(self, data: bytes) -> None:
        """Writes what the recorder keeps for itself."""
        self._write(_KEPT, data)

    def _write(self, kind: int, frame: bytes) -> None:
        record = _RECORD.pack(kind, len(frame)) + frame
        self._link = hashlib.sha256(self._link + record).digest()
        self._records += 1
        try:
            self._stream.write(record)
        except OSError as problem:
            raise self._unwritable(problem) from None

    def conclude(self, footer: Header) -> None:
        """Set the result of the run, which is written when the file is closed."""
        self._footer = footer

    def __enter__(self) -> TranscriptFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            self._stream.write(_end(self._footer, self._records, self._link))
            self._stream.flush()
            os.fsync(self._stream.fileno())
            self._stream.close()
            self._partial.replace(self._path)
        except OSError as problem:
            raise self._unwritable(problem) from None
        except BaseException:
            self._discard()
            raise

    def _abandon(self) -> None:
        if self._keep:
            with contextlib.suppress(OSError, AttributeError):
                self._stream.close()
        else:
            self._discard()

    def _discard(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self._stream.close()
        with contextlib.suppress(OSError):
            self._partial.unlink(missing_ok=True)

    def _unwritable(self, problem: OSError) -> OutputError:
        # Once there is room, a run that is kept resumes with what was written so far.
        self._abandon()
        return OutputError(
            f"the transcript cannot be written: {problem.strerror}",
            where=str(self._path),
            hint="name a file in a folder that exists, may be written and has room",
        )


def _json_bytes(values: Header) -> bytes:
    return canonical_json(values).encode()


def _end(footer: Header, records: int, link: bytes) -> bytes:
    text = _json_bytes(footer)
    last = hashlib.sha256(link + text).digest()
    return _RECORD.pack(_END, len(text)) + text + _TAIL.pack(records, last)


def _take(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise TranscriptError("the transcript is cut short")
    return data


def _read(stream: BinaryIO) -> Transcript:
    magic = stream.read(len(MAGIC))
    if magic != MAGIC:
        raise TranscriptError("this is not a transcript")
    version, size = _RECORD.unpack(_take(stream, _RECORD.size))
    if version != TRANSCRIPT_VERSION:
        raise TranscriptError(
            f"the transcript is of version {version}; this program reads {TRANSCRIPT_VERSION}",
            hint="record the run again, or read it with the taciturn that wrote it",
        )
    text = _take_text(stream, size)
    link = hashlib.sha256(text).digest()
    links: dict[int, list[tuple[Role, bytes]]] = defaultdict(list)
    persisted: list[bytes] = []
    read = 0
    while (kind := _take(stream, 1)[0]) != _END:
        (length,) = struct.unpack("<I", _take(stream, 4))
        if kind > _LAST or length > MAX_FRAME:
            raise TranscriptError(f"the transcript is altered at record {read}")
        frame = _take(stream, length)
        link = hashlib.sha256(link + _RECORD.pack(kind, length) + frame).digest()
        read += 1
        if kind == _KEPT:
            persisted.append(frame)
        else:
            link_number, sender = divmod(kind - _FURTHER, 2) if kind > _KEPT else (-1, kind)
            links[link_number + 1].append((_SENDERS[sender], frame))
    (size,) = struct.unpack("<I", _take(stream, 4))
    footer = _take_text(stream, size)
    count, last = _TAIL.unpack(_take(stream, _TAIL.size))
    if count != read or last != hashlib.sha256(link + footer).digest() or stream.read(1):
        raise TranscriptError("the transcript is altered: its hash chain does not close")
    first, *further = (tuple(links[number]) for number in range(max(links, default=0) + 1))
    return Transcript(_parse(text), first, _parse(footer), tuple(persisted), tuple(further))


def _take_text(stream: BinaryIO, size: int) -> bytes:
    if size > MAX_HEADER:
        raise TranscriptError("the transcript is altered: its header or footer is too long")
    return _take(stream, size)


def _parse(text: bytes) -> Header:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise TranscriptError("the transcript's header or footer is not JSON") from None
    if not isinstance(values, dict):
        raise TranscriptError("the transcript's header or footer is not a JSON object")
    return values


R = TypeVar("R")


def replay(
    program: Program[R],
    transcript: Transcript,
    *,
    role: Role = "alice",
    verify: bool = True,
    observe: Observer = noop,
    keep: Keeping = discard,
    peers: Sequence[str] = (ONLY,),
) -> R:
    """Runs a program over the frames that its peer sent in a recording.

    The program needs the same tables and entropy as then. ``verify`` demands that it sends the same
    bytes again. ``peers`` are in the order of the recording's links. Raises ``TranscriptError``
    where program and recording differ.
    """
    other = OTHER[role]
    links = {peer: transcript.link(number) for number, peer in enumerate(peers)}
    then = {peer: enumerate(link.frames(role)) for peer, link in links.items()}

    def check(peer: str, frame: bytes) -> None:
        # At once: with other randomness the first difference shows before its effects.
        number, before = next(then[peer], (-1, b""))
        if verify and frame != before:
            where = f"{role}'s frame {number}" if number >= 0 else f"the end of {role}'s frames"
            raise TranscriptError(f"the replay differs from the recording at {where}")

    outlets = {peer: partial(check, peer) for peer in peers}
    driver = Driver(role, program, outlets, observe, keep)
    try:
        _feed(driver, {peer: link.frames(other) for peer, link in links.items()})
    finally:
        driver.close()
    if verify and any(next(frames, None) is not None for frames in then.values()):
        raise TranscriptError(f"the recording holds more of {role}'s frames than the replay sent")
    return driver.result


def _feed(driver: Driver[R], frames: Mapping[str, Iterator[bytes]]) -> None:
    try:
        driver.start()
        while not driver.finished:
            frame = next(frames[driver.awaits], None)
            if frame is None:
                raise TranscriptError(f"the recording ends where {driver.expects} was expected")
            driver.feed(frame)
    except (ProtocolError, CryptoError) as problem:
        raise TranscriptError(f"the recording cannot be replayed: {problem.message}") from None
    if any(next(rest, None) is not None for rest in frames.values()):
        raise TranscriptError("the recording continues after the program has finished")
