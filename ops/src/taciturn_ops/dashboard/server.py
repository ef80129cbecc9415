"""``Server``: serves one dashboard to browsers on this machine, from one thread.

It listens on 127.0.0.1 and on nothing else. A request that may not have an answer gets none: the
connection is closed without a byte. Everything is bounded: connections, readers, the length of a
request and the time it may take, what a slow reader may leave unread. The page is one file; its
content security policy names its style and script by their digests, and lets nothing else run, load
or be sent anywhere but to where the page came from.

::

    GET /TOKEN/         the page
    GET /TOKEN/events   server-sent events: hello (which process, which page), then the sections
                        that have changed, at most four times a second, and a beat where none has

The file of the address is as secret as the page: who knows the token may read the page. It is mode
600; one that others may read, or that holds no address, is not used, and replaced.

**Guarantee.** A client without the token learns nothing: for every request that is not a plain GET
of one of the two paths, with the token and under the server's own name, the answer is None, and the
server closes the connection without a byte.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import re
import socket
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from taciturn.errors import ConfigError, OutputError
from taciturn.files import finite_json, private_folder, reporting_write_errors, write_private
from taciturn.rng import SystemEntropy
from taciturn.setting_syntax import Hint
from taciturn_ops.dashboard.dashboard_state import DashboardState

HOST = "127.0.0.1"
TOKEN_BYTES = 32
_URL = re.compile(rf"http://{re.escape(HOST)}:(\d{{1,5}})/([A-Za-z0-9_-]{{43}})/")
_MOST_LETTERS = 1000


def new_token() -> str:
    """Secret part of an address: 32 random bytes, in 43 URL-safe characters."""
    return base64.urlsafe_b64encode(SystemEntropy().token(TOKEN_BYTES)).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a page; ``token`` is the secret part of the path."""

    port: int
    token: str = field(repr=False)

    @property
    def url(self) -> str:
        """URL for a browser."""
        return f"http://{HOST}:{self.port}/{self.token}/"

    @classmethod
    def kept(cls, path: Path) -> Address | None:
        """Read the address from a file; None where there is none that can be used."""
        try:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                return None
            with path.open(encoding="ascii") as stream:
                values = json.loads(stream.read(_MOST_LETTERS))
        except (OSError, ValueError):
            return None
        url = values.get("address") if isinstance(values, dict) else None
        match = _URL.fullmatch(url) if isinstance(url, str) else None
        return None if match is None else cls(int(match[1]), match[2])

    def keep(self, path: Path) -> None:
        """Write the address to a file; ``OutputError`` if that fails."""
        write_private(path, json.dumps({"address": self.url}) + "\n", "address of the live page")


Resource: TypeAlias = Literal["page", "events"]
_RESOURCES: dict[bytes, Resource] = {b"": "page", b"events": "events"}


def asked_for(head: bytes, address: Address) -> Resource | None:
    r"""Resource that a request asks for; None where it gets no answer.

    ``head`` is the request's first lines, the empty one at their end included.

    >>> here = Address(80, "ab")
    >>> asked_for(b"GET /ab/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n", here)
    'page'
    >>> asked_for(b"GET /ab/ HTTP/1.1\r\nHost: elsewhere:80\r\n\r\n", here)
    """
    first, *fields = head.split(b"\r\n")
    parts = first.split(b" ")
    if len(parts) != 3 or parts[0] != b"GET" or parts[2] != b"HTTP/1.1":
        return None
    if not _for_this_host(fields, address.port):
        return None
    # A site that has its name point here would be another origin, with another name above.
    path = parts[1].split(b"/")
    if len(path) != 3 or path[0]:
        return None
    if not hmac.compare_digest(path[1], address.token.encode()):
        return None
    return _RESOURCES.get(path[2])


def _for_this_host(fields: list[bytes], port: int) -> bool:
    """Whether the one Host field names this machine: a rebound name would be another."""
    hosts = [
        value.strip()
        for field in fields
        for name, _, value in [field.partition(b":")]
        if name.lower() == b"host"
    ]
    own_hosts = [f"{host}:{port}".encode() for host in (HOST, "localhost")]
    return len(hosts) == 1 and hosts[0].lower() in own_hosts


_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """The page, its content security policy, and a digest by which browsers notice a new one."""

    body: bytes
    policy: str
    digest: str


@cache
def page() -> Page:
    """The page of this version."""
    text = files("taciturn_ops.dashboard").joinpath("page.html").read_text(encoding="utf-8")
    (style,), (script,) = _STYLE.findall(text), _SCRIPT.findall(text)
    policy = (
        "default-src 'none'",
        f"style-src '{_digest(style)}'",
        f"script-src '{_digest(script)}'",
        "connect-src 'self'",
        # The mark in the browser's tab, which is part of the page.
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    body = text.encode()
    return Page(body, "; ".join(policy), hashlib.sha256(body).hexdigest()[:16])


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


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
    """A socket on this machine alone; port 0 for any free one. Raises ``OSError``."""
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
    """``listening`` on a port that a person named; raises ``ConfigError``."""
    try:
        return listening(port)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise ConfigError(
            f"the live page cannot be served on port {port} of this machine: {reason}",
            setting="watch_port",
            hint=Hint(
                "stop the process that uses it, name another port, or let {watch} choose one",
                watch=True,
            ),
        ) from None


class Server:
    """Server of a dashboard on a listening socket of this machine.

    ``busy`` is how many seconds the serving thread has computed so far, ``events`` how many events
    were sent to all readers.
    """

    def __init__(self, state: DashboardState, taken: socket.socket, token: str) -> None:
        self.address = Address(taken.getsockname()[1], token)
        self.busy, self.events = 0.0, 0
        self._state, self._socket, self._page = state, taken, page()
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
        """Serve while the context lasts; at the end readers are sent the last changes."""
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
            self._state.sample()
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
            # A client that hangs up, stalls or sends too much gets no answer.
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
        """Read the state now: once for all readers."""
        now = time.monotonic()
        if now - self._looked < EVENT_SECONDS / 2 and not at_once:
            return
        self._looked = now
        for name, value in self._state.snapshot().items():
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


def open_server(state: DashboardState, port: int | None, file: Path | None) -> tuple[Server, str]:
    """A server that is not yet serving, and a remark on its address; empty where there is none.

    Without a ``port``, the one kept in ``file`` is used, or any. A port that is not available is a
    ``ConfigError``.
    """
    saved = None if file is None else Address.kept(file)
    remark = ""
    if port is not None:
        taken = listening_on(port)
    else:
        taken, remark = _usual(saved)
    # Another program on the usual port may receive a request for the page, and learn its token.
    token = new_token() if saved is None or remark else saved.token
    server = Server(state, taken, token)
    # An address that serves this once only must not replace the usual one.
    if file is not None and not remark and server.address != saved:
        try:
            with reporting_write_errors(file, "address of the live page"):
                private_folder(file.parent)
            server.address.keep(file)
        except OutputError:
            taken.close()
            raise
    return server, remark


def _usual(previous: Address | None) -> tuple[socket.socket, str]:
    if previous is None:
        return listening(0), ""
    try:
        return listening(previous.port), ""
    except OSError:
        remark = (
            f"port {previous.port}, where the live page was before, is in use: another one serves"
        )
        return listening(0), remark
