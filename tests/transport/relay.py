"""A relay between two ports that damages what it carries, breaks, or goes silent."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial

from tests.transport.parties import HOST, in_thread

TO_SERVER, TO_CLIENT = 0, 1
# What passes in place of some bytes, which begin at so many of their direction; None cuts the link.
Damage = Callable[[bytes, int], bytes | None]


def flips(*bits: int) -> Damage:
    def damaged(data: bytes, at: int) -> bytes:
        changed = bytearray(data)
        for bit in bits:
            if at <= bit // 8 < at + len(data):
                changed[bit // 8 - at] ^= 1 << (bit % 8)
        return bytes(changed)

    return damaged


def repeats(place: int) -> Damage:
    def damaged(data: bytes, at: int) -> bytes:
        here = place - at
        return data[: here + 16] + data[here:] if 0 <= here < len(data) else data

    return damaged


def drops(place: int) -> Damage:
    def damaged(data: bytes, at: int) -> bytes:
        here = place - at
        return data[:here] + data[here + 16 :] if 0 <= here < len(data) else data

    return damaged


def cuts(place: int) -> Damage:
    return lambda data, at: None if at <= place < at + len(data) else data


def stalls(place: int) -> Damage:
    """Goes on reading, and passes nothing on."""
    return lambda data, at: b"" if place < at + len(data) else data


class Relay:
    """Carries bytes between whoever calls it and a port.

    Args:
        target: The port.
        damage: What happens to one direction of its first connections.
        way: The direction.
        connections: How many connections are damaged.
        room: How many bytes pass before it tears all links, once; None for no limit.
    """

    def __init__(
        self,
        target: int,
        damage: Damage | None = None,
        *,
        way: int = TO_SERVER,
        connections: int = 1,
        room: int | None = None,
    ) -> None:
        self._target, self._room = target, room
        self._damage, self._way, self._connections = damage, way, connections
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.torn = threading.Event()
        self.calls = self.damaged = 0
        # Of the first connection, by direction.
        self.passed = [0, 0]
        self._silent = threading.Event()
        self._lock, self._total = threading.Lock(), 0
        self._links: list[socket.socket] = []
        in_thread(self._accept)

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection((HOST, self._target))
                except OSError:
                    near.close()
                    continue
                self.calls += 1
                self._links += [near, far]
                in_thread(partial(self._pump, near, far, TO_SERVER, self.calls))
                in_thread(partial(self._pump, far, near, TO_CLIENT, self.calls))

    def _pump(self, source: socket.socket, sink: socket.socket, way: int, call: int) -> None:
        at = 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._silent.is_set():
                    continue
                passes: bytes | None = data
                if self._damage and way == self._way and call <= self._connections:
                    passes = self._damage(data, at)
                    self.damaged += passes != data
                at += len(data)
                if call == 1:
                    self.passed[way] = at
                if passes is None:
                    break
                sink.sendall(passes)
                self._count(len(data))
        # Who is killed closes its end, and the other end of the link learns it.
        if not self._silent.is_set():
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _count(self, passed: int) -> None:
        with self._lock:
            self._total += passed
            if self._room is not None and self._total > self._room:
                self._room = None
                self.torn.set()
                self._tear()

    def cut(self) -> None:
        """Goes dead without closing anything."""
        self._silent.set()

    def _tear(self) -> None:
        for link in self._links:
            # Closing alone would not wake the thread that reads from it.
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def close(self) -> None:
        """Ends all links, and takes none any more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._tear()
