"""A party's way to its peer: the port it opens, or the address it dials."""

from __future__ import annotations

import errno
import socket

from taciturn.errors import ConfigError
from taciturn.party.config import PartyConfig
from taciturn.results.doctor import Finding
from taciturn.transport.address import check_address
from taciturn.transport.probe import obstacle, split_address

_AREA = "link"
_PATIENCE = 3.0


def look_at_link(config: PartyConfig) -> Finding:
    """Whether the port is free, or the peer can be reached; nothing is said to it."""
    listen, address = config.link.listen, config.link.listen or str(config.link.connect)
    where = f"{config.where}, [link] {'connect' if listen is None else 'listen'}"
    try:
        check_address(address, where=where, any_port=listen is not None)
    except ConfigError as problem:
        return Finding.of_error(_AREA, problem)
    host, port = split_address(address)
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return Finding.problem(
            _AREA,
            f"the name {host} does not resolve to an address",
            "correct it in the file, or add it to the name service or /etc/hosts",
        )
    return _port(address, places[0]) if listen else _peer(address)


def _port(address: str, place: tuple[socket.AddressFamily, object, int, str, object]) -> Finding:
    try:
        with socket.socket(place[0], socket.SOCK_STREAM) as server:
            # As the real server does: a port that is only cooling down is free.
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(place[4])  # type: ignore[arg-type]
            server.listen(1)
    except OSError as problem:
        taken = problem.errno == errno.EADDRINUSE
        return Finding.problem(
            _AREA,
            f"{address} cannot be opened: "
            + ("another program has the port" if taken else str(problem.strerror or problem)),
            "end that program, or name another port on both sides"
            if taken
            else "name an address of this machine, such as 0.0.0.0, and a port from 1024 on",
        )
    return Finding.ok(_AREA, f"{address} is free; only the peer can test whether it reaches it")


def _peer(address: str) -> Finding:
    reason = obstacle(address, _PATIENCE)
    if not reason:
        return Finding.ok(_AREA, f"{address} can be reached; its identity was not checked")
    return Finding.warning(
        _AREA,
        f"{address} does not answer: {reason}",
        "start the peer and try again; otherwise check both firewalls",
    )
