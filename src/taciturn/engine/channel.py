"""What a party needs from whatever carries its frames.

A channel is one live link to the peer; an endpoint makes channels, one after the other, since links
break. Neither knows which role the party has, nor what is in a frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias


class Channel(Protocol):
    """One live link: whole frames, in order, both ways."""

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Hands a frame over; waits while too many bytes are under way.

        Args:
            frame: Its bytes.
            wait: False for a few bytes that may go at once, behind whatever is under way.

        Raises:
            ConnectionLost: The link is broken. Whether the frame arrived is not known.
            LocalProtocolError: The frame is larger than the link carries.
        """

    def receive(self, timeout: float) -> bytes:
        """The next frame.

        What had arrived whole before the link broke is still handed out.

        Raises:
            PeerSilent: Nothing came within so many seconds.
            ConnectionLost: The link is broken, or the peer has closed it.
            MalformedFrame: The peer broke the rules of the wire. The link is ended.
        """

    def close(self) -> None:
        """Ends the link once what was sent is out, or after a bounded time. May be repeated."""


class Endpoint(Protocol):
    """Serves or dials: makes channels to one named peer."""

    def connect(self, timeout: float) -> Channel:
        """A channel to the peer, who has shown the right certificate.

        Raises:
            PeerAbsent: Nobody was there within so many seconds.
            PeerRefused: One side does not accept the other. Trying again does not help.
            TransportError: The address cannot be used.
        """

    def close(self) -> None:
        """Ends everything that was opened. May be repeated."""


Endpoints: TypeAlias = Endpoint | Mapping[str, Endpoint]
"""The way to the only peer, or one for each of several, by name."""
