"""A party's journal: enough to resume after any stop as if there had been none.

It begins with a checkpoint; every frame that was received or is about to be sent follows. To
resume, the program is started from the checkpoint and fed the received frames again. What it says
meanwhile is not sent: the frames that the journal holds stand for it. A mask, an encryption or a
noisy release therefore leaves a party once, as it was first made, whatever stops and starts between
(masks and noise are single-use: made a second time for other inputs they would give themselves
away).

A journal that has met no peer binds its randomness to nobody: a copy of it would fit any peer that
begins anew. A party that starts from it keeps the name of the session and draws the randomness
anew. Both sides' randomness is part of the session's one name (``Meta.drawn``): two sessions that
begin from copies of the same two journals have two names, and so have their models.

A checkpoint is one record, so that it is whole or not there. It holds the frames that the peer has
not confirmed, so that they can be sent again. It replaces the file, unless the session keeps what
it took for a verifier (``Meta.keeps``): then the file only grows, and ``history`` gives every frame
that the program took and the hash of every one that it sent.

**Guarantee.** ``delete_seed`` overwrites the seed in the file, on the disk; a stop meanwhile, also
amid the overwriting, is made up for at the next start. It overwrites nothing else: a checkpoint and
what the program has saved (``persisted``) may hold keys that were made from the seed, and stay as
long as the file does. Whoever needs them gone discards the journal.

**Assumes.** What ``encrypted_log`` assumes of an erased record. A checkpoint that replaced the file
has left the former one's blocks to the file system: only a session that keeps everything has one
copy of its seed.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

from taciturn.errors import StateError
from taciturn.party import encrypted_log
from taciturn.party.encrypted_log import EncryptedLog
from taciturn.settings.agreement import differences

_LENGTH = struct.Struct("<I")
NONCE_BYTES = 16
UNKNOWN = bytes(NONCE_BYTES)


# The first byte of a record; the second is the place of the link, then comes the body.
_META, _SEED, _PEER, _CHECKPOINT, _SENT, _RECEIVED, _TAKEN, _PERSISTED, _MARK, _DONE = (
    bytes([kind]) for kind in range(1, 11)
)
# The only record that is ever erased.
_SEED_NUMBER = 1


class Mark(IntEnum):
    """What a session with verdicts notes beside its frames; a checkpoint keeps it.

    A signature is of one side's chains of frames at a checkpoint. The session waits for a verdict
    after ``WAITS`` until there is one. ``SEALED_SEED`` is the seed under a verifier's key.
    """

    OWN_SIGNATURE, PEER_SIGNATURE, WAITS, VERDICT, SEALED_SEED, SEED_DELETED = range(1, 7)


@dataclass(frozen=True, slots=True)
class Meta:
    """Constant facts of a session.

    ``facts`` are public and must be the same when the session resumes: role, terms, digests.
    ``entropy`` is the key of this party's randomness, empty once it was deleted; ``nonce`` is this
    party's name for the session. ``keeps`` is whether a checkpoint leaves earlier frames.

    ``drawn`` is a public value that is drawn anew with the randomness, for the session's name, and
    ``charge_name`` the name under which budgets count the session, once. It depends on the
    randomness too: masks or noise drawn anew are another release.
    """

    facts: dict[str, Any]
    entropy: bytes = field(repr=False)
    nonce: bytes
    keeps: bool = False
    drawn: bytes = b""
    charge_name: str = ""

    def __post_init__(self) -> None:
        drawn = hashlib.sha256(b"taciturn session" + self.entropy).digest()[:NONCE_BYTES]
        charge = hashlib.sha256(b"taciturn charge" + self.nonce + self.entropy).hexdigest()[:32]
        object.__setattr__(self, "drawn", self.drawn or drawn)
        object.__setattr__(self, "charge_name", self.charge_name or charge)

    def to_bytes(self) -> bytes:
        """The record, without the randomness."""
        values = {"facts": self.facts, "keeps": self.keeps, "charge": self.charge_name}
        names = {"nonce": self.nonce.hex(), "drawn": self.drawn.hex()}
        return json.dumps(values | names, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Meta:
        """Reads the record back."""
        values = json.loads(data)
        nonce, drawn = (bytes.fromhex(values[name]) for name in ("nonce", "drawn"))
        return cls(values["facts"], b"", nonce, values["keeps"], drawn, values["charge"])


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State from which a program can be resumed, and the number of frames until then.

    ``body`` is what the party needs to resume; empty at the beginning.
    """

    sent: int = 0
    received: int = 0
    body: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class Past:
    """Session so far, from the journal; frames are those of the first link.

    ``pending`` are frames from before the checkpoint that the peer has not confirmed, by number;
    ``sent``, ``received`` and ``persisted`` are since the checkpoint. ``done`` is the
    result, None where the program has not ended. ``further`` is the same of each further link.
    ``peer`` is the peer's name for the session, ``peer_drawn`` what it drew for this one. ``taken``
    has the place of the link of each frame that the program took, in its order, as far as that is
    noted. ``marks`` are from the beginning, and ``own_hashes`` (SHA-256 of each frame that was
    sent) too, of a session that keeps its frames.
    """

    meta: Meta
    peer: bytes = UNKNOWN
    checkpoint: Checkpoint = Checkpoint()
    pending: dict[int, bytes] = field(default_factory=dict, repr=False)
    sent: list[bytes] = field(default_factory=list, repr=False)
    received: list[bytes] = field(default_factory=list, repr=False)
    persisted: list[bytes] = field(default_factory=list, repr=False)
    done: bytes | None = field(default=None, repr=False)
    further: list[Past] = field(default_factory=list, repr=False)
    peer_drawn: bytes = UNKNOWN
    taken: list[int] = field(default_factory=list)
    marks: list[tuple[Mark, bytes]] = field(default_factory=list, repr=False)
    own_hashes: list[bytes] = field(default_factory=list, repr=False)

    @property
    def waits_for_verdict(self) -> bool:
        """Whether nothing but a verdict is missing to go on."""
        awaited = [mark for mark, _ in self.marks if mark in (Mark.WAITS, Mark.VERDICT)]
        return awaited[-1:] == [Mark.WAITS]

    @property
    def counts(self) -> tuple[int, int]:
        """Number of frames sent and received on the link, from the beginning."""
        point = self.checkpoint
        return point.sent + len(self.sent), point.received + len(self.received)

    @property
    def met_nobody(self) -> bool:
        """Whether no peer's name is noted yet: no frame has left on any link."""
        return all(link.peer == UNKNOWN for link in (self, *self.further))

    def link(self, place: int) -> Past:
        """Record of one of the links, by its place."""
        while len(self.further) < place:
            self.further.append(Past(self.meta))
        return self.further[place - 1] if place else self


