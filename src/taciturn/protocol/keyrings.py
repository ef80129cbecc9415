"""A party's key in a session: one for all of its vectors, or a fresh one for each.

Who encrypts *offers* (KeyOffer), who computes *receives*. With ``fresh_keys``, and at Alice in
``mutual``, a KeyOffer precedes each vector, and nothing that was decrypted with a key is sent under
it again: ``docs/sealed.md`` and ``docs/mutual.md`` have why. All keys of a ring have the uniform
half of one joint seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from taciturn.crypto.base import PublicKey, Scheme, SecretKey, Wrapping
from taciturn.protocol.messages import KeyOffer, PublicBytes
from taciturn.protocol.steps import ONLY, Program, persist, receive, send_all
from taciturn.rng import Entropy

K = TypeVar("K", PublicKey, SecretKey)


class _Keys(Generic[K]):
    """Keys of one owner for products with the peer's columns, as one side has them.

    ``seed`` makes their uniform half; None where no seed is agreed on. ``single_use`` makes a key
    for each vector. ``saved_key`` is the key of a training that is resumed.
    """

    def __init__(
        self,
        scheme: Scheme,
        bits: int,
        ring: Wrapping,
        seed: bytes | None,
        *,
        single_use: bool = False,
        saved_key: bytes | None = None,
    ) -> None:
        self.scheme, self.ring, self.single_use = scheme, ring, single_use
        self._bits, self._seed = bits, seed
        self._key: K | None = None if saved_key is None else self._restored(saved_key)

    def _restored(self, data: bytes) -> K:
        raise NotImplementedError

    def to_bytes(self) -> bytes:
        """The key to keep; nothing where each is used once."""
        return b"" if self._key is None else self._key.to_bytes()


class OwnKeys(_Keys[SecretKey]):
    """The owner's side: makes, offers and keeps its keys."""

    def _restored(self, data: bytes) -> SecretKey:
        return self.scheme.read_secret(data, self._bits, self.ring)

    def open(self, entropy: Entropy, peers: Sequence[str] = (ONLY,)) -> Program[None]:
        """Offers the one key, before the first vector; to all peers, if there are several."""
        if not self.single_use:
            yield from self.offer(entropy, peers)

    def offer(self, entropy: Entropy, peers: Sequence[str] = (ONLY,)) -> Program[SecretKey]:
        """The key for the next vector; a new one is on its way to the peer."""
        if self._key is not None:
            return self._key
        key = self.scheme.generate(self._bits, self.ring, entropy.fork("key"), self._seed)
        # Whatever a scheme draws its keys from: after a stop it is this one.
        saved_key = yield from persist(key.to_bytes())
        if saved_key != key.to_bytes():
            key = self._restored(saved_key)
        yield from send_all(peers, KeyOffer(PublicBytes(key.public.to_bytes())))
        if not self.single_use:
            self._key = key
        return key


class PeerKeys(_Keys[PublicKey]):
    """The peer's side: receives the owner's keys, and refuses one with another uniform half."""

    def _restored(self, data: bytes) -> PublicKey:
        return self.scheme.read_public(data, self._bits, self.ring, self._seed)

    def open(self) -> Program[None]:
        """Receives the one key, before the first vector."""
        if not self.single_use:
            yield from self.receive()

    def receive(self) -> Program[PublicKey]:
        """The key of the next vector."""
        if self._key is not None:
            return self._key
        key = self._restored((yield from receive(KeyOffer)).public_key)
        if not self.single_use:
            self._key = key
        return key
