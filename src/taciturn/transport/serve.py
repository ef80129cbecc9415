"""The side that opens a port and waits, for one peer or for several.

Of each peer exactly one stream is live: the newest. After a cut the peer dials again while
this side has not noticed yet; the older channel then ends with ``ConnectionLost``. Which stream is
newer is decided by the order of arrival, since their threads may begin in another order. A second
process of the peer's does not push the first one out: it learns that this side is busy. Anybody
else is refused without a reason, which the party logs.
"""

from __future__ import annotations

import errno
import itertools
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import grpc

from taciturn.engine.callbacks import noop
from taciturn.errors import ConnectionLost, PeerAbsent, TransportError
from taciturn.transport.address import check_address, check_name, split_address
from taciturn.transport.grpc_channel import (
    BUSY,
    CALLER,
    METHOD,
    GrpcChannel,
    caller_among,
    objection,
    pin_objection,
    server_credentials,
)
from taciturn.transport.limits import Limits, RateLimiter
from taciturn.transport.tls import Credentials

REPORTS_PER_SECOND = 5.0
# How long nobody may call before the likely reasons are said.
QUIET = 10.0
LONGEST_CALLER = 64


class Hub:
    """Server on one port for several named peers; each has an endpoint.

    With port 0 the system picks one. ``pins`` has the names that the peers' certificates must have,
    each with the fingerprint of the certificate's key, or None where any key of that name will do.
    ``on_refused`` is called from other threads, not more than a few times a second. ``on_quiet`` is
    called when a peer has not called for a while, once each time it is waited for. The port is
    closed with the last endpoint.
    """

    def __init__(
        self,
        listen: str,
        credentials: Credentials,
        *,
        pins: Mapping[str, str | None],
        limits: Limits | None = None,
        on_refused: Callable[[str], None] = noop,
        on_quiet: Callable[[str], None] = noop,
    ) -> None:
        check_address(listen, where="listen", any_port=True)
        usual = limits or Limits()
        # A live stream keeps a thread: each peer needs one, and some more to be refused in.
        self._limits = replace(usual, streams=usual.streams * len(pins))
        self._own, self._pins = credentials.name, dict(pins)
        self._on_refused, self._reports = on_refused, RateLimiter(REPORTS_PER_SECOND)
        self._closing = threading.Lock()
        self.endpoints = {
            name: PeerEndpoint(self, check_name(name, setting="peer"), usual, on_quiet)
            for name in pins
        }
        self._threads = ThreadPoolExecutor(self._limits.streams, "taciturn-serve")
        self._server = grpc.server(
            self._threads,
            handlers=[_Handler(self._answer)],
            options=self._limits.server_options(),
            maximum_concurrent_rpcs=self._limits.streams,
        )
        self.port = self._listen(listen, credentials)

    @property
    def several(self) -> bool:
        """Whether a text has to say which of the peers it is about."""
        return len(self._pins) > 1

    def close(self) -> None:
        """End the live channels, then the port."""
        for endpoint in self.endpoints.values():
            endpoint.close()

    def release(self) -> None:
        """Close the port, where no endpoint needs it any more."""
        with self._closing:
            if all(endpoint.closed for endpoint in self.endpoints.values()):
                # Not for good: without memory gRPC's own thread may be gone.
                self._server.stop(0).wait(self._limits.drain)
                self._threads.shutdown(wait=True)

    def refuse(
        self,
        caller: grpc.ServicerContext,
        reason: str,
        code: grpc.StatusCode,
        answer: str = "refused",
        *,
        peer: str | None = None,
    ) -> None:
        """End a caller's stream by raising, and report the reason to this side.

        The caller learns ``code`` and ``answer``, and nothing of ``reason``. ``peer`` is None where
        the caller is none of the peers.
        """
        # Without its port, which differs from call to call.
        address = unquote(caller.peer()).rpartition(":")[0]
        who = f"{address}, {peer}" if peer and self.several else address
        # A caller that is none of them may be meant to be any of them.
        for endpoint in self.endpoints.values() if peer is None else [self.endpoints[peer]]:
            endpoint.last_refusal = f"{who}: {reason}"
        # Whatever the observer does, the caller is refused.
        with suppress(Exception):
            if self._reports.try_acquire():
                self._on_refused(f"{who}: {reason}")
        caller.abort(code, answer)

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

    def _answer(
        self, arrival: int, method: str, incoming: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Main loop of one stream, in a thread of gRPC's."""
        shown = context.auth_context()
        against = objection(shown, self._pins, self._own)
        if against:
            self.refuse(context, against, grpc.StatusCode.PERMISSION_DENIED)
        peer = caller_among(self._pins, shown)
        against = pin_objection(shown, self._pins[peer])
        if not against and method != METHOD:
            against = "it speaks another protocol, or another version of this one"
        if against:
            self.refuse(context, against, grpc.StatusCode.PERMISSION_DENIED, peer=peer)
        yield from self.endpoints[peer].answer(arrival, incoming, context)


class PeerEndpoint:
    """Endpoint of one peer at a hub; see ``taciturn.transport.channel.Endpoint``.

    ``last_refusal`` is why a call was refused that was the peer's, or may have been meant to be.
    """

    def __init__(
        self, hub: Hub, peer: str, limits: Limits, on_quiet: Callable[[str], None]
    ) -> None:
        self._hub, self._peer, self._limits, self._on_quiet = hub, peer, limits, on_quiet
        self._attempts = RateLimiter(limits.attempts)
        self._changed = threading.Condition()
        self._newest: GrpcChannel | None = None
        self._newest_arrival, self._newest_caller = -1, ""
        self._handed_out = True
        self._asked: float | None = None
        self.closed, self.last_refusal = False, ""

    def connect(self, timeout: float) -> GrpcChannel:
        """Wait for the peer; with no time to wait only ask whether it has called."""
        until = time.monotonic() + timeout
        if self._asked is None and timeout > 0:
            self._asked = time.monotonic()
        channel = self._next(min(timeout, QUIET))
        if channel is None and timeout > 0:
            self._report_quiet()
            channel = self._next(until - time.monotonic())
        if channel is None:
            raise self._absent(timeout)
        self._asked = None
        return channel

    def _report_quiet(self) -> None:
        """Report the likely reasons once, after a long wait, in one call or many."""
        if self._asked is not None and time.monotonic() - self._asked >= QUIET:
            self._asked = math.inf
            if not self.last_refusal:
                self._on_quiet(
                    _quiet_reasons(self._peer if self._hub.several else "", self._hub.port)
                )

    def _next(self, timeout: float) -> GrpcChannel | None:
        """The peer's newest channel, if it was not handed out yet; None where none came in time."""
        until = time.monotonic() + timeout
        with self._changed:
            while True:
                if self.closed:
                    raise TransportError("the endpoint is closed")
                if not self._handed_out and self._newest is not None and self._newest.alive:
                    self._handed_out = True
                    return self._newest
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(min(left, threading.TIMEOUT_MAX))

    def close(self) -> None:
        """End the live channel, and the hub's port where this was its last endpoint."""
        with self._changed:
            self.closed = True
            newest = self._newest
            self._changed.notify_all()
        if newest is not None:
            newest.close()
        self._hub.release()

    def _absent(self, timeout: float) -> PeerAbsent:
        refused = f"; a connection was refused: {self.last_refusal}" if self.last_refusal else ""
        return PeerAbsent(
            f"{self._peer} has not connected within {timeout:g} s{refused}",
            where=f"port {self._hub.port}",
            hint="if that is the other party, correct [link] peer in this side's file, or its "
            "certificate"
            if refused
            else "start the other party, and check its address and the firewall between; where "
            "TLS fails, its screen says why",
        )

    def answer(
        self, arrival: int, incoming: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Main loop of one of the peer's streams."""
        exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
        if not self._attempts.try_acquire():
            self._hub.refuse(context, "it connects too often", exhausted, peer=self._peer)
        channel = GrpcChannel(self._peer, self._limits)
        live = context.add_callback(
            lambda: channel.abort(ConnectionLost(f"the connection to {self._peer} broke"))
        )
        # The caller may have gone before this thread began: such a stream replaces nothing.
        if not live:
            return
        channel.start(incoming, context.cancel)
        caller = str(dict(context.invocation_metadata()).get(CALLER, ""))[:LONGEST_CALLER]
        if not self._replace(channel, arrival, caller):
            busy = "another session of its is connected"
            self._hub.refuse(context, busy, exhausted, BUSY, peer=self._peer)
        yield from channel.outgoing()

    def _replace(self, channel: GrpcChannel, arrival: int, caller: str) -> bool:
        """Make a channel the live one, unless a later one is; False where another process's is."""
        with self._changed:
            # Streams have threads of their own, and the later one may come here first.
            older: GrpcChannel | None = channel
            if arrival > self._newest_arrival:
                older = self._newest
                # The same process calls again where its link broke, which is not noticed here yet.
                another_caller = caller != self._newest_caller and "" not in (
                    caller,
                    self._newest_caller,
                )
                if another_caller and older is not None and older.alive:
                    return False
                self._newest, self._handed_out = channel, False
                self._newest_arrival, self._newest_caller = arrival, caller
            closed = self.closed
            self._changed.notify_all()
        if older is not None:
            older.abort(ConnectionLost(f"{self._peer} has connected again"))
        if closed:
            channel.abort(ConnectionLost("the endpoint is closed"))
        return True


def _quiet_reasons(peer: str, port: int) -> str:
    who = f"{peer} has not" if peer else "nobody has"
    return (
        f"{who} called port {port} yet: the peer is not started, has another address in its "
        "file, a firewall is between, or its file has listen too, and neither side calls"
    )


def _obstacle(listen: str) -> str:
    """Reason why an address cannot be listened on, by trying it, as gRPC gives none; or empty."""
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
    """Handler of every call, whatever its name."""

    def __init__(self, answer: Callable[[int, str, Iterator[bytes], Any], Iterator[bytes]]) -> None:
        self._answer = answer
        self._arrivals = itertools.count()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        # gRPC asks here in one thread, in the order of arrival, before it starts the stream's own.
        arrival = next(self._arrivals)
        return grpc.stream_stream_rpc_method_handler(
            lambda incoming, context: self._answer(arrival, details.method, incoming, context)
        )
