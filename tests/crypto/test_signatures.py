"""Signatures by the keys that certificates have, and keys in common."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from taciturn.crypto.signatures import ExchangeKey, KeyIdentity, fingerprint, verify
from taciturn.errors import CryptoError
from taciturn.rng import KeyedEntropy
from tests.expected import refused

COINS = KeyedEntropy.from_seed(3)


def of_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> KeyIdentity:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyIdentity.from_pem("alice-1", pem)


IDENTITIES = {
    "P-256": of_pem(ec.generate_private_key(ec.SECP256R1())),
    "P-384": of_pem(ec.generate_private_key(ec.SECP384R1())),
    "RSA": of_pem(rsa.generate_private_key(65537, 2048)),
    "simulated": KeyIdentity.simulated("alice-1", COINS),
}


@pytest.mark.parametrize("identity", IDENTITIES.values(), ids=IDENTITIES)
def test_a_signature_is_of_one_text_by_one_key(identity):
    signature = identity.sign(b"text")
    verify(identity.public_key, signature, b"text")
    for key, signed, text in (
        (identity.public_key, signature, b"texts"),
        (identity.public_key, signature[:-1] + bytes([signature[-1] ^ 1]), b"text"),
        (identity.public_key, b"", b"text"),
        (KeyIdentity.simulated("alice-1", COINS.fork("other")).public_key, signature, b"text"),
    ):
        with refused(CryptoError):
            verify(key, signed, text)


@pytest.mark.parametrize("key", [b"", b"\x30\x00", b"key"])
def test_what_is_no_public_key_verifies_nothing(key):
    with refused(CryptoError):
        verify(key, b"", b"")


def test_keys_of_another_kind_sign_nothing():
    other = x25519.X25519PrivateKey.generate()
    pem = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with refused(CryptoError):
        KeyIdentity.from_pem("alice-1", pem)
    public = other.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    with refused(CryptoError):
        verify(public, b"", b"")


def test_a_fingerprint_is_that_of_openssl():
    """``openssl pkey -pubin -outform DER | sha256sum`` of the key of RFC 8410, §10.1."""
    key = bytes.fromhex(
        "302a300506032b657003210019bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1"
    )
    assert fingerprint(key) == "a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f"


def test_two_halves_make_one_key_and_a_third_another():
    """[RFC7748, §6.1] has the secret; the context makes the key."""
    one, two, three = (ExchangeKey(COINS.fork(str(number))) for number in range(3))
    assert one.common(two.public, b"x") == two.common(one.public, b"x")
    assert one.common(two.public, b"x") != one.common(two.public, b"y")
    assert one.common(two.public, b"x") != three.common(two.public, b"x")
    assert "hidden" in repr(one)


@pytest.mark.parametrize("half", [b"", bytes(32), bytes(31), b"\x01" + bytes(31)])
def test_what_is_no_half_or_gives_everybody_the_key_is_refused(half):
    with refused(CryptoError):
        ExchangeKey(COINS).common(half, b"")
