"""The service as a process: a socket, TLS, the application, and a stop that lets requests end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from taciturn.errors import CertificateError, ConfigError
from taciturn.files import is_private
from taciturn.party.config import PartyConfig
from taciturn.setting_syntax import Hint
from taciturn.transport.address import check_address, split_address
from taciturn.transport.tls import (
    certificate_fingerprint,
    is_vouched_for,
    read_certificates,
)
from taciturn_ops.serve.http.app import CERTIFICATE_NAMES, ScoringApp, refused
from taciturn_ops.serve.http.listener import LimitedListener
from taciturn_ops.serve.http.requests import Refusal
from taciturn_ops.serve.section import ServeSection

BACKLOG = 512
GRACE_SECONDS = 15
IDLE_SECONDS = 15
# Connections at a time. Beyond them requests are refused as busy, and beyond the second number
# connections are closed unheard.
MOST_CONNECTIONS, MOST_OPEN = 1024, 1280
# Files that the process needs beside them: its own, and those of the link.
OTHER_FILES = 256
# What the head of a request may take, and how long.
MOST_HEAD_BYTES, HEAD_SECONDS = 64 << 10, 10.0
# How long an answer may wait for a caller that does not read.
ANSWER_SECONDS = 20.0
# How long a connection that ends takes in, and how much, so that the answer is not lost: a socket
# that is closed with bytes unread resets the connection.
CLOSING_SECONDS, CLOSING_BYTES = 2.0, 1 << 20
# What the operating system may hold for a connection, in each direction.
SOCKET_BYTES = 256 << 10
LOOK_SECONDS = 1.0
ASGI: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]


class _Pipelined(Exception):
    """A second request arrived before the first was answered."""


class _Closable(asyncio.Transport):
    """A transport as uvicorn sees it: its end is left to the protocol, which bounds it."""

    def __init__(self, inner: asyncio.Transport, end: Callable[[], None]) -> None:
        super().__init__()
        self._inner, self._end, self._closing = inner, end, False

    def write(self, data: Any) -> None:  # noqa: ANN401 - bytes of some kind
        if not self._closing:
            self._inner.write(data)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._end()

    def is_closing(self) -> bool:
        return self._closing or self._inner.is_closing()


class _BoundedProtocol(HttpToolsProtocol):
    """HTTP of which every part is bounded, for callers that mean no good.

    A head has a size and a time, an answer a time to be read, a request is answered before the next
    one is read, and a connection ends in a bounded time. Who has an answer before its request is
    complete may not go on sending it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*args, **kwargs)
        self._application, self.app = self.app, self._answer
        self._timers: dict[str, asyncio.TimerHandle] = {}
        # How much of a head has come; None while there is none to come.
        self._head_bytes: int | None = 0
        self._pipelined = self._unread = False
        self._closing_bytes: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._socket, self.transport = transport, _Closable(transport, self._close)
        if len(self.connections) > MOST_OPEN:
            transport.abort()
        certificate = transport.get_extra_info("peercert")
        if certificate:
            self.app_state = {**self.app_state, CERTIFICATE_NAMES: _names(certificate)}
        self._within("head", HEAD_SECONDS, self._slow)

    def data_received(self, data: bytes) -> None:
        if self._closing_bytes is not None:
            self._closing_bytes += len(data)
            if self._closing_bytes > CLOSING_BYTES:
                self.flow.pause_reading()
            return
        if self._pipelined:
            return
        rest = b""
        if self._head_bytes is not None:
            if "head" not in self._timers:
                self._within("head", HEAD_SECONDS, self._slow)
            room = MOST_HEAD_BYTES - self._head_bytes
            data, rest = data[:room], data[room:]
            self._head_bytes += len(data)
        super().data_received(data)
        if rest and self._head_bytes is not None:
            self._refuse("large-head")
        elif rest:
            self.data_received(rest)

    def on_message_begin(self) -> None:
        if self._under_way:
            raise _Pipelined
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end_of("head")
        self._head_bytes = None
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Handle input that the parser rejects: end after the request under way, or refuse."""
        if not self._under_way or self.cycle.more_body:
            self._refuse("not-http")
            return
        # The first is answered; the caller may send the others again.
        self._pipelined, self.cycle.keep_alive = True, False
        self.flow.pause_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._head_bytes = 0

    def pause_writing(self) -> None:
        super().pause_writing()
        self._within("answer", ANSWER_SECONDS, self._socket.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_of("answer")

    def shutdown(self) -> None:
        super().shutdown()
        if self.flow.write_paused:
            self._within("answer", CLOSING_SECONDS, self._socket.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        for name in [*self._timers]:
            self._end_of(name)
        self._unset_keepalive_if_required()
        # The transport is closed: there is nothing left to bound.
        self.transport = self._socket
        super().connection_lost(exc)

    @property
    def _under_way(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        cycle, app = self.cycle, self._application
        if len(self.connections) > MOST_CONNECTIONS:
            app, cycle.keep_alive = refused(Refusal("busy")), False

        async def closing(message: Any) -> None:  # noqa: ANN401 - ASGI
            if cycle.more_body:
                cycle.keep_alive = False
            await send(message)

        await app(scope, receive, closing)

    def _within(self, name: str, seconds: float, act: Callable[[], None]) -> None:
        self._end_of(name)
        self._timers[name] = self.loop.call_later(seconds, act)

    def _end_of(self, name: str) -> None:
        if timer := self._timers.pop(name, None):
            timer.cancel()

    def _slow(self) -> None:
        if self._head_bytes:
            self._refuse("slow-request")
        else:
            self.transport.close()

    def _refuse(self, code: str) -> None:
        """Answer input that never becomes a request to the application."""
        answer = refused(Refusal(code))
        head = [*self.server_state.default_headers, *answer.raw_headers, (b"connection", b"close")]
        lines = b"".join(b"%b: %b\r\n" % pair for pair in head)
        self.transport.write(STATUS_LINE[answer.status_code] + lines + b"\r\n" + answer.body)
        self._unread = True
        self.transport.close()

    def _close(self) -> None:
        """End the connection; written data goes out first, for a bounded time."""
        waits = self._socket.get_write_buffer_size() > 0
        for name in [*self._timers]:
            self._end_of(name)
        self._unset_keepalive_if_required()
        seconds = ANSWER_SECONDS if waits else CLOSING_SECONDS
        self._within("closing", seconds, self._socket.abort)
        if not (self._unread or self._pipelined or (self.cycle and self.cycle.more_body)):
            self._socket.close()
            return
        # The caller may still be sending: data is read and dropped until it ends, or the time does.
        self._closing_bytes = 0
        if self._socket.can_write_eof():
            # A caller may have reset the connection since the answer was written.
            with contextlib.suppress(OSError):
                self._socket.write_eof()
        self.flow.resume_reading()


def _names(certificate: dict[str, Any]) -> tuple[str, ...]:
    """DNS names in a certificate; empty where there is none.

    >>> _names({"subjectAltName": (("DNS", "CRM"),)})
    ('crm',)
    """
    names = certificate.get("subjectAltName", ())
    return tuple(str(value).lower() for kind, value in names if kind == "DNS")


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening_socket(config: PartyConfig) -> LimitedListener:
    """A socket at the address of the file; nothing beyond this machine without TLS."""
    serve = config.section(ServeSection)
    check_address(serve.address, where=f"{config.where}, [serve] address", any_port=True)
    if not serve.is_local and serve.tls_certificate is None:
        raise ConfigError(
            "tokens and scores would cross the network in clear",
            setting="address",
            hint=Hint(
                "write {tls_certificate} and {tls_key}, or an address of this machine: {address}",
                address="127.0.0.1:8080",
            ),
        )
    host, port = split_address(serve.address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = LimitedListener(family, most_open=MOST_CONNECTIONS)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Those of its connections, too.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as problem:
        listener.close()
        raise ConfigError(
            f"cannot listen on {serve.address}: {problem.strerror or problem}",
            setting="address",
            hint="end what has the port, or name another",
        ) from None
    return listener


def tls_context(config: PartyConfig) -> ssl.SSLContext | None:
    """The TLS of the file; None where there is none."""
    serve = config.section(ServeSection)
    if serve.tls_certificate is None or serve.tls_key is None:
        return None
    if serve.callers_ca is not None:
        _require_other_authority(config, config.path(serve.callers_ca))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    key = config.path(serve.tls_key)
    try:
        context.load_cert_chain(config.path(serve.tls_certificate), key)
        if serve.callers_ca is not None:
            context.load_verify_locations(config.path(serve.callers_ca))
            # A caller without one may still have a token, where there is a file of them.
            context.verify_mode = ssl.CERT_REQUIRED if serve.tokens is None else ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as problem:
        reason = getattr(problem, "strerror", None) or "not PEM, or not a pair"
        raise CertificateError(
            f"the service's certificate, key or callers' authority cannot be used: {reason}",
            where=f"{config.where}, [serve]",
            hint="name PEM files; taciturn certs makes some",
        ) from None
    if not is_private(key.stat()):
        raise CertificateError(
            "others on this machine may read the service's private key",
            where=str(key),
            hint=f"chmod 600 {key}",
        )
    return context


def _require_other_authority(config: PartyConfig, path: Path) -> None:
    """Refuse a callers' authority that is, or has signed, the link's: scores disclose labels."""
    link, callers = read_certificates(config.path(config.link.ca)), read_certificates(path)
    keys = {certificate_fingerprint(authority) for authority in callers}
    for authority in link:
        if certificate_fingerprint(authority) in keys or is_vouched_for([authority], callers):
            raise CertificateError(
                "the authority of callers is that of the link: the peer could ask for scores",
                setting="callers_ca",
                hint="make another authority for callers; taciturn certs does",
            )


def server_settings(app: ASGI, context: ssl.SSLContext | None) -> uvicorn.Config:
    """Uvicorn's settings: no log, lifespan or websockets, and limits."""
    settings = uvicorn.Config(
        app,
        http=_BoundedProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        # What callers do wrong is no matter for the log of the server.
        log_level="error",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    settings.load()
    settings.ssl = context
    return settings


def run_server(app: ScoringApp, listener: LimitedListener, context: ssl.SSLContext | None) -> None:
    """Serve until the process is asked to end, and answer the requests under way."""
    app.authenticated = listener.authenticated
    server = _Server(server_settings(app, context))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # As many open files as the system lets it have: 1,024 are usual, and too few.
    if soft < MOST_OPEN + OTHER_FILES:
        limit = min(MOST_OPEN + OTHER_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _end, server, app)
        watching = asyncio.create_task(_watch(server, app))
        await server.serve(sockets=[listener])
        watching.cancel()

    asyncio.run(serve())
    if app.failure is not None:
        raise app.failure


def _end(server: uvicorn.Server, app: ScoringApp) -> None:
    app.stop()
    server.should_exit = True


async def _watch(server: uvicorn.Server, app: ScoringApp) -> None:
    while app.failure is None:
        await asyncio.sleep(LOOK_SECONDS)
    _end(server, app)
