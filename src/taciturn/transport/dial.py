"""The side that calls.

It tries until the time is over, since the other side may be started later. What will not change
by waiting is named at once: a certificate that we do not accept, a plain refusal of ours, or an
authenticated server that is no gRPC. In TLS 1.3 certificates arrive encrypted and authenticated, so
that none of these comes of a bit that was flipped on the way. Whatever else goes wrong in a
handshake may: it is tried again, and said. A server that does not accept our *certificate* only
hangs up after the handshake, without a word; the same happens when it is just being stopped. So
that is taken for a refusal when it has happened several times in a row. One that hangs up earlier
is full, or about to go: it is tried again.

Each process names itself by a random number when it calls, so that the server can tell a peer that
calls again after a break from a second one, which has to wait until the first is gone.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import grpc
from cryptography.hazmat.primitives.serialization import Encoding

from taciturn.engine.callbacks import noop
from taciturn.errors import ConnectionLost, PeerAbsent, PeerRefused, TransportError
from taciturn.rng import SystemEntropy
from taciturn.transport.address import (
    MUTE,
    NO_ANSWER,
    NO_LISTENER,
    NO_ROUTE,
    UNKNOWN_NAME,
    check_address,
    check_name,
    names_shown,
    obstacle,
)
from taciturn.transport.grpc_channel import (
    BUSY,
    CALLER,
    METHOD,
    GrpcChannel,
    KeyPin,
    client_credentials,
)
from taciturn.transport.limits import Limits
from taciturn.transport.tls import Credentials

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
ATTEMPT = 10.0
# An attempt that takes longer is investigated meanwhile.
SLOW = 3.0
# A peer that is started at about the same time is not there at once.
GRACE = 2.0
HANGS_UP = 4

_UNTRUSTED = "the server's certificate is not accepted: it was not signed by our authority"
_OTHER_NAME = "Hostname Verification"
# Damage on the way cannot cause these errors: TLS has authenticated what led to them.
_REFUSALS = (
    ("certificate has expired", "the server's certificate has expired"),
    ("not yet valid", "the server's certificate is not valid yet"),
    ("CERTIFICATE_VERIFY_FAILED", _UNTRUSTED),
    ("certificate signature failure", _UNTRUSTED),
    ("peer did not negotiate ALPN", "the server speaks TLS, but not gRPC"),
    ("missing selected ALPN", "the server speaks TLS, but not gRPC"),
    ("Failed parsing HTTP/2", "the server speaks TLS, but not gRPC"),
)
_MISHAPS = (
    ("WRONG_VERSION_NUMBER", "the server does not speak TLS, or its answer was damaged on the way"),
    (
        "handshake failed",
        "the server does not complete a TLS 1.3 handshake, or it was damaged on the way",
    ),
    ("DATA_CORRUPTED", "what the server sent was damaged on the way"),
    ("Handshake", "the server hung up during the handshake"),
    ("Connection refused", NO_LISTENER),
    ("Connection reset", "the server hung up"),
    ("Socket closed", "the server hung up"),
    ("Broken pipe", "the server hung up"),
    ("DNS", UNKNOWN_NAME),
    ("lookup failed", UNKNOWN_NAME),
    ("unreachable", NO_ROUTE),
    ("No route", NO_ROUTE),
    ("timed out", NO_ANSWER),
    (BUSY, "it is busy with another session of this side's; waiting for its end"),
    ("Concurrent RPC limit", "it has too many callers at the moment"),
    ("refused", "this side calls too often; waiting"),
)


class DialEndpoint:
    """Client of one named peer; see ``taciturn.transport.channel.Endpoint``.

    ``peer`` is the name that the peer's certificate must have, whatever its address; ``pin`` the
    key that it must have too, None where any key of that name will do. ``on_failed`` is called
    within seconds with why attempts fail: each reason when it is new.
    """

    def __init__(
        self,
        address: str,
        credentials: Credentials,
        *,
        peer: str,
        pin: KeyPin | None = None,
        limits: Limits | None = None,
        on_failed: Callable[[str], None] = noop,
    ) -> None:
        self._on_failed = on_failed
        self._address = check_address(address, where="address")
        self._peer = check_name(peer, setting="peer")
        self._own, self._credentials = credentials, client_credentials(credentials)
        self._pin = pin
        self._limits = limits or Limits()
        self._closed = threading.Event()
        self._current: GrpcChannel | None = None
        self._mishap = ""
        # Whether the last call was one in which only the pinned key, if there is one, is trusted.
        self._asked = pin is None

    def connect(self, timeout: float) -> GrpcChannel:
        """Call until the peer answers."""
        self._drop(self._current)
        start = time.monotonic()
        until = start + timeout
        pause, hung_up, mishap, self._mishap = FIRST_PAUSE, 0, "", ""
        while not self._closed.is_set():
            left = until - time.monotonic()
            if left <= 0:
                raise self._absent(timeout, mishap or self._mishap)
            channel = self._call(min(left, ATTEMPT))
            if channel.alive and channel.wait_open(0) and self._asked:
                return channel
            details = _details(channel)
            # Once may be a restart of the peer; several times in a row are its answer.
            hung_up = hung_up + 1 if _hangs_up(details) else 0
            self._drop(channel)
            self._consider(channel, details, hung_up)
            mishap = _in_words(details)
            if mishap != NO_LISTENER or time.monotonic() - start > GRACE:
                self._tell(mishap)
            self._closed.wait(min(pause, max(0.0, until - time.monotonic())))
            pause = min(2 * pause, LONGEST_PAUSE)
        raise TransportError("the endpoint is closed")

    def _tell(self, mishap: str) -> None:
        if mishap in (self._mishap, ""):
            return
        self._mishap = mishap
        self._on_failed(mishap)

    def close(self) -> None:
        """End the live channel and every attempt."""
        self._closed.set()
        current = self._current
        # An open channel sends first what waits to go out; an attempt has nothing to send.
        if current is not None and current.wait_open(0):
            current.close()
        else:
            self._drop(current)

    def _call(self, timeout: float) -> GrpcChannel:
        """One attempt, on its own connection."""
        wire = grpc.secure_channel(
            self._address, self._trusting(timeout), self._limits.client_options(self._peer)
        )
        channel = GrpcChannel(self._peer, self._limits)
        metadata = [(CALLER, _this_process())]
        call = wire.stream_stream(METHOD)(channel.outgoing(), metadata=metadata)

        def hang_up() -> None:
            call.cancel()
            wire.close()

        channel.start(call, hang_up)
        self._current = channel
        # Closing may have come before there was a channel that it could drop.
        if self._closed.is_set():
            self._drop(channel)
        channel.wait_open(min(timeout, SLOW))
        if timeout > SLOW and not (channel.wait_open(0) or channel.ended):
            # gRPC has nothing to say of an attempt that hangs.
            self._tell(obstacle(self._address, SLOW) or MUTE)
            channel.wait_open(timeout - SLOW)
        return channel

    def _trusting(self, timeout: float) -> grpc.ChannelCredentials:
        """Credentials of a call: our authority, or where a key is pinned its certificate alone."""
        if self._pin is None:
            return self._credentials
        shown = self._pin.certificate_at(self._address, self._own.authority, min(timeout, SLOW))
        if shown is not None and (against := self._pin.objection(shown)):
            raise self._refused(
                f"{self._peer}: {against}",
                "it answers with another key than it signed with: ask whether that is its own",
            )
        # Without an answer the call fails by itself, and says why; if it does not, it is dropped.
        self._asked = shown is not None
        if shown is None:
            return self._credentials
        return client_credentials(replace(self._own, authority=shown.public_bytes(Encoding.PEM)))

    def _drop(self, channel: GrpcChannel | None) -> None:
        if channel is not None:
            channel.abort(ConnectionLost(f"the connection to {self._peer} was closed on this side"))
            channel.close()

    def _consider(self, channel: GrpcChannel, details: str, hung_up: int) -> None:
        """Raise the failures that waiting does not change."""
        code = channel.refusal.code() if channel.refusal is not None else None
        if code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED):
            raise self._refused(
                f"{self._peer} refused this side",
                "it expects a party of another name or key: its log has the reason",
            )
        if code is grpc.StatusCode.UNIMPLEMENTED:
            raise self._refused(
                f"the server does not answer as {self._peer}: it is not taciturn",
                "check the address",
            )
        if _OTHER_NAME in details:
            raise self._wrong_server()
        for sign, words in _REFUSALS:
            if sign in details:
                raise self._refused(
                    words, f"expected {self._peer}; check the address, the names and both ca files"
                )
        if hung_up >= HANGS_UP:
            raise self._refused(
                f"{self._peer} closes the connection after the handshake: it probably does not "
                "accept our certificate",
                "was it signed by the authority the peer trusts, and is it valid on its clock?",
            )

    def _refused(self, message: str, hint: str) -> PeerRefused:
        return PeerRefused(message, where=self._address, hint=hint)

    def _wrong_server(self) -> PeerRefused:
        """Error for a server of our authority that is not the peer."""
        names = names_shown(self._address, self._own.authority, SLOW)
        if self._own.name in names:
            return self._refused(
                f"the server is {self._own.name}, which is this side itself",
                f"the address to connect to must be that of {self._peer}; exactly one side listens",
            )
        shown = f": {', '.join(map(repr, names[:4]))}" if names else ""
        return self._refused(
            f"the server's certificate has another name{shown}",
            f"expected {self._peer}; check the address and the name of the peer",
        )

    def _absent(self, timeout: float, mishap: str) -> PeerAbsent:
        seen = f" ({mishap})" if mishap else ""
        return PeerAbsent(
            f"{self._peer} has not answered within {timeout:g} s{seen}",
            where=self._address,
            hint="start the other party, and check its address and the firewall between",
        )


@functools.cache
def _this_process() -> str:
    return SystemEntropy().token(8).hex()


def _details(channel: GrpcChannel) -> str:
    problem = channel.refusal
    return "" if problem is None else str(problem.details()).rpartition("last error: ")[2][:300]


def _in_words(details: str) -> str:
    """Description of a failed attempt for a person; empty where there is none.

    >>> _in_words("UNAVAILABLE: ipv4:127.0.0.1:7443: Handshake read failed (Socket closed)")
    'the server hung up during the handshake'
    >>> _in_words("")
    ''
    """
    return next((words for sign, words in _MISHAPS if sign in details), "")


def _hangs_up(details: str) -> bool:
    """Whether the server has ended the connection once the handshake was over for us."""
    ended = any(sign in details for sign in ("Socket closed", "Connection reset", "Broken pipe"))
    return ended and "Handshake" not in details
