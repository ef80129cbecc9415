"""One stream as a channel: the same for the side that serves and the side that dials.

gRPC takes what goes out from an iterator, when the peer's window has room for it; a thread reads
what comes in. Between them and the party are two queues, bounded in bytes: a party that does not
read stops the thread, that fills the window, and that stops the peer. Bounding the number of
entries would not do: entries are from nothing to a whole frame.

How older versions are kept out of the handshake is described in this package's
``__init__``; here the version of each stream is checked once more. There is no way to ask for a
connection without TLS.

**A pinned key, for the side that calls.** gRPC for Python shows a client nothing of the server's
certificate. So the certificate is asked for first, over a connection of its own; then the call
trusts that one certificate and no authority. A TLS handshake succeeds only with the owner of its
private key: it does not matter if somebody else answered in between.

**Guarantee.** A call that trusts what ``KeyPin.certificate_at`` returned, and
``KeyPin.objection`` has nothing against, reaches the owner of the pinned key, or nobody.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography import x509

from taciturn.errors import (
    ConnectionLost,
    LocalProtocolError,
    MalformedFrame,
    PeerSilent,
    TaciturnError,
)
from taciturn.transport.address import tls_connection
from taciturn.transport.limits import END, READY, Assembler, Limits, split
from taciturn.transport.tls import (
    Credentials,
    certificate_fingerprint,
    pin_mismatch,
)

VERSION = b"TLSv1.3"


def server_credentials(credentials: Credentials) -> grpc.ServerCredentials:
    """Credentials of a server; callers must show a certificate of the authority."""
    return grpc.ssl_server_credentials(
        [(credentials.key, credentials.certificate)],
        root_certificates=credentials.authority,
        require_client_auth=True,
    )


def client_credentials(credentials: Credentials) -> grpc.ChannelCredentials:
    """Credentials of a caller, with the authority that it trusts."""
    return grpc.ssl_channel_credentials(
        credentials.authority, credentials.key, credentials.certificate
    )


def objection(
    shown: Mapping[str, Sequence[bytes]], peers: Collection[str], own_name: str = ""
) -> str:
    """Objection to a caller whose certificate the authority has signed; empty for none.

    ``shown`` is what TLS says of the caller; its certificate must have exactly one of ``peers``.
    """
    if list(shown.get("ssl_tls_version", ())) != [VERSION]:
        return "it does not use TLS 1.3"
    names, expected = _names(shown), " or ".join(map(repr, peers))
    listed = [name for name in peers if name in names]
    if not listed:
        shown_names = ", ".join(repr(name) for name in names[:4]) or "nobody"
        itself = ", which is this side's own" if own_name in names else ""
        return f"its certificate names {shown_names}{itself}, not {expected}"
    if len(listed) > 1:
        # It would speak for parties that must not know of each other.
        return f"its certificate names {' and '.join(map(repr, listed))}, who are two parties"
    return ""


def caller_among(peers: Iterable[str], shown: Mapping[str, Sequence[bytes]]) -> str:
    """The peer that a caller without objection is."""
    names = _names(shown)
    return next(name for name in peers if name in names)


def pin_objection(shown: Mapping[str, Sequence[bytes]], pin: str | None) -> str:
    """Objection to the key of a caller, by the agreed fingerprint; empty for none."""
    if pin is None:
        return ""
    try:
        certificate = x509.load_pem_x509_certificate(shown["x509_pem_cert"][0])
        actual = certificate_fingerprint(certificate)
    except Exception:  # what cannot be read has no fingerprint, whyever that is
        actual = "none"
    return "" if actual == pin else pin_mismatch(actual, pin)


def _names(shown: Mapping[str, Sequence[bytes]]) -> list[str]:
    return [name.decode("ascii", "replace")[:253].lower() for name in shown.get("peer_dns", ())]


@dataclass(frozen=True, slots=True)
class KeyPin:
    """Key that a server must have, and our files to ask for its certificate."""

    fingerprint: str
    certificate: Path
    key: Path

    def certificate_at(
        self, address: str, authority: bytes, timeout: float
    ) -> x509.Certificate | None:
        """Certificate of the server at an address, which our authority (PEM) vouches for.

        None where nobody answers within ``timeout`` seconds, or the authority does not vouch for
        the server.
        """
        own_files = self.certificate, self.key
        try:
            with tls_connection(address, authority, timeout, own_files) as secured:
                octets = secured.getpeercert(binary_form=True)
            return None if octets is None else x509.load_der_x509_certificate(octets)
        except (OSError, ValueError):
            return None

    def objection(self, shown: x509.Certificate) -> str:
        """Objection to the key of a certificate; empty for none."""
        actual = certificate_fingerprint(shown)
        return "" if actual == self.fingerprint else pin_mismatch(actual, self.fingerprint)


# What an entry costs beside its bytes, so that empty ones are not free.
OVERHEAD = 256


class StreamEnded(Exception):
    """The queue takes or gives nothing more."""


class ByteQueue:
    """FIFO queue bounded in bytes; putting waits for room, taking waits for an entry.

    ``limit`` is in bytes; a single entry may exceed it, if it is alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: deque[bytes] = deque()
        self._size = 0
        self._open = True
        self._changed = threading.Condition()

    def put(self, entry: bytes, *, force: bool = False) -> None:
        """Add an entry once there is room, or at once if forced; ``StreamEnded`` after the end."""
        cost = len(entry) + OVERHEAD
        with self._changed:
            while self._open and self._size and self._size + cost > self._limit and not force:
                self._changed.wait()
            if not self._open:
                raise StreamEnded
            self._entries.append(entry)
            self._size += cost
            self._changed.notify_all()

    def get(self, timeout: float | None = None) -> bytes | None:
        """Take the oldest entry, None after the timeout; ``StreamEnded`` where none will come."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._entries:
                if not self._open:
                    raise StreamEnded
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._changed.wait(None if left is None else min(left, threading.TIMEOUT_MAX))
            entry = self._entries.popleft()
            self._size -= len(entry) + OVERHEAD
            self._changed.notify_all()
            return entry

    def finish(self, *, drop: bool = False) -> None:
        """Take nothing more; what waits may still be taken, unless it is dropped."""
        with self._changed:
            self._open = False
            if drop:
                self._entries.clear()
                self._size = 0
            self._changed.notify_all()


METHOD = "/taciturn.Link/Frames1"
# The key of metadata by which a calling process names itself, and the reply to one that must wait.
CALLER, BUSY = "taciturn-caller", "busy"


class GrpcChannel:
    """A live stream to the peer; see ``taciturn.transport.channel.Channel``."""

    def __init__(self, peer: str, limits: Limits) -> None:
        self._peer = peer
        self._limits = limits
        self._outbox = ByteQueue(limits.in_flight)
        self._inbox = ByteQueue(limits.in_flight)
        self._assembler = Assembler(limits.max_frame)
        self._failure: TaciturnError | None = None
        self._hang_up: Callable[[], None] = lambda: None
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._closing = False
        self._opened = threading.Event()
        self._ended = threading.Event()
        self.refusal: grpc.Call | None = None

    def start(self, incoming: Iterable[bytes], hang_up: Callable[[], None]) -> None:
        """Start the reader; ``hang_up`` ends the stream at once, and may be repeated."""
        self._hang_up = hang_up
        self._reader = threading.Thread(
            target=self._read, args=(incoming,), name="taciturn-reader", daemon=True
        )
        self._reader.start()

    def outgoing(self) -> Iterator[bytes]:
        """The stream's messages to the peer, for gRPC to take when there is room for them."""
        yield READY
        while True:
            try:
                message = self._outbox.get()
            except StreamEnded:
                return
            if message is not None:
                yield message

    @property
    def alive(self) -> bool:
        """Whether the link is up, as far as this side knows."""
        return self._failure is None and not self._closing

    def wait_open(self, timeout: float) -> bool:
        """Wait until the peer has answered or the stream has ended; whether it is open."""
        self._opened.wait(timeout)
        return self._assembler.ready

    @property
    def ended(self) -> bool:
        """Whether the stream is over."""
        return self._ended.is_set()

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Send a frame; waits while too many bytes are in flight, unless ``wait`` is false."""
        if len(frame) > self._limits.max_frame:
            raise LocalProtocolError(
                f"a frame of {len(frame)} bytes exceeds {self._limits.max_frame}",
                hint="use smaller batches",
            )
        try:
            # Two senders' chunks must not mix.
            with self._sending:
                for message in split(frame):
                    self._outbox.put(message, force=not wait)
        except StreamEnded:
            raise self._broken() from None

    def receive(self, timeout: float) -> bytes:
        """The next frame."""
        try:
            frame = self._inbox.get(timeout)
        except StreamEnded:
            raise self._broken() from None
        if frame is None:
            raise PeerSilent(
                f"{self._peer} has sent nothing for {timeout:g} s",
                hint="look whether it still runs, or allow more time",
            )
        return frame

    def close(self) -> None:
        """End the link once what was sent is out, or after a bounded time."""
        with self._lock:
            first, self._closing = not self._closing, True
        if first:
            self._finish_sending()
            # From here on what comes in is dropped, so that the peer is not held up either.
            self._inbox.finish(drop=True)
            self._ended.wait(self._limits.drain)
        self._hang_up()
        if self._reader is not None and self._reader is not threading.current_thread():
            self._reader.join(self._limits.drain)

    def abort(self, failure: TaciturnError) -> None:
        """End the link at once: what waits to go out is dropped, what has come in is kept."""
        self._fail(failure)
        self._hang_up()

    def _finish_sending(self) -> None:
        # A frame that another thread is still sending is cut off: that is no orderly end.
        if self._sending.acquire(blocking=False):
            try:
                self._outbox.put(END, force=True)
            except StreamEnded:
                return
            finally:
                self._sending.release()
        self._outbox.finish()

    def _fail(self, failure: TaciturnError) -> None:
        with self._lock:
            self._failure = self._failure or failure
        self._outbox.finish(drop=True)
        self._inbox.finish()

    def _broken(self) -> TaciturnError:
        if self._failure is None:
            return ConnectionLost("the connection is closed on this side")
        # A fresh one each time: an exception that is raised twice collects two tracebacks.
        return copy.copy(self._failure)

    def _read(self, incoming: Iterable[bytes]) -> None:
        """Main loop of the reader: read until the stream is over, and record why it is."""
        try:
            for message in incoming:
                self._take(message)
            self._fail(ConnectionLost(f"the connection to {self._peer} broke"))
        except MalformedFrame as problem:
            self.abort(problem)
        except Exception as problem:  # gRPC's two sides end their iterators each in its own way
            self._note_break(problem)
        finally:
            self._ended.set()
            self._opened.set()

    def _take(self, message: bytes) -> None:
        if self._closing:
            # Nobody will ask for it; the end still counts.
            self._note_end(message == END)
            return
        frame = self._assembler.feed(message)
        if frame is None:
            self._note_end(self._assembler.ended)
            self._opened.set()
            return
        try:
            self._inbox.put(frame)
        except StreamEnded:  # this side closes, or has dropped the link
            return

    def _note_end(self, ended: bool) -> None:
        """The peer reads no more, so that there is nothing left to send."""
        if ended:
            self._fail(ConnectionLost(f"{self._peer} has closed the connection"))

    def _note_break(self, problem: Exception) -> None:
        """Record a broken stream; only the side that dials learns the reason."""
        details = ""
        if isinstance(problem, grpc.Call):
            self.refusal = problem
            details = str(problem.details())[:200]
        if "larger than max" in details:
            self._fail(MalformedFrame("a chunk is larger than the wire allows"))
        else:
            self._fail(ConnectionLost(f"the connection to {self._peer} broke", where=details))
