"""The key that a server must have: for the side that calls.

gRPC for Python shows a client nothing of the server's certificate. So the certificate is asked for
first, over a connection of its own; then the call trusts that one certificate and no authority. A
TLS handshake succeeds only with whoever has its private key: it does not matter if somebody else
answered in between.

**Guarantee.** A call that trusts what ``certificate_at`` returned, and ``objection`` has nothing
against, reaches the owner of the pinned key, or nobody.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509

from taciturn.transport.probe import split_address
from taciturn.transport.tls import certificate_fingerprint, not_the_agreed_one


@dataclass(frozen=True, slots=True)
class KeyPin:
    """The key that a server must have, and the files that we show to ask for its certificate."""

    fingerprint: str
    certificate: Path
    key: Path

    def certificate_at(
        self, address: str, authority: bytes, timeout: float
    ) -> x509.Certificate | None:
        """The certificate of the server at an address, which our authority (PEM) vouches for.

        None where nobody answers within ``timeout`` seconds, or the authority does not vouch for
        the server.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # The name is looked at in the call itself.
        context.check_hostname = False
        context.load_verify_locations(cadata=authority.decode("ascii"))
        context.set_alpn_protocols(["h2"])
        try:
            context.load_cert_chain(self.certificate, self.key)
            with (
                socket.create_connection(split_address(address), timeout=timeout) as plain,
                context.wrap_socket(plain) as secured,
            ):
                octets = secured.getpeercert(binary_form=True)
            return None if octets is None else x509.load_der_x509_certificate(octets)
        except (OSError, ValueError):
            return None

    def objection(self, shown: x509.Certificate) -> str:
        """What speaks against the key of a certificate; nothing, if empty."""
        actual = certificate_fingerprint(shown)
        return "" if actual == self.fingerprint else not_the_agreed_one(actual, self.fingerprint)
