"""The side that opens a port and waits.

Exactly one stream is live: the newest of the pinned peer. After a cut the peer dials again while
this side has not noticed yet; the older channel then ends with ``ConnectionLost``. Which stream is
newer is decided by the order of arrival, since their threads may begin in another order. A second
process of the peer's does not push the first one out: it is told that this side is busy. Anybody
else is refused without a word, and the party is told why.
"""

from __future__ import annotations

import errno
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import grpc

from taciturn.deploy.transport.address import check_address, check_name
from taciturn.deploy.transport.grpc_channel import BUSY, CALLER, METHOD, GrpcChannel
from taciturn.deploy.transport.limits import Limits
from taciturn.deploy.transport.probe import split_address
from taciturn.deploy.transport.rate import Allowance
from taciturn.deploy.transport.security import objection, server_credentials
from taciturn.deploy.transport.tls import Credentials
from taciturn.errors import ConnectionLost, PeerAbsent, TransportError

REPORTS_PER_SECOND = 5.0
# How long nobody may call before the likely reasons are said.
QUIET = 10.0
LONGEST_CALLER = 64


def unheard(reason: str) -> None:
    """The observer of refusals that drops them."""


class ServeEndpoint:
    """Listens for one named peer; see ``taciturn.engine.channel.Endpoint``.

    Args:
        listen: ``host:port``; port 0 lets the system pick one.
        credentials: Our own certificate, key and authority.
        peer: The name that the peer's certificate must have.
        limits: The numbers of the wire.
        on_refused: Told, in words, of callers that were refused. Called from other threads, and
            not more than a few times a second.
        on_quiet: Told, in words, that nobody has called for a while, once each time it waits.

    Attributes:
        port: The port it listens on.

    Raises:
        ConfigError: The address or the name is not usable.
        TransportError: The address cannot be used to listen on.
    """

    def __init__(
        self,
        listen: str,
        credentials: Credentials,
        *,
        peer: str,
        limits: Limits | None = None,
        on_refused: Callable[[str], None] = unheard,
        on_quiet: Callable[[str], None] = unheard,
    ) -> None:
        check_address(listen, where="listen", any_port=True)
        self._peer = check_name(peer, setting="peer")
        self._limits = limits or Limits()
        self._own, self._on_refused, self._on_quiet = credentials.name, on_refused, on_quiet
        self._reports = Allowance(REPORTS_PER_SECOND)
        self._attempts = Allowance(self._limits.attempts)
        self._changed = threading.Condition()
        self._newest: GrpcChannel | None = None
        self._newest_arrival, self._newest_caller = -1, ""
        self._handed_out = True
        self._closed = False
        self._last_refusal = ""
        self._threads = ThreadPoolExecutor(self._limits.streams, "taciturn-serve")
        self._server = grpc.server(
            self._threads,
            handlers=[_Handler(self._answer)],
            options=self._limits.server_options(),
            maximum_concurrent_rpcs=self._limits.streams,
        )
        self.port = self._listen(listen, credentials)

    def connect(self, timeout: float) -> GrpcChannel:
        """Waits for the peer."""
        until = time.monotonic() + timeout
        channel = self._next(min(timeout, QUIET))
        if channel is None and timeout > QUIET and not self._last_refusal:
            self._on_quiet(_nobody_calls(self.port))
        channel = channel or self._next(until - time.monotonic())
        if channel is None:
            raise self._nobody(timeout)
        return channel

    def _next(self, timeout: float) -> GrpcChannel | None:
        """The peer's newest channel that nobody has had yet; None where none came in time."""
        until = time.monotonic() + timeout
        with self._changed:
            while True:
                if self._closed:
                    raise TransportError("the endpoint is closed")
                if not self._handed_out and self._newest is not None and self._newest.alive:
                    self._handed_out = True
                    return self._newest
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(min(left, threading.TIMEOUT_MAX))

    def close(self) -> None:
        """Ends the live channel, then the port."""
        with self._changed:
            self._closed = True
            newest = self._newest
            self._changed.notify_all()
        if newest is not None:
            newest.close()
        self._server.stop(0).wait()
        self._threads.shutdown(wait=True)

    def _listen(self, listen: str, credentials: Credentials) -> int:
        try:
            port = int(self._server.add_secure_port(listen, server_credentials(credentials)))
        except RuntimeError:
            # gRPC raises or returns 0, depending on its version.
            port = 0
        if port == 0:
            self._threads.shutdown(wait=False)
            raise TransportError(
                f"cannot listen on this address{_obstacle(listen)}",
                where=listen,
                hint="is it this machine's, is the port free, and may this account open it?",
            )
        self._server.start()
        return port

    def _nobody(self, timeout: float) -> PeerAbsent:
        refused = f"; a connection was refused: {self._last_refusal}" if self._last_refusal else ""
        return PeerAbsent(
            f"{self._peer} has not connected within {timeout:g} s{refused}",
            where=f"port {self.port}",
            hint="start the other party, and check its address and the firewall between",
        )

    def _answer(
        self, arrival: int, method: str, incoming: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """The life of one stream, in a thread of gRPC's."""
        against = objection(context.auth_context(), self._peer, self._own)
        if not against and method != METHOD:
            against = "it speaks another protocol, or another version of this one"
        if against:
            self._refuse(context, against, grpc.StatusCode.PERMISSION_DENIED)
        if not self._attempts.spend():
            self._refuse(context, "it connects too often", grpc.StatusCode.RESOURCE_EXHAUSTED)
        channel = GrpcChannel(self._peer, self._limits)
        live = context.add_callback(
            lambda: channel.lose(ConnectionLost(f"the connection to {self._peer} broke"))
        )
        # The caller may have gone before this thread began: such a stream replaces nothing.
        if not live:
            return
        channel.start(incoming, context.cancel)
        if not self._replace(channel, arrival, _caller(context)):
            self._refuse(context, "another session of its is connected", *_BUSY)
        yield from channel.outgoing()

    def _refuse(
        self,
        context: grpc.ServicerContext,
        reason: str,
        code: grpc.StatusCode,
        answer: str = "refused",
    ) -> None:
        # Without its port, which differs from call to call.
        self._last_refusal = f"{unquote(context.peer()).rpartition(':')[0]}: {reason}"
        # Whatever the observer does, the caller is refused, and learns nothing of it.
        with suppress(Exception):
            if self._reports.spend():
                self._on_refused(self._last_refusal)
        # Raises, so that the caller's stream ends here.
        context.abort(code, answer)

    def _replace(self, channel: GrpcChannel, arrival: int, caller: str) -> bool:
        """Makes a channel the live one, unless a later one is; False where another process's is."""
        with self._changed:
            # Streams have threads of their own, and the later one may come here first.
            older: GrpcChannel | None = channel
            if arrival > self._newest_arrival:
                older = self._newest
                # The same process calls again where its link broke, which is not noticed here yet.
                others = caller != self._newest_caller and "" not in (caller, self._newest_caller)
                if others and older is not None and older.alive:
                    return False
                self._newest, self._handed_out = channel, False
                self._newest_arrival, self._newest_caller = arrival, caller
            closed = self._closed
            self._changed.notify_all()
        if older is not None:
            older.lose(ConnectionLost(f"{self._peer} has connected again"))
        if closed:
            channel.lose(ConnectionLost("the endpoint is closed"))
        return True


_BUSY = (grpc.StatusCode.RESOURCE_EXHAUSTED, BUSY)


def _caller(context: grpc.ServicerContext) -> str:
    """The name of the calling process; empty where it gives none."""
    given = dict(context.invocation_metadata()).get(CALLER, "")
    return str(given)[:LONGEST_CALLER]


def _nobody_calls(port: int) -> str:
    return (
        f"nobody has called port {port} yet: the peer is not started, has another address in its "
        "file, a firewall is between, or its file has listen too, and neither side calls"
    )


def _obstacle(listen: str) -> str:
    """Why an address cannot be listened on, from trying it, since gRPC does not tell a program."""
    try:
        places = socket.getaddrinfo(*split_address(listen), type=socket.SOCK_STREAM)
        for family, kind, protocol, _, place in places:
            with socket.socket(family, kind, protocol) as trial:
                trial.bind(place)
                trial.listen()
    except OSError as problem:
        if isinstance(problem, socket.gaierror):
            return ": its name is not known here"
        words = {
            errno.EADDRINUSE: "the port is in use",
            errno.EADDRNOTAVAIL: "it is not this machine's",
        }
        return f": {words.get(problem.errno or 0, problem.strerror)}"
    return ""


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Every call, whatever its name, comes to the same door."""

    def __init__(self, answer: Callable[[int, str, Iterator[bytes], Any], Iterator[bytes]]) -> None:
        self._answer = answer
        self._arrivals = itertools.count()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        # gRPC asks here in one thread, in the order of arrival, before it starts the stream's own.
        arrival = next(self._arrivals)
        return grpc.stream_stream_rpc_method_handler(
            lambda incoming, context: self._answer(arrival, details.method, incoming, context)
        )
