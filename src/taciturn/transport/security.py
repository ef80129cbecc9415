"""Credentials for gRPC: mutual TLS, version 1.3 only, the pinned name, and perhaps a pinned key.

How older versions are kept out of the handshake is told where it is done, in this room's
``__init__``; here the version of each stream is looked at once more. There is no way to ask for a
connection without TLS.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import grpc
from cryptography import x509

from taciturn.transport.tls import (
    Credentials,
    certificate_fingerprint,
    not_the_agreed_one,
)

VERSION = b"TLSv1.3"


def server_credentials(own: Credentials) -> grpc.ServerCredentials:
    """What a server shows, and that callers must show a certificate of the authority."""
    return grpc.ssl_server_credentials(
        [(own.key, own.certificate)], root_certificates=own.authority, require_client_auth=True
    )


def client_credentials(own: Credentials) -> grpc.ChannelCredentials:
    """What a caller shows, and which authority it trusts."""
    return grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)


def objection(shown: Mapping[str, Sequence[bytes]], peers: Collection[str], own: str = "") -> str:
    """What speaks against a caller whose certificate the authority has signed; nothing, if empty.

    ``shown`` is what TLS says of the caller; its certificate must have exactly one of ``peers``.

    >>> objection({"peer_dns": [b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, ["bob"])
    ''
    >>> objection({"peer_dns": [b"eve"], "ssl_tls_version": [b"TLSv1.3"]}, ["bob", "carol"])
    "its certificate names 'eve', not 'bob' or 'carol'"
    """
    if list(shown.get("ssl_tls_version", ())) != [VERSION]:
        return "it does not use TLS 1.3"
    names, expected = _names(shown), " or ".join(map(repr, peers))
    listed = [name for name in peers if name in names]
    if not listed:
        shown_names = ", ".join(repr(name) for name in names[:4]) or "nobody"
        itself = ", which is this side's own" if own in names else ""
        return f"its certificate names {shown_names}{itself}, not {expected}"
    if len(listed) > 1:
        # It would speak for parties that must not know of each other.
        return f"its certificate names {' and '.join(map(repr, listed))}, who are two parties"
    return ""


def caller_among(peers: Iterable[str], shown: Mapping[str, Sequence[bytes]]) -> str:
    """Which of the peers a caller is, to whom there is no objection."""
    names = _names(shown)
    return next(name for name in peers if name in names)


def pin_objection(shown: Mapping[str, Sequence[bytes]], pin: str | None) -> str:
    """What speaks against the key of a caller, by the agreed fingerprint; nothing, if empty."""
    if pin is None:
        return ""
    try:
        certificate = x509.load_pem_x509_certificate(shown["x509_pem_cert"][0])
        actual = certificate_fingerprint(certificate)
    except Exception:  # what cannot be read has no fingerprint, whyever that is
        actual = "none"
    return "" if actual == pin else not_the_agreed_one(actual, pin)


def _names(shown: Mapping[str, Sequence[bytes]]) -> list[str]:
    return [name.decode("ascii", "replace")[:253].lower() for name in shown.get("peer_dns", ())]
