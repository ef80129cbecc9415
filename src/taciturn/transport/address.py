"""Addresses ``host:port``, names of parties, and why an address does not answer.

gRPC tells a program little of a call that hangs, and of a certificate only that it does not fit. So
an address is also called without gRPC. The server learns nothing but the start of a TLS handshake,
and that only where its certificate is asked for.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from taciturn.errors import ConfigError
from taciturn.settings.schema import is_party_name

_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?P<port>[0-9]{1,5})")


def check_address(address: str, *, where: str, any_port: bool = False) -> str:
    """The address, if it is ``host:port``; an IPv6 address is in brackets.

    With ``any_port`` port 0 is allowed, for which the system picks one.

    >>> check_address("bob.example:7443", where="listen")
    'bob.example:7443'
    """
    parsed = _ADDRESS.fullmatch(address)
    if parsed is None or not (0 if any_port else 1) <= int(parsed["port"]) <= 65535:
        raise ConfigError(
            f"{address!r} is not an address",
            where=where,
            hint="use host:port, such as bob.example:7443, 0.0.0.0:7443 or [::]:7443",
        )
    return address


def check_name(name: str, setting: str = "name") -> str:
    """The name, if it can be a party's: a DNS name in lower case."""
    if not is_party_name(name):
        raise ConfigError(
            f"{name!r} cannot be a party's name",
            setting=setting,
            hint="use lower-case letters, digits, hyphens and dots, as in alice or alice.example",
        )
    return name


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
    """Reason why connecting within ``timeout`` seconds fails; empty if it succeeds.

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


@contextmanager
def tls_connection(
    address: str,
    authority: bytes,
    timeout: float,
    certificate_files: tuple[Path, Path] | None = None,
) -> Iterator[ssl.SSLSocket]:
    """TLS connection to a server that our authority (PEM) vouches for, whatever its name.

    ``certificate_files`` are our certificate and key. Raises ``OSError`` or ``ValueError``.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The name is for the caller to look at: it is what is asked for, or the call itself checks it.
    context.check_hostname = False
    context.load_verify_locations(cadata=authority.decode("ascii"))
    context.set_alpn_protocols(["h2"])
    if certificate_files is not None:
        context.load_cert_chain(*certificate_files)
    with (
        socket.create_connection(split_address(address), timeout=timeout) as plain,
        context.wrap_socket(plain) as secured,
    ):
        yield secured


def names_shown(address: str, authority: bytes, timeout: float) -> tuple[str, ...]:
    """DNS names in the certificate of a server that our authority (PEM) vouches for, or none."""
    try:
        with tls_connection(address, authority, timeout) as secured:
            shown = secured.getpeercert() or {}
    except (OSError, ValueError):
        return ()
    names: Any = shown.get("subjectAltName", ())
    return tuple(name[:253].lower() for kind, name in names if kind == "DNS")
