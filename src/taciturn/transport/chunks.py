"""Frames <-> the messages of the stream, version 1.

::

    message = version:u8 kind:u8 payload
    kind 0    ready: the first message of each side, and only that; no payload
    kind 1    part:  exactly CHUNK bytes of a frame; more follow
    kind 2    last:  the rest of a frame, at most CHUNK bytes; empty only for an empty frame
    kind 3    end:   nothing follows; no payload

One frame has one way to travel, so that a flood of tiny parts is not possible: what is being put
together never costs more than the bytes that came.
"""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.errors import MalformedFrame

VERSION = 1
HEADER = 2
CHUNK = 1 << 20
_READY, _PART, _LAST, _END = range(4)
READY, PART, LAST, END = (bytes([VERSION, kind]) for kind in range(4))


def split(frame: bytes) -> Iterator[bytes]:
    r"""The messages that carry a frame."""
    at = 0
    while len(frame) - at > CHUNK:
        yield PART + frame[at : at + CHUNK]
        at += CHUNK
    yield LAST + frame[at:]


class Assembler:
    """Reassembly of the frames of one direction, each of at most ``max_frame`` bytes."""

    def __init__(self, max_frame: int) -> None:
        self._max = max_frame
        self._parts: list[bytes] = []
        self._size = 0
        self.ready = False
        self.ended = False

    def feed(self, message: bytes) -> bytes | None:
        """Take the next message; return a frame where that completes one.

        Raises ``MalformedFrame`` where the message may not follow, or the frame exceeds the limit.
        """
        if len(message) < HEADER or message[0] != VERSION:
            raise MalformedFrame(f"a chunk is not of version {VERSION} of the wire")
        if self.ended:
            raise MalformedFrame("a chunk follows the end")
        kind, size = message[1], len(message) - HEADER
        if not self.ready or kind == _READY:
            self._open(kind, size)
            return None
        if kind == _END:
            self._end(size)
            return None
        return self._grow(kind, size, message)

    def _open(self, kind: int, size: int) -> None:
        if self.ready or kind != _READY or size:
            raise MalformedFrame("a stream does not begin with ready, or says it twice")
        self.ready = True

    def _end(self, size: int) -> None:
        if size or self._parts:
            raise MalformedFrame("a stream ends within a frame")
        self.ended = True

    def _grow(self, kind: int, size: int, message: bytes) -> bytes | None:
        # Only a last chunk may be short, and only that of an empty frame may be empty: there is one
        # way to split a frame.
        whole = size == CHUNK if kind == _PART else 0 < size <= CHUNK or not (size or self._parts)
        if kind not in (_PART, _LAST) or not whole:
            raise MalformedFrame(f"a chunk of kind {kind} has {size} bytes")
        if self._size + size > self._max:
            raise MalformedFrame(f"a frame exceeds {self._max} bytes")
        self._parts.append(message[HEADER:])
        self._size += size
        if kind == _PART:
            return None
        frame = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size = [], 0
        return frame
