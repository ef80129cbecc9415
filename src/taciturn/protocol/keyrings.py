"""A party's key in a session: one for all of its vectors, or a fresh one for each.

Who encrypts *offers* (KeyOffer), who computes *receives*. With ``fresh_keys``, and at Alice in
``mutual``, a KeyOffer precedes each vector, and nothing that was decrypted with a key is sent under
it again: ``docs/sealed.md`` and ``docs/mutual.md`` have why. All keys of a ring have the uniform
half of one joint seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from taciturn.crypto.base import PublicKey, SecretKey, Wrapping
from taciturn.protocol.messages import KeyOffer, PublicBytes
from taciturn.protocol.steps import ONLY, Program, persist, receive, send_all
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


class OwnKeys:
    """The owner's side: makes, offers and keeps its keys.

    ``read`` restores a key from bytes. ``single_use`` makes a key for each vector. ``saved_key`` is
    the key of a training that is resumed.
    """

    def __init__(
        self,
        make: Callable[[Entropy], SecretKey],
        read: Callable[[bytes], SecretKey],
        *,
        single_use: bool,
        saved_key: bytes | None = None,
    ) -> None:
        self.single_use = single_use
        self._make, self._read = make, read
        self._key: SecretKey | None = None if saved_key is None else read(saved_key)

    def open(self, entropy: Entropy, peers: Sequence[str] = (ONLY,)) -> Program[None]:
        """Offers the one key, before the first vector; to all peers, if there are several."""
        if not self.single_use:
            yield from self.offer(entropy, peers)

    def offer(self, entropy: Entropy, peers: Sequence[str] = (ONLY,)) -> Program[SecretKey]:
        """The key for the next vector; a new one is on its way to the peer."""
        if self._key is not None:
            return self._key
        key = self._make(entropy)
        # Whatever a scheme draws its keys from: after a stop it is this one.
        saved_key = yield from persist(key.to_bytes())
        if saved_key != key.to_bytes():
            key = self._read(saved_key)
        yield from send_all(peers, KeyOffer(PublicBytes(key.public.to_bytes())))
        if not self.single_use:
            self._key = key
        return key

    def to_bytes(self) -> bytes:
        """The key to keep; nothing where each is used once."""
        return b"" if self._key is None else self._key.to_bytes()


class PeerKeys:
    """The peer's side: receives the owner's keys.

    ``read`` refuses a key with another uniform half. ``single_use`` and ``saved_key`` are as in
    ``OwnKeys``.
    """

    def __init__(
        self,
        read: Callable[[bytes], PublicKey],
        *,
        single_use: bool,
        saved_key: bytes | None = None,
    ) -> None:
        self.single_use = single_use
        self._read = read
        self._key: PublicKey | None = None if saved_key is None else read(saved_key)

    def open(self) -> Program[None]:
        """Receives the one key, before the first vector."""
        if not self.single_use:
            yield from self.receive()

    def receive(self) -> Program[PublicKey]:
        """The key of the next vector."""
        if self._key is not None:
            return self._key
        key = self._read((yield from receive(KeyOffer)).public_key)
        if not self.single_use:
            self._key = key
        return key

    def to_bytes(self) -> bytes:
        """The key to keep; nothing where each is used once."""
        return b"" if self._key is None else self._key.to_bytes()


def own_keys(
    terms: Terms,
    ring: Wrapping,
    seed: bytes,
    *,
    single_use: bool = False,
    saved_key: bytes | None = None,
) -> OwnKeys:
    """Keys for products with the peer's columns; ``seed`` makes their uniform half."""
    scheme, bits = terms.scheme, terms.agreement.key_bits
    return OwnKeys(
        lambda entropy: scheme.generate(bits, ring, entropy.fork("key"), seed),
        lambda data: scheme.read_secret(data, bits, ring),
        single_use=single_use,
        saved_key=saved_key,
    )


def peer_keys(
    terms: Terms,
    ring: Wrapping,
    seed: bytes,
    *,
    single_use: bool = False,
    saved_key: bytes | None = None,
) -> PeerKeys:
    """The same as the peer has it."""
    scheme, bits = terms.scheme, terms.agreement.key_bits
    return PeerKeys(
        lambda data: scheme.read_public(data, bits, ring, seed),
        single_use=single_use,
        saved_key=saved_key,
    )
