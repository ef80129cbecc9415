"""Limits of the wire: sizes, counts, times and rates.

They bound what a peer can make us hold, also an authenticated one who means harm: per direction one
queue, the frame that is being put together, and gRPC's window.

    message = version:u8 kind:u8 payload
    kind 0    ready: the first message of each side, and only that; no payload
    kind 1    part:  exactly CHUNK bytes of a frame; more follow
    kind 2    last:  the rest of a frame, at most CHUNK bytes; empty only for an empty frame
    kind 3    end:   nothing follows; no payload

One frame has one way to travel, so that a flood of tiny parts is not possible: what is being put
together never costs more than the bytes that came.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from taciturn.errors import ConfigError, MalformedFrame
from taciturn.protocol.codec import MAX_FRAME

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
            raise MalformedFrame("a stream does not begin with ready, or repeats it")
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


ENVELOPE = 64 << 10
# gRPC's window per stream: a link of 100 ms still carries 40 MB/s.
WINDOW = 4 << 20
LARGEST_METADATA = 8 << 10


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a link; sizes in bytes, times in seconds.

    ``max_frame`` is the codec's limit, and room for an envelope around it. ``in_flight`` is for
    each direction's queue; one frame may exceed it alone. ``dead_after`` is until a link without a
    sign of life is dropped; ``drain`` is how long closing waits for what was sent; ``handshake`` is
    the time for TLS. ``connections`` (TCP) are of anybody, ``streams`` of anybody with a
    certificate of the authority; ``attempts`` are streams of the peer per second, and twice that in
    a burst.
    """

    max_frame: int = MAX_FRAME + ENVELOPE
    in_flight: int = 8 << 20
    dead_after: float = 20.0
    drain: float = 5.0
    handshake: float = 10.0
    connections: int = 256
    streams: int = 8
    attempts: float = 5.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be more than 0", where=name)

    def options(self) -> list[tuple[str, int]]:
        """GRPC options of both sides."""
        beat = max(1, round(1000 * self.dead_after / 2))
        return [
            ("grpc.max_receive_message_length", CHUNK + HEADER),
            ("grpc.max_send_message_length", CHUNK + HEADER),
            ("grpc.max_metadata_size", LARGEST_METADATA),
            ("grpc.absolute_max_metadata_size", LARGEST_METADATA),
            # A compressed chunk could unfold to any size before its limit is looked at.
            ("grpc.compression_enabled_algorithms_bitset", 1),
            ("grpc.per_message_decompression", 0),
            # A window that grows with the link would be a bound that the sender sets.
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", WINDOW),
            # A ping after half the time without a sign of life; the other half for its answer.
            ("grpc.keepalive_time_ms", beat),
            ("grpc.keepalive_timeout_ms", beat),
            ("grpc.http2.ping_timeout_ms", beat),
            ("grpc.http2.max_pings_without_data", 0),
        ]

    def server_options(self) -> list[tuple[str, int]]:
        """GRPC options of the side that serves."""
        return [
            *self.options(),
            ("grpc.so_reuseport", 0),
            ("grpc.max_concurrent_streams", self.streams),
            ("grpc.max_allowed_incoming_connections", self.connections),
            ("grpc.server_handshake_timeout_ms", round(1000 * self.handshake)),
            # A connection without a stream holds a place that somebody else may need.
            ("grpc.max_connection_idle_ms", round(3000 * self.handshake)),
            # The peer's own pings come every dead_after/2; far more often is not tolerated.
            ("grpc.http2.min_ping_interval_without_data_ms", round(1000 * self.dead_after / 8)),
        ]

    def client_options(self, peer: str) -> list[tuple[str, str | int]]:
        """GRPC options of the side that dials, with the name that the certificate must have."""
        return [
            *self.options(),
            ("grpc.ssl_target_name_override", peer),
            # The address that was given is where we connect, whatever the environment says.
            ("grpc.enable_http_proxy", 0),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]


class RateLimiter:
    """Token bucket: a rate per second, and twice as many at once after a pause.

    >>> now = [0.0]
    >>> allowance = RateLimiter(2, clock=lambda: now[0])
    >>> [allowance.try_acquire() for _ in range(5)]
    [True, True, True, True, False]
    >>> now[0] = 0.5
    >>> [allowance.try_acquire() for _ in range(2)]
    [True, False]
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._most = max(1.0, 2 * per_second)
        self._left = self._most
        self._clock = clock
        self._at = clock()
        self._lock = threading.Lock()

    def try_acquire(self) -> bool:
        """Take one token; whether there was one."""
        with self._lock:
            now = self._clock()
            self._left = min(self._most, self._left + self._rate * (now - self._at))
            self._at = now
            if self._left < 1:
                return False
            self._left -= 1
            return True
