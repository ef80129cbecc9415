"""The side that opens a port and waits.

Exactly one stream is live: the newest of the pinned peer. After a cut the peer dials again while
this side has not noticed yet; the older channel then ends with ``ConnectionLost``. Which stream is
newer is decided by the order of arrival, since their threads may begin in another order. Anybody
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
from taciturn.deploy.transport.grpc_channel import METHOD, GrpcChannel
from taciturn.deploy.transport.limits import Limits
from taciturn.deploy.transport.rate import Allowance
from taciturn.deploy.transport.security import objection, server_credentials
from taciturn.deploy.transport.tls import Credentials
from taciturn.errors import ConnectionLost, PeerAbsent, TransportError

REPORTS_PER_SECOND = 5.0


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
    ) -> None:
        check_address(listen, where="listen", any_port=True)
        self._peer = check_name(peer, setting="peer")
        self._limits = limits or Limits()
        self._on_refused = on_refused
        self._reports = Allowance(REPORTS_PER_SECOND)
        self._attempts = Allowance(self._limits.attempts)
        self._changed = threading.Condition()
        self._newest: GrpcChannel | None = None
        self._newest_arrival = -1
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
        with self._changed:
            while True:
                if self._closed:
                    raise TransportError("the endpoint is closed")
                if not self._handed_out and self._newest is not None and self._newest.alive:
                    self._handed_out = True
                    return self._newest
                left = until - time.monotonic()
                if left <= 0:
                    raise self._nobody(timeout)
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
        against = objection(context.auth_context(), self._peer)
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
        self._replace(channel, arrival)
        yield from channel.outgoing()

    def _refuse(self, context: grpc.ServicerContext, reason: str, code: grpc.StatusCode) -> None:
        self._last_refusal = f"{unquote(context.peer())}: {reason}"
        # Whatever the observer does, the caller is refused, and learns nothing of it.
        with suppress(Exception):
            if self._reports.spend():
                self._on_refused(self._last_refusal)
        # Raises, so that the caller's stream ends here.
        context.abort(code, "refused")

    def _replace(self, channel: GrpcChannel, arrival: int) -> None:
        with self._changed:
            # Streams have threads of their own, and the later one may come here first.
            older: GrpcChannel | None = channel
            if arrival > self._newest_arrival:
                older, self._newest, self._handed_out = self._newest, channel, False
                self._newest_arrival = arrival
            closed = self._closed
            self._changed.notify_all()
        if older is not None:
            older.lose(ConnectionLost(f"{self._peer} has connected again"))
        if closed:
            channel.lose(ConnectionLost("the endpoint is closed"))


def _obstacle(listen: str) -> str:
    """Why an address cannot be listened on, from trying it, since gRPC does not tell a program."""
    host, _, port = listen.rpartition(":")
    try:
        places = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
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
