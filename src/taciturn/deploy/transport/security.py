"""Credentials for gRPC: mutual TLS, version 1.3 only, and the pinned name.

How older versions are kept out of the handshake is told where it is done, in this room's
``__init__``; here the version of each stream is looked at once more. There is no way to ask for a
connection without TLS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import grpc

from taciturn.deploy.transport.tls import Credentials

VERSION = b"TLSv1.3"


def server_credentials(own: Credentials) -> grpc.ServerCredentials:
    """What a server shows, and that callers must show a certificate of the authority."""
    return grpc.ssl_server_credentials(
        [(own.key, own.certificate)], root_certificates=own.authority, require_client_auth=True
    )


def client_credentials(own: Credentials) -> grpc.ChannelCredentials:
    """What a caller shows, and which authority it trusts."""
    return grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)


def objection(shown: Mapping[str, Sequence[bytes]], peer: str, own: str = "") -> str:
    """What speaks against a caller whose certificate the authority has signed; nothing, if empty.

    Args:
        shown: What TLS says of the caller.
        peer: The name that its certificate must have.
        own: This side's own name.

    >>> objection({"peer_dns": [b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, "bob")
    ''
    >>> objection({"peer_dns": [b"eve"], "ssl_tls_version": [b"TLSv1.3"]}, "bob")
    "its certificate names 'eve', not 'bob'"
    """
    if list(shown.get("ssl_tls_version", ())) != [VERSION]:
        return "it does not use TLS 1.3"
    names = [name.decode("ascii", "replace")[:253].lower() for name in shown.get("peer_dns", ())]
    if peer not in names:
        shown_names = ", ".join(repr(name) for name in names[:4]) or "nobody"
        itself = ", which is this side's own" if own in names else ""
        return f"its certificate names {shown_names}{itself}, not {peer!r}"
    return ""
