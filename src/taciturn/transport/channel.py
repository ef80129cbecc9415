"""Channels and endpoints: the interfaces of a connection to a peer.

A channel is one live link to the peer; an endpoint makes channels, one after the other, since links
break. Neither knows which role the party has, nor what is in a frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias


class Channel(Protocol):
    """One live link: whole frames, in order, both ways."""

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Sends a frame; blocks while too many bytes are in flight.

        ``wait=False`` queues a few bytes behind them without blocking. After ``ConnectionLost`` it
        is unknown whether the frame arrived; ``LocalProtocolError`` means that it is too large for
        the link.
        """

    def receive(self, timeout: float) -> bytes:
        """The next frame; those that arrived whole before the link broke are still returned.

        Raises ``PeerSilent`` after ``timeout`` seconds without a frame, ``ConnectionLost`` where
        the link is broken or closed, and ``MalformedFrame``, which ends the link, where the peer
        violates the format.
        """

    def close(self) -> None:
        """Ends the link once what was sent is out, or after a bounded time. May be repeated."""


class Endpoint(Protocol):
    """Serves or dials: makes channels to one named peer."""

    def connect(self, timeout: float) -> Channel:
        """A channel to the peer, whose certificate was verified.

        Raises ``PeerAbsent`` after ``timeout`` seconds, ``PeerRefused`` where one side rejects the
        other (a retry does not help), and ``TransportError`` where the address cannot be used.
        """

    def close(self) -> None:
        """Ends everything that was opened. May be repeated."""


Endpoints: TypeAlias = Endpoint | Mapping[str, Endpoint]
"""The way to the only peer, or one for each of several, by name."""
