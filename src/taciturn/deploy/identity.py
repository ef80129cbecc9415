"""What one of several Alices signs with: the key of her certificate."""

from __future__ import annotations

from taciturn.crypto.signatures import KeyIdentity
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.transport.tls import load_credentials


def identity_of(config: PartyConfig) -> KeyIdentity | None:
    """This side's, where it is one of several Alices; None elsewhere.

    Raises:
        CertificateError: Its certificate, key or authority is not fit for use.
    """
    if config.role == "bob" or not config.parties:
        return None
    link = config.link
    credentials = load_credentials(
        config.path(link.certificate), config.path(link.key), config.path(link.ca)
    )
    return KeyIdentity.of_pem(credentials.name, credentials.key)
