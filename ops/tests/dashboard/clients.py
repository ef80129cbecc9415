"""What speaks to a page's server in tests: a plain socket, and a reader of its events."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taciturn_ops.dashboard.dashboard_state import DashboardState
from taciturn_ops.dashboard.server import HOST, Address, Server, open_server
from tests.waiting import HANG


def said(address: Address, request: bytes) -> bytes:
    """All that is answered to some bytes, until the server hangs up."""
    with socket.create_connection((HOST, address.port), timeout=HANG) as line:
        line.sendall(request)
        answer = b""
        try:
            while part := line.recv(65536):
                answer += part
        except ConnectionResetError:
            # Closed before all of the request was read.
            pass
        return answer


def get(path: str, host: str, method: str = "GET", version: str = "HTTP/1.1") -> bytes:
    return f"{method} {path} {version}\r\nHost: {host}\r\n\r\n".encode()


class Reader:
    """One reader of the events, in a thread of its own."""

    def __init__(self, address: Address) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.sections: dict[str, Any] = {}
        self.over = threading.Event()
        self._line = socket.create_connection((HOST, address.port), timeout=HANG)
        self._line.sendall(get(f"/{address.token}/events", f"{HOST}:{address.port}"))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._line, self._line.makefile("rb") as stream:
            while stream.readline().strip():
                pass  # the head
            kind = "message"
            for raw in stream:
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    record = json.loads(value)
                    self.events.append((kind, record))
                    if kind == "message":
                        self.sections |= record
                    kind = "message"
        self.over.set()

    def close(self) -> None:
        """Hangs up."""
        self._line.shutdown(socket.SHUT_RDWR)
        self._thread.join(HANG)


@contextmanager
def served(dashboard: DashboardState, port: int | None = None) -> Iterator[Server]:
    server, _ = open_server(dashboard, port, None)
    with server.serving():
        yield server
