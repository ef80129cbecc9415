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

A checkpoint replaces the file. It holds the frames that the peer has not confirmed, so that they
can be sent again.

Bob has one journal, however many Alices there are. Records of the first link are those of the only
one; those of a further link are the same behind its number.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from taciturn.errors import StateError
from taciturn.party.encrypted_log import EncryptedLog
from taciturn.settings.agreement import differences

_META, _PEER, _CHECKPOINT, _PENDING, _SENT, _RECEIVED, _DONE, _KEPT, _LINK = range(1, 10)
_NUMBER = struct.Struct("<Q")
_COUNTS = struct.Struct("<QQ")
NONCE_BYTES = 16
UNKNOWN = bytes(NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class Meta:
    """Constant facts of a session.

    ``facts`` are public and must be the same when the session resumes: role, terms, digests.
    ``entropy`` is the key of this party's randomness, ``nonce`` this party's name for the session.
    """

    facts: dict[str, Any]
    entropy: bytes = field(repr=False)
    nonce: bytes

    @property
    def drawn(self) -> bytes:
        """Public value that is drawn anew with the randomness, for the session's name."""
        return hashlib.sha256(b"taciturn session" + self.entropy).digest()[:NONCE_BYTES]

    @property
    def charge_name(self) -> str:
        """The name under which budgets count the session, once.

        It depends on the randomness too: masks or noise drawn anew are another release.
        """
        return hashlib.sha256(b"taciturn charge" + self.nonce + self.entropy).hexdigest()[:32]

    def to_bytes(self) -> bytes:
        """The record."""
        values = {"facts": self.facts, "coins": self.entropy.hex(), "nonce": self.nonce.hex()}
        return json.dumps(values, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Meta:
        """Reads the record back."""
        values = json.loads(data)
        return cls(values["facts"], bytes.fromhex(values["coins"]), bytes.fromhex(values["nonce"]))


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
    ``peer`` is the peer's name for the session, ``peer_drawn`` what it drew for this one.
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
    they survive the end of the process, but perhaps not that of the machine.
    """

    def __init__(self, path: Path, key: bytes, *, sync: bool = True) -> None:
        self._path, self._key, self._sync = path, key, sync
        self._encrypted_log: EncryptedLog | None = None
        self._meta: Meta | None = None
        self._peers: dict[int, tuple[bytes, bytes]] = {}
        self._unsynced = False

    def begin(self, meta: Meta) -> Past:
        """A new session in place of any that was there."""
        self.close()
        past = Past(meta)
        self._open(past, EncryptedLog.create(self._path, self._key, _opening(past)))
        return past

    def resume(self) -> Past | None:
        """The session that the file holds; None where there is no file."""
        if not self._path.exists():
            return None
        encrypted_log, records = EncryptedLog.open(self._path, self._key)
        # Closed with the journal, also where its records are not fit for use.
        self._encrypted_log = encrypted_log
        past = _past_of(records, self._path)
        self._open(past, encrypted_log)
        return past

    def _open(self, past: Past, encrypted_log: EncryptedLog) -> None:
        self._encrypted_log, self._meta = encrypted_log, past.meta
        self._peers = {
            place: (link_past.peer, link_past.peer_drawn)
            for place, link_past in enumerate([past, *past.further])
        }

    def met(self, peer: bytes, drawn: bytes, link: int = 0) -> None:
        """Notes the peer's name for the session, and what it drew; of several, on which link."""
        self._peers[link] = peer, drawn
        self._append(_PEER, peer + drawn, link)
        self.settle()

    def sent(self, number: int, frame: bytes, link: int = 0) -> None:
        """Notes a frame that is about to be sent; afterwards it may be."""
        self._append(_SENT, _NUMBER.pack(number) + frame, link)
        self.settle()

    def received(self, number: int, frame: bytes, link: int = 0) -> None:
        """Notes a frame before the program sees it."""
        # Not settled: a frame that is lost with the machine was not confirmed, and is sent again.
        self._append(_RECEIVED, _NUMBER.pack(number) + frame, link)

    def persisted(self, data: bytes) -> None:
        """Record bytes that the program saves; the next message may depend on them."""
        # Settled with the next frame that is sent.
        self._append(_KEPT, data)

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
        encrypted_log, meta = self._encrypted_log, self._meta
        if encrypted_log is None or meta is None:
            raise StateError("a journal that was not started has no checkpoints")
        first, *further_pasts = (
            Past(meta, peer, *link_state, peer_drawn=drawn)
            for place, link_state in enumerate([(point, pending), *further])
            for peer, drawn in [self._peers.get(place, (UNKNOWN, UNKNOWN))]
        )
        past = replace(first, further=further_pasts)
        self._encrypted_log = EncryptedLog.create(self._path, self._key, _opening(past))
        self._unsynced = False
        # The former file is whole until the new one has its name.
        encrypted_log.close()

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

    def _append(self, kind: int, body: bytes, link: int = 0) -> None:
        if self._encrypted_log is None:
            raise StateError("a journal that was not started takes no records")
        self._encrypted_log.append(_of_link(link, bytes([kind]) + body))
        self._unsynced = True


def _of_link(link: int, record: bytes) -> bytes:
    return bytes([_LINK, link]) + record if link else record


def _opening(past: Past) -> list[bytes]:
    records = [bytes([_META]) + past.meta.to_bytes()]
    for link, link_past in enumerate([past, *past.further]):
        records += [_of_link(link, record) for record in _opening_of_link(link_past)]
    return records


def _opening_of_link(past: Past) -> list[bytes]:
    point, records = past.checkpoint, []
    if past.peer != UNKNOWN:
        records.append(bytes([_PEER]) + past.peer + past.peer_drawn)
    records.append(bytes([_CHECKPOINT]) + _COUNTS.pack(point.sent, point.received) + point.body)
    for number, frame in past.pending.items():
        records.append(bytes([_PENDING]) + _NUMBER.pack(number) + frame)
    return records


def _past_of(records: list[bytes], path: Path) -> Past:
    if not records or records[0][0] != _META:
        raise StateError("the journal has no beginning", where=str(path))
    past = Past(Meta.from_bytes(records[0][1:]))
    for record in records[1:]:
        kind, body = record[0], record[1:]
        if kind == _KEPT:
            past.persisted.append(body)
        elif kind == _DONE:
            past.done = body
        elif kind == _LINK and len(body) > 1:
            _take(past.link(body[0]), body[1], body[2:], path)
        else:
            _take(past, kind, body, path)
    return past


def _take(past: Past, kind: int, body: bytes, path: Path) -> None:
    if kind == _PEER:
        past.peer, past.peer_drawn = body[:NONCE_BYTES], body[NONCE_BYTES:] or UNKNOWN
    elif kind == _CHECKPOINT:
        sent, received = _COUNTS.unpack_from(body)
        past.checkpoint = Checkpoint(sent, received, body[_COUNTS.size :])
    elif kind == _PENDING:
        past.pending[_NUMBER.unpack_from(body)[0]] = body[_NUMBER.size :]
    elif kind == _SENT:
        # The order gives the number: records can be neither swapped nor left out.
        past.sent.append(body[_NUMBER.size :])
    elif kind == _RECEIVED:
        past.received.append(body[_NUMBER.size :])
    else:
        raise StateError("the journal holds a record of an unknown kind", where=str(path))


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
