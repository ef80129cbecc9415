"""The listening socket of a service, which limits connections that have shown no token.

Anyone who reaches the port can open connections and leave them idle. So connections are counted
from ``accept`` on, before a TLS handshake, and one that has authenticated no request yet is closed
where there are too many: of its own address, or of all. The oldest goes first: a caller needs a
moment to authenticate, and idle connections do not.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

# Connections that have not authenticated: from one address, and from all.
MOST_OF_ADDRESS, MOST_UNAUTHENTICATED = 256, 512
# Connections that are accepted in a row. asyncio accepts until nobody waits, and reads no request
# meanwhile: a flood would make a caller's connection the oldest before its token is read.
ACCEPTED_AT_ONCE = 16
# Of an IPv6 address the network: a host has 2^64 addresses of its own.
_IPV6_NETWORK_BITS = 64
Peer: TypeAlias = tuple[Any, ...]


class LimitedListener(socket.socket):
    """A listening socket that closes the oldest unauthenticated connections beyond its limits.

    ``most_open`` connections of any kind are open before an unauthenticated one is closed for a new
    one. A closed connection is shut down, and its owner sees the end of the stream.
    """

    def __init__(self, family: int, *, most_open: int = MOST_UNAUTHENTICATED) -> None:
        # By its protocol asyncio knows that small writes must not wait.
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._most_open = most_open
        self._open = self._in_a_row = 0
        # In the order of their arrival, by host and port.
        self._unauthenticated: dict[Peer, _Connection] = {}

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; close the oldest unauthenticated one beyond the limits."""
        self._in_a_row += 1
        if self._in_a_row > ACCEPTED_AT_ONCE:
            self._in_a_row = 0
            # The event loop comes back after its other work, as others still wait.
            raise BlockingIOError
        plain, address = super().accept()
        connection = _Connection(plain.detach(), peer := address[:2], self._closed_connection)
        connection.settimeout(plain.gettimeout())
        self._open += 1
        self._unauthenticated[peer] = connection
        self._close_oldest(network(peer[0]))
        return connection, address

    def authenticated(self, peer: Peer) -> None:
        """Exempt a connection, by the host and port of its peer: it has shown a token."""
        self._unauthenticated.pop(peer[:2], None)

    def _closed_connection(self, peer: Peer, connection: _Connection) -> None:
        self._open -= 1
        if self._unauthenticated.get(peer) is connection:
            del self._unauthenticated[peer]

    def _close_oldest(self, of_network: str) -> None:
        waiting = self._unauthenticated
        same = [peer for peer in waiting if network(peer[0]) == of_network]
        if len(same) > MOST_OF_ADDRESS:
            oldest = same[0]
        elif len(waiting) > MOST_UNAUTHENTICATED or self._open > self._most_open:
            oldest = next(iter(waiting))
        else:
            return
        connection = waiting.pop(oldest)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class _Connection(socket.socket):
    """An accepted connection that reports its end once."""

    def __init__(
        self, descriptor: int, peer: Peer, ended: Callable[[Peer, _Connection], None]
    ) -> None:
        super().__init__(fileno=descriptor)
        self._peer, self._ended = peer, ended

    def close(self) -> None:
        """Close the connection."""
        if self.fileno() != -1:
            self._ended(self._peer, self)
        super().close()


def network(host: str) -> str:
    """What a limit for an address counts: an IPv4 address, or the network of an IPv6 address.

    >>> network("192.0.2.7"), network("2001:db8::7"), network("2001:db8::8")
    ('192.0.2.7', '2001:db8::', '2001:db8::')
    """
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 4:
        return host
    bits = 128 - _IPV6_NETWORK_BITS
    return str(ipaddress.ip_address(int(address) >> bits << bits))
