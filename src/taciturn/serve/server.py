"""The service as a process: a socket, TLS, the application, and a stop that lets requests end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from taciturn.deploy.config import PartyConfig
from taciturn.deploy.transport.address import check_address
from taciturn.errors import CertificateError, ConfigError
from taciturn.faces import Hint
from taciturn.serve.app import CERTIFICATE_NAME, ScoringApp

BACKLOG = 512
GRACE_SECONDS = 15
IDLE_SECONDS = 15
# Connections at a time; beyond them the server itself says 503, in plain text.
MOST_CONNECTIONS = 1024
# What headers may take, and how long.
MOST_HEAD_BYTES, HEAD_SECONDS = 64 << 10, 10.0
LOOK_SECONDS = 1.0


class _BoundedProtocol(HttpToolsProtocol):
    """Knows the caller by its certificate, and lets nobody take long or much for the headers."""

    _head: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        certificate = transport.get_extra_info("peercert")
        if certificate:
            self.app_state = {**self.app_state, CERTIFICATE_NAME: _name(certificate)}
        self._begin_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head is None:
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._leave()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._head is None:
            self._begin_head()

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def _begin_head(self) -> None:
        self._head_bytes, self._head = 0, self.loop.call_later(HEAD_SECONDS, self._leave)

    def _end_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _leave(self) -> None:
        self._end_head()
        self.transport.close()


def _name(certificate: dict[str, Any]) -> str:
    """The name of whom a certificate is for: the first of its DNS names.

    Empty where there is none: such a certificate is nobody's.

    >>> _name({"subjectAltName": (("DNS", "CRM"),)})
    'crm'
    """
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    return str(names[0]).lower() if names else ""


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening_socket(config: PartyConfig) -> socket.socket:
    """A socket at the address of the file; nothing beyond this machine without TLS.

    Raises:
        ConfigError: The address is none, is taken, or is open to others without TLS.
    """
    serve = config.serve
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
    host, _, port = serve.address.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its protocol asyncio knows that small writes must not wait.
    taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, int(port)))
        taken.listen(BACKLOG)
    except OSError as problem:
        taken.close()
        raise ConfigError(
            f"callers cannot be heard at {serve.address}: {problem.strerror or problem}",
            setting="address",
            hint="end what has the port, or name another",
        ) from None
    return taken


def tls_context(config: PartyConfig) -> ssl.SSLContext | None:
    """The TLS of the file; None where there is none.

    Raises:
        CertificateError: A certificate, its key or the authority of callers is not fit for use.
    """
    serve = config.serve
    if serve.tls_certificate is None or serve.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    key = config.path(serve.tls_key)
    try:
        context.load_cert_chain(config.path(serve.tls_certificate), key)
        if serve.callers_ca is not None:
            context.load_verify_locations(config.path(serve.callers_ca))
            # Whoever has none may still have a token, where there is a file of them.
            context.verify_mode = ssl.CERT_REQUIRED if serve.tokens is None else ssl.CERT_OPTIONAL
    except (OSError, ssl.SSLError) as problem:
        reason = getattr(problem, "strerror", None) or "not PEM, or not a pair"
        raise CertificateError(
            f"the service's certificate, key or callers' authority cannot be used: {reason}",
            where=f"{config.where}, [serve]",
            hint="name PEM files; taciturn certs makes some",
        ) from None
    _require_private(key)
    return context


def _require_private(key: Path) -> None:
    if key.stat().st_mode & 0o077:
        raise CertificateError(
            "others on this machine may read the service's private key",
            where=str(key),
            hint=f"chmod 600 {key}",
        )


def run_server(app: ScoringApp, taken: socket.socket, context: ssl.SSLContext | None) -> None:
    """Serves until the process is told to end; then requests under way are answered first."""
    settings = uvicorn.Config(
        app,
        http=_BoundedProtocol,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    settings.load()
    settings.ssl = context
    server = _Server(settings)

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _end, server, app)
        watching = asyncio.create_task(_watch(server, app))
        await server.serve(sockets=[taken])
        watching.cancel()

    asyncio.run(serve())
    if app.failure is not None:
        raise app.failure


def _end(server: uvicorn.Server, app: ScoringApp) -> None:
    app.stop()
    server.should_exit = True


async def _watch(server: uvicorn.Server, app: ScoringApp) -> None:
    """Ends the server where nobody asks the partner any more."""
    while app.failure is None:
        await asyncio.sleep(LOOK_SECONDS)
    _end(server, app)
