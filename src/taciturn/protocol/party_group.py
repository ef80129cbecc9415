"""Several Alices get to know each other through Bob, who must not come between them.

::

    each Alice                                       Bob
      Introduction   exchange key, H(nonce)     ->
                                                <-   Roster         all of them, and H(his nonce)
      Endorsement    nonce, signature           ->
                                                <-   Endorsements   all nonces and signatures

The signature is that of the roster, with the digest of what is agreed on before it (settings, rows,
version), by the key of her certificate, whose fingerprint the agreement has beside her name. Each
Alice checks those of all others over the roster as she has it, so that all have the same one, and
the others' exchange keys are theirs and not Bob's. From them follow

- **masks that cancel** (``masks.ZeroSum``): any two Alices have a key in common, from which one
  adds and the other subtracts the same pseudo-random numbers. Bob's sum over all Alices is right,
  and each single answer is uniform to him;
- **the joint seed** of batches and of the key's uniform half, to which everybody contributes.

**Guarantee.** If at least two Alices do not collude with Bob, he learns only the sum of their
answers. The sums of a whole-table training are those of one joined table, however its columns are
dealt out; from them he can reconstruct that table (``audit/docs/columns.md``), which no mask
prevents. If one party draws her or his nonce at random, the seed is random, whatever the others do,
but for ending the run: all are bound to their nonces before any is revealed.

**Assumes.** An honest-but-curious Bob: one who sends two Alices vectors that do not belong
together isolates an answer. The agreement's fingerprints are right, and an Alice whom Bob runs
counts as Bob. Trainings with other sets of Alices subtract: with and without her is her answer.
Signatures (``taciturn.crypto.signatures``), exchange keys (``taciturn.crypto.signatures``) and
streams (``taciturn.rng``) are what they claim to be; SHA-256 binds and hides.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from taciturn.crypto.signatures import fingerprint, verify
from taciturn.errors import (
    AgreementError,
    CryptoError,
    RemoteProtocolError,
)
from taciturn.files import canonical_json
from taciturn.protocol.messages import MAX_COLUMNS, MAX_MAGNITUDE_BITS, Introduction
from taciturn.rng import KEY_BYTES

_NONCE, _SEED, _SIGNED = b"taciturn nonce", b"taciturn joint seed", b"taciturn roster"
BOB = "bob"
"""The name under which Bob is bound to his nonce."""


@dataclass(frozen=True, slots=True)
class Member:
    """One Alice, as the roster has her; bytes are in hexadecimal.

    ``spread_bits`` is the size of her columns together, where it is needed (``TableShape``).
    ``exchange_key`` is her half of the keys that she will have with the others, and ``public_key``
    that of her certificate.
    """

    name: str
    columns: int
    magnitude_bits: int
    spread_bits: int
    exchange_key: str
    commitment: str
    public_key: str

    @classmethod
    def from_introduction(
        cls, name: str, columns: int, magnitude_bits: int, introduction: Introduction
    ) -> Member:
        """The Alice who sent this to Bob."""
        return cls(
            name,
            columns,
            magnitude_bits,
            introduction.spread_bits,
            introduction.exchange_key.hex(),
            introduction.commitment.hex(),
            introduction.public_key.hex(),
        )


@dataclass(frozen=True, slots=True)
class Members:
    """The roster: all Alices in the agreement's order, and what binds Bob to his nonce."""

    alices: tuple[Member, ...]
    commitment: str

    def to_text(self) -> str:
        """One text for one roster: this is what is signed."""
        return canonical_json(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Members:
        """Parse a roster that was received."""
        values = _parsed(text)
        try:
            alices = tuple(Member(**entry) for entry in values["alices"])
            members = cls(alices, values["commitment"])
        except (KeyError, TypeError):
            raise _unreadable() from None
        if members.to_text() != text:
            raise _unreadable()
        members.require_sound()
        return members

    def require_sound(self) -> None:
        """Insists that all numbers are within their bounds, and that keys are some."""
        seen: set[str] = set()
        for member in self.alices:
            if not _plausible(member) or member.exchange_key in seen:
                raise RemoteProtocolError(
                    f"the entry of {str(member.name)[:64]} in the roster is invalid"
                )
            seen.add(member.exchange_key)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the Alices."""
        return tuple(member.name for member in self.alices)

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each Alice."""
        return tuple(member.columns for member in self.alices)

    @property
    def magnitude_bits(self) -> int:
        """The size of the largest value of all Alices: all have the same scales."""
        return max(member.magnitude_bits for member in self.alices)

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Size of each Alice's values, and that of her columns together."""
        return tuple((member.magnitude_bits, member.spread_bits) for member in self.alices)

    def require_pins(self, parties: Mapping[str, str]) -> None:
        """Insists on the agreed names, in their order, and on the agreed keys."""
        if self.names != tuple(parties):
            raise AgreementError(
                f"the parties are {', '.join(parties)} here and {', '.join(self.names)} there",
                setting="parties",
            )
        for member in self.alices:
            require_pin(parties, member.name, bytes.fromhex(member.public_key))

    def signed_text(self, terms: str) -> bytes:
        """Text that each Alice signs: names, keys, bound nonces and sizes, under these terms."""
        # Digests of one length each: no text can run into the next.
        texts = (terms, self.to_text())
        return _SIGNED + b"".join(hashlib.sha256(text.encode()).digest() for text in texts)

    def seed_of(self, endorsed: SignedRoster, signed: bytes) -> bytes:
        """The joint seed, once all signatures and nonces are right."""
        for member, signature in zip(self.alices, endorsed.signatures, strict=True):
            require_signature(member, bytes.fromhex(signature), signed)
        nonces = [bytes.fromhex(nonce) for nonce in endorsed.nonces]
        bound = [(member.name, member.commitment) for member in self.alices]
        for (name, digest), nonce in zip([*bound, (BOB, self.commitment)], nonces, strict=True):
            require_nonce(name, nonce, digest)
        return common_seed(nonces)


def require_signature(member: Member, signature: bytes, signed: bytes) -> None:
    """Insists that an Alice has signed the roster."""
    try:
        verify(bytes.fromhex(member.public_key), signature, signed)
    except CryptoError as problem:
        raise AgreementError(
            f"{member.name} has not signed this list of parties and keys: {problem.message}",
            hint="somebody between the parties may have exchanged a key: end here, and ask them",
        ) from None


def require_pin(parties: Mapping[str, str], name: str, public_key: bytes) -> None:
    """Insists that a key is the agreed one of a party."""
    if fingerprint(public_key) != parties.get(name):
        raise AgreementError(
            f"the key of {name} has the fingerprint {fingerprint(public_key)[:16]}…, and "
            f"{str(parties.get(name))[:16]}… is agreed on",
            setting="parties",
            hint="compare the fingerprint with that party by another way than through Bob",
        )


def commitment(name: str, nonce: bytes) -> bytes:
    """Commitment of a party to its nonce before it reveals it; nobody else can use it."""
    return hashlib.sha256(_NONCE + hashlib.sha256(name.encode()).digest() + nonce).digest()


def common_seed(nonces: Sequence[bytes]) -> bytes:
    """The seed that all nonces make, Bob's last.

    >>> common_seed([bytes(32), bytes(32)]) == common_seed([bytes(32), b"1" * 32])
    False
    """
    return hashlib.sha256(_SEED + b"".join(nonces)).digest()


def require_nonce(name: str, nonce: bytes, bound: str) -> None:
    """Insists that a nonce is the one to which a party was bound."""
    if len(nonce) != KEY_BYTES or commitment(name, nonce).hex() != bound:
        raise RemoteProtocolError(f"the nonce of {name} does not match its commitment")


@dataclass(frozen=True, slots=True)
class SignedRoster:
    """Content of an ``Endorsements`` text, in hexadecimal; ``nonces`` has Bob's last."""

    nonces: tuple[str, ...]
    signatures: tuple[str, ...]

    def to_text(self) -> str:
        """The text."""
        return canonical_json(asdict(self))

    @classmethod
    def from_text(cls, text: str, alices: int) -> SignedRoster:
        """Reads the text, which must be that of this many Alices."""
        values = _parsed(text)
        try:
            endorsed = cls(*(tuple(map(str, values[name])) for name in ("nonces", "signatures")))
            lengths = len(endorsed.nonces), len(endorsed.signatures)
            for entry in (*endorsed.nonces, *endorsed.signatures):
                bytes.fromhex(entry)
        except (KeyError, TypeError, ValueError):
            raise _unreadable() from None
        if lengths != (alices + 1, alices):
            raise _unreadable()
        return endorsed


def _plausible(member: Member) -> bool:
    counts = (
        (member.columns, range(1, MAX_COLUMNS + 1)),
        (member.magnitude_bits, range(MAX_MAGNITUDE_BITS + 1)),
        (member.spread_bits, range(-MAX_MAGNITUDE_BITS, MAX_MAGNITUDE_BITS + 1)),
    )
    texts = (member.exchange_key, member.commitment, member.public_key)
    if not all(type(count) is int and count in bounds for count, bounds in counts):
        return False
    try:
        lengths = [len(bytes.fromhex(text)) for text in texts]
    except (TypeError, ValueError):
        return False
    return lengths[:2] == [KEY_BYTES, KEY_BYTES]


def _parsed(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise _unreadable() from None
    if not isinstance(values, dict):
        raise _unreadable()
    return values


def _unreadable() -> RemoteProtocolError:
    return RemoteProtocolError("the peer's roster of the other parties cannot be read")
