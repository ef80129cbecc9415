"""A party's certificate and key, and the identity that signs with them."""

from __future__ import annotations

from taciturn.crypto.signatures import KeyIdentity
from taciturn.errors import CertificateError
from taciturn.party.config import PartyConfig
from taciturn.transport.tls import Credentials, load_credentials


def credentials_of(config: PartyConfig) -> Credentials:
    """This side's certificate, key and authority."""
    link = config.link
    return load_credentials(
        config.path(link.certificate), config.path(link.key), config.path(link.ca)
    )


def require_own_name(config: PartyConfig, credentials: Credentials) -> None:
    """Raise where this side's certificate is another's, by the names that its file has."""
    if config.parties:
        config.side.require_certificate(config, credentials)
    if credentials.name in config.peers:
        raise CertificateError(
            f"this side's certificate names {credentials.name}, whom [link] peer names as the "
            "other side",
            where=str(config.path(config.link.certificate)),
            hint="give each side its own certificate, and the other's name as peer",
        )


def signer(credentials: Credentials) -> KeyIdentity:
    """Identity that signs with these credentials."""
    return KeyIdentity.from_pem(credentials.name, credentials.key)


def identity_of(config: PartyConfig) -> KeyIdentity | None:
    """Identity of one of several Alices, who sign their roster; None elsewhere."""
    # With several Alices Bob's file names no single peer.
    if config.link.peer is None or not config.parties:
        return None
    return signer(credentials_of(config))
