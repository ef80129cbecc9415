"""Credentials for gRPC: mutual TLS, version 1.3 only, the pinned name, and perhaps a pinned key.

How older versions are kept out of the handshake is told where it is done, in this package's
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

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from cryptography import x509

from taciturn.transport.address import tls_connection
from taciturn.transport.tls import (
    Credentials,
    certificate_fingerprint,
    pin_mismatch,
)

VERSION = b"TLSv1.3"


def server_credentials(own: Credentials) -> grpc.ServerCredentials:
    """Credentials of a server; callers must show a certificate of the authority."""
    return grpc.ssl_server_credentials(
        [(own.key, own.certificate)], root_certificates=own.authority, require_client_auth=True
    )


def client_credentials(own: Credentials) -> grpc.ChannelCredentials:
    """Credentials of a caller, with the authority that it trusts."""
    return grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)


def objection(shown: Mapping[str, Sequence[bytes]], peers: Collection[str], own: str = "") -> str:
    """Objection to a caller whose certificate the authority has signed; empty for none.

    ``shown`` is what TLS says of the caller; its certificate must have exactly one of ``peers``.
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
        own = self.certificate, self.key
        try:
            with tls_connection(address, authority, timeout, own) as secured:
                octets = secured.getpeercert(binary_form=True)
            return None if octets is None else x509.load_der_x509_certificate(octets)
        except (OSError, ValueError):
            return None

    def objection(self, shown: x509.Certificate) -> str:
        """Objection to the key of a certificate; empty for none."""
        actual = certificate_fingerprint(shown)
        return "" if actual == self.fingerprint else pin_mismatch(actual, self.fingerprint)
