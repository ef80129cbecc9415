"""Keys that two parties have in common after each has seen the other's public half: X25519.

**Guarantee.** Whoever sees both public halves and neither secret one learns nothing of the common
key [RFC7748, §6.1]; the same halves in another context give an independent one [RFC5869].

**Assumes.** The computational Diffie-Hellman assumption on Curve25519, HKDF-SHA256 behaves like a
random function, and that each has the other's half and no third one's: whoever carries the halves
could put his own in their place. They have to be signed.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from taciturn.errors import CryptoError
from taciturn.rng import KEY_BYTES, Entropy


class ExchangeKey:
    """One party's half.

    >>> from taciturn.rng import KeyedEntropy
    >>> one, two = (ExchangeKey(KeyedEntropy.from_seed(seed)) for seed in (1, 2))
    >>> one.common(two.public, b"talk") == two.common(one.public, b"talk")
    True
    >>> one
    ExchangeKey(<hidden>)
    """

    def __init__(self, entropy: Entropy) -> None:
        self._key = X25519PrivateKey.from_private_bytes(entropy.token(KEY_BYTES))
        self.public = self._key.public_key().public_bytes_raw()

    def common(self, theirs: bytes, context: bytes) -> bytes:
        """The key in common with the owner of ``theirs``, a public half, for one context."""
        try:
            secret = self._key.exchange(X25519PublicKey.from_public_bytes(theirs))
        except ValueError:
            raise CryptoError("an exchange key is not one of Curve25519") from None
        return HKDF(SHA256(), KEY_BYTES, salt=None, info=context).derive(secret)

    def __repr__(self) -> str:
        return "ExchangeKey(<hidden>)"
