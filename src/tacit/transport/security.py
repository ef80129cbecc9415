"""gRPC's credentials: mutual TLS, version 1.3 only.

gRPC for Python has no setting for the version. Its list of cipher suites, however, governs TLS 1.2
and older alone: those of TLS 1.3 are always on. The list here has one suite, which authenticates
by a pre-shared key. None is ever configured, so that no handshake of an older version can be
completed, by anybody; TLS 1.3 is untouched. gRPC reads the list once, at its first use of TLS in a
process. Should something else in the process have used it before, the server still looks at the
version of every stream (``serve.py``).

There is no way to ask for a connection without TLS.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import grpc

from tacit.transport.tls import Credentials

OLD_SUITES = "GRPC_SSL_CIPHER_SUITES"
NEVER_COMPLETED = "ECDHE-PSK-CHACHA20-POLY1305"
VERSION = b"TLSv1.3"


def server_credentials(own: Credentials) -> grpc.ServerCredentials:
    """What a server shows, and that callers must show a certificate of the authority."""
    os.environ[OLD_SUITES] = NEVER_COMPLETED
    return grpc.ssl_server_credentials(
        [(own.key, own.certificate)], root_certificates=own.authority, require_client_auth=True
    )


def client_credentials(own: Credentials) -> grpc.ChannelCredentials:
    """What a caller shows, and which authority it trusts."""
    os.environ[OLD_SUITES] = NEVER_COMPLETED
    return grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)


def objection(shown: Mapping[str, Sequence[bytes]], peer: str) -> str:
    """What speaks against a caller whose certificate the authority has signed; nothing, if empty.

    >>> objection({"peer_dns": [b"bob"], "ssl_tls_version": [b"TLSv1.3"]}, "bob")
    ''
    >>> objection({"peer_dns": [b"eve"], "ssl_tls_version": [b"TLSv1.3"]}, "bob")
    "its certificate names 'eve', not 'bob'"
    """
    if list(shown.get("ssl_tls_version", ())) != [VERSION]:
        return "it does not use TLS 1.3"
    names = [name.decode("ascii", "replace")[:64] for name in shown.get("peer_dns", ())]
    if peer not in names:
        found = ", ".join(repr(name) for name in names[:4]) or "nobody"
        return f"its certificate names {found}, not {peer!r}"
    return ""
