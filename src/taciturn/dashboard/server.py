"""``Server``: serves one board to browsers on this machine, from one thread.

It listens on 127.0.0.1 and on nothing else. A request that may not have an answer gets none: the
connection is closed without a byte (``request``). Everything is bounded: connections, readers, the
length of a request and the time it may take, what a slow reader may leave unread.

::

    GET /TOKEN/         the page
    GET /TOKEN/events   server-sent events: hello (which process, which page), then the sections
                        that have changed, at most four times a second, and a beat where none has
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from taciturn.dashboard.address import HOST, Address
from taciturn.dashboard.board import Board
from taciturn.dashboard.page import Page, page
from taciturn.dashboard.request import asked_for
from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.files import finite_json
from taciturn.rng import SystemEntropy

EVENT_SECONDS = 0.25
SAMPLE_SECONDS = 1.0
BEAT_SECONDS = 5.0
REQUEST_SECONDS = 5.0
MOST_REQUEST_BYTES = 8192
MOST_CONNECTIONS = 24
MOST_READERS = 8
# What a reader may leave unread, and how long.
MOST_UNREAD_BYTES = 1 << 20
UNREAD_SECONDS = 20.0
FAREWELL_SECONDS = 2.0


def listening(port: int) -> socket.socket:
    """A socket on this machine alone; port 0 for any free one. OSError if it cannot be had."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A page that is left and opened again finds its port, which the system holds for a while.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, port))
        taken.listen(MOST_CONNECTIONS)
    except OSError:
        taken.close()
        raise
    return taken


def listening_on(port: int) -> socket.socket:
    """The same on a port that a person named; ConfigError if it cannot be had."""
    try:
        return listening(port)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise ConfigError(
            f"the live page cannot be served on port {port} of this machine: {reason}",
            setting="watch_port",
            hint=Hint(
                "end what has it, name another port, or use {watch} alone, which takes a free one",
                watch=True,
            ),
        ) from None


class Server:
    """Serves a board until it is closed, on a listening socket of this machine.

    ``busy`` is how many seconds the serving thread has computed so far, ``events`` how many events
    were sent to all readers.
    """

    def __init__(self, board: Board, taken: socket.socket, token: str) -> None:
        self.address = Address(taken.getsockname()[1], token)
        self.busy, self.events = 0.0, 0
        self._board, self._socket, self._page = board, taken, page()
        self._run_name = SystemEntropy().token(8).hex()
        self._connections = self._readers = 0
        # Each section's number of changes and its text, and when they were looked at.
        self._sections: dict[str, tuple[int, str]] = {}
        self._looked = -1.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="taciturn-watch", daemon=True)

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serves meanwhile; at the end readers are sent what has changed last."""
        self._thread.start()
        self._ready.wait()
        try:
            yield
        finally:
            if self._loop is not None and self._ending is not None:
                self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(2 * FAREWELL_SECONDS)

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(
            self._connected,
            sock=self._socket,
            limit=MOST_REQUEST_BYTES,
            backlog=MOST_CONNECTIONS,
        )
        self._ready.set()
        while not await self._ends_within(SAMPLE_SECONDS):
            self._board.sample()
            self.busy = time.thread_time()
        server.close()
        # Readers are being sent the end.
        until = time.monotonic() + FAREWELL_SECONDS
        while self._readers and time.monotonic() < until:
            await asyncio.sleep(0.01)

    async def _ends_within(self, seconds: float) -> bool:
        ending = self._ending
        if ending is None:
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await ending.wait()
        return ending.is_set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= MOST_CONNECTIONS:
                await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Whoever hangs up, dawdles or says too much is not answered, and not waited for.
            writer.transport.abort()
        finally:
            self._connections -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(REQUEST_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        resource = asked_for(head, self.address)
        if resource == "page":
            writer.write(_head(self._page, "text/html; charset=utf-8", len(self._page.body)))
            writer.write(self._page.body)
            async with asyncio.timeout(UNREAD_SECONDS):
                await writer.drain()
        elif resource == "events" and self._readers < MOST_READERS:
            self._readers += 1
            try:
                await self._stream(reader, writer)
            finally:
                self._readers -= 1

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(self._page, "text/event-stream"))
        hello = {"run": self._run_name, "page": self._page.digest, "now": _now()}
        writer.write(f"event: hello\ndata: {json.dumps(hello)}\n\n".encode())
        seen: dict[str, int] = {}
        spoke, ends = time.monotonic(), False
        while not reader.at_eof():
            changed = self._changes(seen, at_once=ends)
            if changed or time.monotonic() - spoke >= BEAT_SECONDS:
                spoke = time.monotonic()
                await self._send(writer, changed or f'event: beat\ndata: {{"now":{_now()}}}\n\n')
            if ends:
                return
            ends = await self._ends_within(EVENT_SECONDS)

    async def _send(self, writer: asyncio.StreamWriter, event: str) -> None:
        writer.write(event.encode())
        self.events += 1
        if writer.transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            raise TimeoutError
        async with asyncio.timeout(UNREAD_SECONDS):
            await writer.drain()

    def _changes(self, seen: dict[str, int], *, at_once: bool) -> str:
        """An event with the sections that a reader lacks; empty where it lacks none."""
        self._look(at_once)
        lacking = {
            name: text
            for name, (number, text) in self._sections.items()
            if seen.get(name) != number
        }
        seen.update((name, self._sections[name][0]) for name in lacking)
        sections = ",".join(f'"{name}":{text}' for name, text in lacking.items())
        return f'data: {{"now":{_now()},{sections}}}\n\n' if lacking else ""

    def _look(self, at_once: bool) -> None:
        """Takes what the board has now: once for all readers."""
        now = time.monotonic()
        if now - self._looked < EVENT_SECONDS / 2 and not at_once:
            return
        self._looked = now
        for name, value in self._board.snapshot().items():
            number, before = self._sections.get(name, (0, ""))
            text = json.dumps(_rounded(finite_json(value)), separators=(",", ":"))
            if text != before:
                self._sections[name] = number + 1, text


def _head(sent: Page, kind: str, length: int | None = None) -> bytes:
    fields = {
        "Content-Type": kind,
        "Content-Security-Policy": sent.policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
        "Connection": "close",
        **({} if length is None else {"Content-Length": str(length)}),
    }
    lines = ["HTTP/1.1 200 OK", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("ascii")


def _now() -> float:
    return round(datetime.now(UTC).timestamp(), 3)


def _rounded(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, float):
        return float(f"{value:.6g}") if abs(value) < 1e6 else round(value, 1)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value