class Journal:
    """The journal of one party's session.

    With ``sync`` frames reach the disk before anything that depends on them is sent; without it
    they survive the end of the process, but perhaps not that of the machine. Bob has one journal,
    however many Alices there are: ``link`` is the place of one of them.
    """

    def __init__(self, path: Path, key: bytes, *, sync: bool = True) -> None:
        self._path, self._key, self._sync = path, key, sync
        self._encrypted_log: EncryptedLog | None = None
        # Up to date in what a checkpoint has to write again: names and marks.
        self._past = Past(Meta({}, b"", UNKNOWN))
        self._unsynced = False

    def begin(self, meta: Meta) -> Past:
        """A new session in place of any that was there."""
        self.close()
        self._past = Past(meta)
        self._encrypted_log = EncryptedLog.create(self._path, self._key, self._opening())
        return self._past

    def resume(self) -> Past | None:
        """The session that the file holds; None where there is no file."""
        if not self._path.exists():
            return None
        # Without a beginning its names would be another's.
        past = Past(Meta({}, b"", UNKNOWN, drawn=UNKNOWN))
        log = self._encrypted_log = EncryptedLog.open(
            self._path, self._key, partial(_take, past, self._path), _SEED_NUMBER
        )
        # A killed process may have left records that the system has not written yet: before
        # anything that they say is sent again, they have to be on the disk.
        self._unsynced = True
        if any(mark is Mark.SEED_DELETED for mark, _ in past.marks):
            # Again: the process may have been stopped before it was done.
            log.erase(_SEED_NUMBER)
            past.meta = replace(past.meta, entropy=b"")
        elif past.meta != replace(past.meta, drawn=b"", charge_name=""):
            problem = "the journal has no beginning: its session or its seed is not as it was"
            raise StateError(problem, where=str(self._path))
        for link in past.further:
            link.meta = past.meta
        self._past = past
        return past

    def met(self, peer: bytes, drawn: bytes, link: int = 0) -> None:
        """Notes the peer's name for the session, and what it drew; of several, on which link."""
        known = self._past.link(link)
        known.peer, known.peer_drawn = peer, drawn
        self._append(_PEER, peer + drawn, link)
        self.settle()

    def sent(self, frame: bytes, link: int = 0) -> None:
        """Notes a frame that is about to be sent; afterwards it may be."""
        self._append(_SENT, frame, link)
        self.settle()

    def received(self, frame: bytes, link: int = 0) -> None:
        """Notes a frame before the program sees it."""
        # Not settled: a frame that is lost with the machine was not confirmed, and is sent again.
        self._append(_RECEIVED, frame, link)

    def taken(self, link: int = 0) -> None:
        """Notes that the program takes the next frame of a link: its order is not that of arrival.

        What the program draws from then on may depend on it, and is settled with what it sends.
        """
        self._append(_TAKEN, b"", link)

    def persisted(self, data: bytes) -> None:
        """Record bytes that the program saves; the next message may depend on them."""
        # Settled with the next frame that is sent.
        self._append(_PERSISTED, data)

    def mark(self, mark: Mark, data: bytes = b"", link: int = 0) -> None:
        """Notes a signature, a verdict or the wait for one."""
        self._past.link(link).marks.append((mark, data))
        self._append(_MARK, bytes([mark]) + data, link)
        self.settle()

    def done(self, result: bytes) -> None:
        """Notes that the program has ended, and with what."""
        self._append(_DONE, result)
        self.settle()

    def checkpoint(
        self,
        point: Checkpoint,
        pending: dict[int, bytes],
        further: Sequence[tuple[Checkpoint, dict[int, bytes]]] = (),
    ) -> None:
        """Discard records before a checkpoint, except frames that a peer has not confirmed.

        ``point`` and ``pending`` are those of the first link, ``further`` of each further one.
        """
        record = _packed([(point, pending), *further])
        if self._past.meta.keeps:
            self._append(_CHECKPOINT, record)
            self.settle()
            return
        former = self._open_log()
        self._encrypted_log = EncryptedLog.create(self._path, self._key, self._opening(record))
        self._unsynced = False
        # The former file is whole until the new one has its name.
        former.close()

    def history(self) -> Iterator[tuple[str, int, bytes]]:
        """What the program took and sent from the beginning, in its order, frame by frame.

        Each is ``("taken", link, frame)`` or ``("sent", link, SHA-256 of the frame)``; only of a
        session that keeps its frames.
        """
        arrived = defaultdict[bytes, deque[bytes]](deque)
        for record in encrypted_log.records(self._path, self._key, _SEED_NUMBER):
            kind, place, body = record[:1], record[1:2], record[2:]
            if kind == _RECEIVED:
                arrived[place].append(body)
            elif kind == _TAKEN:
                yield "taken", place[0], arrived[place].popleft()
            elif kind == _SENT:
                yield "sent", place[0], hashlib.sha256(body).digest()

    def delete_seed(self) -> None:
        """Overwrite this side's randomness on the disk; the session itself stays."""
        self.mark(Mark.SEED_DELETED)
        log = self._open_log()
        # Else a start that finds neither the seed nor this would refuse the file.
        log.sync()
        log.erase(_SEED_NUMBER)
        self._past.meta = replace(self._past.meta, entropy=b"")

    def settle(self) -> None:
        """Flush what was noted last to disk (fsync)."""
        if self._sync and self._unsynced and self._encrypted_log is not None:
            self._encrypted_log.sync()
            self._unsynced = False

    def close(self) -> None:
        """Closes the file."""
        if self._encrypted_log is not None:
            self._encrypted_log.close()

    def discard(self) -> None:
        """Removes the file: there is no session to resume."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _append(self, kind: bytes, body: bytes, link: int = 0) -> None:
        self._open_log().append(kind + bytes([link]) + body)
        self._unsynced = True

    def _open_log(self) -> EncryptedLog:
        if self._encrypted_log is None:
            raise StateError("a journal that was not started takes no records")
        return self._encrypted_log

    def _opening(self, checkpoint: bytes = b"") -> Iterator[bytes]:
        """What a file begins with: the session, and the last checkpoint."""
        yield _META + b"\0" + self._past.meta.to_bytes()
        yield _SEED + b"\0" + self._past.meta.entropy
        for place, link in enumerate([self._past, *self._past.further]):
            if link.peer != UNKNOWN:
                yield _PEER + bytes([place]) + link.peer + link.peer_drawn
            for mark, data in link.marks:
                yield _MARK + bytes([place, mark]) + data
        if checkpoint:
            yield _CHECKPOINT + b"\0" + checkpoint


def _packed(links: Sequence[tuple[Checkpoint, dict[int, bytes]]]) -> bytes:
    """The counts and unconfirmed frames of all links, and the state."""
    counts = [
        [point.sent, point.received, [[number, len(pending[number])] for number in pending]]
        for point, pending in links
    ]
    head = json.dumps(counts).encode()
    frames = (frame for _, pending in links for frame in pending.values())
    return b"".join([_LENGTH.pack(len(head)), head, *frames, links[0][0].body])


def _take(past: Past, path: Path, number: int, record: bytes) -> None:
    """Add a record of a file; frames before its last checkpoint are dropped."""
    kind, place, body = record[:1], record[1:2], record[2:]
    link = past.link(place[0] if place else 0)
    if number == 0 and kind == _META:
        past.meta = Meta.from_bytes(body)
    elif number == _SEED_NUMBER and kind in (_SEED, b""):
        past.meta = replace(past.meta, entropy=body)
    elif kind == _PEER:
        link.peer, link.peer_drawn = body[:NONCE_BYTES], body[NONCE_BYTES:] or UNKNOWN
    elif kind == _CHECKPOINT:
        _resume_from(past, body)
    elif kind == _SENT:
        # The order gives the number: records can be neither swapped nor left out.
        link.sent.append(body)
        if past.meta.keeps:
            link.own_hashes.append(hashlib.sha256(body).digest())
    elif kind == _RECEIVED:
        link.received.append(body)
    elif kind == _TAKEN:
        past.taken.append(place[0])
    elif kind == _PERSISTED:
        past.persisted.append(body)
    elif kind == _MARK:
        link.marks.append((Mark(body[0]), body[1:]))
    elif kind == _DONE:
        past.done = body
    else:
        raise StateError("the journal holds a record of an unknown kind", where=str(path))


def _resume_from(past: Past, body: bytes) -> None:
    """The past from a checkpoint on, as ``_packed`` writes it."""
    start = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    for place, (sent, received, lengths) in enumerate(json.loads(body[_LENGTH.size : start])):
        link = past.link(place)
        link.checkpoint, link.pending = Checkpoint(sent, received), {}
        link.sent, link.received, link.persisted, link.taken = [], [], [], []
        for number, length in lengths:
            link.pending[number], start = body[start : start + length], start + length
    past.checkpoint = replace(past.checkpoint, body=body[start:])


def changed_facts(meta: Meta, facts: dict[str, Any]) -> list[str]:
    """Names each fact that is another one now than when the session began; of terms, each setting.

    >>> before = Meta({"role": "bob", "terms": '{"mechanism":"add"}', "table": "1f"}, b"", b"")
    >>> changed_facts(before, {"role": "bob", "terms": '{"mechanism":"none"}', "table": "2f"})
    ['mechanism: "add" before, "none" now', 'table']
    """
    keys = meta.facts.keys() | facts.keys()
    changed = sorted(key for key in keys if meta.facts.get(key) != facts.get(key))
    if "terms" not in changed:
        return changed
    before, now = (str(values.get("terms", "{}")) for values in (meta.facts, facts))
    settings = differences(before, now, "before", "now")
    return [*settings, *(key for key in changed if key != "terms")]


def with_pending(past: Past) -> dict[int, bytes]:
    """Every frame that the journal holds of what was sent, by its number."""
    after = range(past.checkpoint.sent + 1, past.checkpoint.sent + 1 + len(past.sent))
    return {**past.pending, **dict(zip(after, past.sent, strict=True))}
