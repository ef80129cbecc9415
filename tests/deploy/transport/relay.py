"""A relay between two ports that can break: at once, silently, or at a certain byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from functools import partial

from tests.deploy.transport.parties import HOST, in_thread


class Relay:
    """Carries bytes between whoever calls it and a port.

    Args:
        target: The port.
        room: How many bytes pass before it tears all links, once; None for no limit.
    """

    def __init__(self, target: int, room: int | None = None) -> None:
        self._target, self._room = target, room
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.torn = threading.Event()
        self._silent = threading.Event()
        self._lock, self._passed = threading.Lock(), 0
        self._links: list[socket.socket] = []
        in_thread(self._accept)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if not self._connect(near):
                    near.close()

    def _connect(self, near: socket.socket) -> bool:
        """Whether somebody is there for a caller."""
        try:
            far = socket.create_connection((HOST, self._target))
        except OSError:
            return False
        self._links += [near, far]
        in_thread(partial(self._pump, near, far))
        in_thread(partial(self._pump, far, near))
        return True

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._silent.is_set():
                    continue
                sink.sendall(data)
                with self._lock:
                    self._passed += len(data)
                    if self._room is not None and self._passed > self._room:
                        self._room = None
                        self.torn.set()
                        self._tear()
        # Who is killed closes its end, and the other end of the link learns it.
        if not self._silent.is_set():
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Goes dead without closing anything."""
        self._silent.set()

    def mend(self) -> None:
        """Tears what went silent: who calls again is heard."""
        self._tear()
        self._silent.clear()

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
