"""Alice's introduction to the other Alices.

The chart stands in ``taciturn.protocol.party_group``.
"""

from __future__ import annotations

from collections.abc import Mapping

from taciturn.crypto.signatures import ExchangeKey, SigningIdentity
from taciturn.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from taciturn.protocol.masks import PairwiseMasks
from taciturn.protocol.messages import (
    Endorsement,
    Endorsements,
    Introduction,
    PublicBytes,
    Roster,
)
from taciturn.protocol.party_group import Member, Members, SignedRoster, commitment
from taciturn.protocol.steps import Program, receive, send
from taciturn.rng import KEY_BYTES, Entropy


def join_group(
    parties: Mapping[str, str],
    terms: str,
    identity: SigningIdentity | None,
    entropy: Entropy,
    columns: int,
    magnitude_bits: int,
    spread_bits: int = 0,
) -> Program[PairwiseMasks]:
    """Introduces Alice to the other Alices, and checks their roster.

    ``parties`` has the key fingerprints of all Alices in the agreement's order, and ``terms`` is
    the agreement in canonical form. ``magnitude_bits`` is the size of her values, ``spread_bits``
    that of her columns together. Raises ``AgreementError`` where another Alice is not the agreed
    one, or has signed another roster.
    """
    if identity is None or identity.name not in parties:
        raise LocalProtocolError("this side is none of the parties of the agreement")
    stream = entropy.fork("circle")
    exchange_key = ExchangeKey(stream.fork("exchange"))
    nonce = stream.fork("nonce").token(KEY_BYTES)
    introduction = Introduction(
        PublicBytes(exchange_key.public),
        PublicBytes(commitment(identity.name, nonce)),
        PublicBytes(identity.public_key),
        spread_bits,
    )
    yield from send(introduction)
    members = _members((yield from receive(Roster)).text, parties)
    place = members.names.index(identity.name)
    _require_herself(members.alices[place], introduction, columns, magnitude_bits)
    signed = members.signed_text(terms)
    keys = _pair_keys(exchange_key, members, place, signed)
    yield from send(Endorsement(PublicBytes(nonce), PublicBytes(identity.sign(signed))))
    text = (yield from receive(Endorsements)).text
    seed = members.seed_of(SignedRoster.from_text(text, len(members.alices)), signed)
    return PairwiseMasks(members.widths, place, members.magnitude_bits, seed, keys, members.sizes)


def _members(text: str, parties: Mapping[str, str]) -> Members:
    members = Members.from_text(text)
    members.require_pins(parties)
    return members


def _require_herself(
    member: Member, introduction: Introduction, columns: int, magnitude_bits: int
) -> None:
    if Member.from_introduction(member.name, columns, magnitude_bits, introduction) != member:
        raise RemoteProtocolError("the peer's roster misstates this side's entry")


def _pair_keys(
    exchange_key: ExchangeKey, members: Members, place: int, signed: bytes
) -> tuple[bytes, ...]:
    """The key in common with each other Alice, in the roster's order; none in her own place."""

    def with_member(number: int, member: Member) -> bytes:
        if number == place:
            return b""
        low, high = sorted((number, place))
        # Bound to the roster: halves that are used in another session give another key.
        context = signed + f" {low} {high}".encode()
        try:
            return exchange_key.common(bytes.fromhex(member.exchange_key), context)
        except CryptoError as problem:
            raise RemoteProtocolError(f"{member.name}: {problem.message}") from None

    return tuple(with_member(number, member) for number, member in enumerate(members.alices))
