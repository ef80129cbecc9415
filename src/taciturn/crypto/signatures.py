"""Keys of parties: signatures by the key of a certificate, and key exchange by X25519.

A public key stands as its SubjectPublicKeyInfo in DER, and is known by the SHA-256 of that, its
fingerprint. Certificates here have keys on elliptic curves (ECDSA, SHA-256) or of RSA (PSS,
SHA-256); a simulation, which has no certificates, signs with Ed25519.

**Guarantee.** ``verify`` returns only if the signature is one of exactly these bytes under exactly
this key. Anyone who sees both public halves of an exchange and neither secret one learns nothing of
the common key [RFC7748, §6.1]; the same halves in another context give an independent one
[RFC5869].

**Assumes.** ECDSA, RSA-PSS and Ed25519 cannot be forged, and SHA-256 does not collide. For an
exchange: the computational Diffie-Hellman assumption on Curve25519, HKDF-SHA256 behaves like a
random function, and each party has the other's half and no third one's. A relay could put its own
in their place, so the halves have to be signed.
"""

from __future__ import annotations

import hashlib
from typing import Protocol, TypeAlias

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
    load_pem_private_key,
)

from taciturn.errors import CryptoError
from taciturn.rng import KEY_BYTES, Entropy

_PSS = padding.PSS(mgf=padding.MGF1(SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)
_PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | Ed25519PrivateKey


class SigningIdentity(Protocol):
    """Signing key of a party."""

    @property
    def name(self) -> str:
        """Name of the party, as in its certificate."""

    @property
    def public_key(self) -> bytes:
        """Public key as SubjectPublicKeyInfo, in DER."""

    def sign(self, data: bytes) -> bytes:
        """Sign these bytes."""


class KeyIdentity:
    """A party that holds a private key; its ``repr`` hides the key."""

    def __init__(self, name: str, key: _PrivateKey) -> None:
        self.name = name
        self._key = key
        self.public_key = key.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )

    @classmethod
    def from_pem(cls, name: str, pem: bytes) -> KeyIdentity:
        """Identity of a PEM private key, EC or RSA, without a passphrase."""
        key = load_pem_private_key(pem, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
            raise CryptoError("the party's key type does not support signatures")
        return cls(name, key)

    @classmethod
    def simulated(cls, name: str, entropy: Entropy) -> KeyIdentity:
        """A party of a simulation, whose key follows from its entropy."""
        seed = entropy.fork("identity").token(KEY_BYTES)
        return cls(name, Ed25519PrivateKey.from_private_bytes(seed))

    def sign(self, data: bytes) -> bytes:
        """Sign these bytes."""
        if isinstance(self._key, ec.EllipticCurvePrivateKey):
            return self._key.sign(data, ec.ECDSA(SHA256()))
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(data, _PSS, SHA256())
        return self._key.sign(data)

    def __repr__(self) -> str:
        return f"KeyIdentity({self.name}, <hidden>)"


def fingerprint(public_key: bytes) -> str:
    """SHA-256 of a public key, in hexadecimal."""
    return hashlib.sha256(public_key).hexdigest()


def verify(public_key: bytes, signature: bytes, data: bytes) -> None:
    """Raise ``CryptoError`` unless the key's owner signed exactly these bytes."""
    try:
        key = load_der_public_key(public_key)
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(SHA256()))
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, data, _PSS, SHA256())
        elif isinstance(key, Ed25519PublicKey):
            key.verify(signature, data)
        else:
            raise CryptoError("the public key type does not support signatures")
    except InvalidSignature:
        raise CryptoError("the signature does not match this key and text") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CryptoError("a public key, or a signature, cannot be read") from None


class ExchangeKey:
    """One party's half of a key exchange; its ``repr`` hides the key."""

    def __init__(self, entropy: Entropy) -> None:
        self._key = X25519PrivateKey.from_private_bytes(entropy.token(KEY_BYTES))
        self.public = self._key.public_key().public_bytes_raw()

    def common(self, peer_public: bytes, context: bytes) -> bytes:
        """Shared key with the owner of ``peer_public``, for one context; 32 bytes."""
        try:
            secret = self._key.exchange(X25519PublicKey.from_public_bytes(peer_public))
        except ValueError:
            raise CryptoError("the exchange key is not a valid Curve25519 key") from None
        return HKDF(SHA256(), KEY_BYTES, salt=None, info=context).derive(secret)

    def __repr__(self) -> str:
        return "ExchangeKey(<hidden>)"
