"""Why an address does not answer, and who answers there, found out by calling it without gRPC.

gRPC tells a program little of a call that hangs, and of a certificate only that it does not fit.
Nothing is said to whoever is there but the first words of a TLS handshake, and that only where a
name is asked for.
"""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

NO_LISTENER = (
    "nothing listens there: the peer is not started, its address is another, or its file has "
    "connect too, and neither side listens"
)
NO_ANSWER = "no answer: no machine has this address, or a firewall drops the calls"
NO_ROUTE = "there is no route to this address"
UNKNOWN_NAME = "the name of the host is not known here"
MUTE = "it takes the call and says nothing: it is another program, or it hangs"
_WORDS = {
    errno.ECONNREFUSED: NO_LISTENER,
    errno.ETIMEDOUT: NO_ANSWER,
    errno.EHOSTUNREACH: NO_ROUTE,
    errno.ENETUNREACH: NO_ROUTE,
}


def split_address(address: str) -> tuple[str, int]:
    """Host and port of an address.

    >>> split_address("[::1]:9443")
    ('::1', 9443)
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def obstacle(address: str, timeout: float) -> str:
    """Why no connection to an address comes about within ``timeout`` seconds; empty where one does.

    >>> obstacle("127.0.0.1:1", 5).partition(":")[0]
    'nothing listens there'
    """
    try:
        with socket.create_connection(split_address(address), timeout=timeout):
            return ""
    except socket.gaierror:
        return UNKNOWN_NAME
    except TimeoutError:
        return NO_ANSWER
    except OSError as problem:
        return _WORDS.get(problem.errno or 0, str(problem.strerror or problem))


def names_shown(address: str, authority: bytes, timeout: float) -> tuple[str, ...]:
    """The names in the certificate of a server that our authority (PEM) vouches for, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The name is what is asked for; nothing is sent to whoever has it.
    context.check_hostname = False
    context.load_verify_locations(cadata=authority.decode("ascii"))
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection(split_address(address), timeout=timeout) as plain,
            context.wrap_socket(plain) as secured,
        ):
            shown = secured.getpeercert() or {}
    except (OSError, ValueError):
        return ()
    names: Any = shown.get("subjectAltName", ())
    return tuple(name[:253].lower() for kind, name in names if kind == "DNS")
