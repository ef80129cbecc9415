"""A party's certificate and key, and the identity that signs with them."""

from __future__ import annotations

from taciturn.crypto.signatures import KeyIdentity
from taciturn.party.config import PartyConfig
from taciturn.transport.tls import Credentials, load_credentials


def credentials_of(config: PartyConfig) -> Credentials:
    """This side's certificate, key and authority."""
    link = config.link
    return load_credentials(
        config.path(link.certificate), config.path(link.key), config.path(link.ca)
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
