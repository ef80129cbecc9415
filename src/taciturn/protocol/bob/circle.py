"""Bob carries the introductions of several Alices. The chart is in ``taciturn.protocol.circle``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taciturn.crypto.exchange import TAG_BYTES
from taciturn.errors import LocalProtocolError, RemoteProtocolError
from taciturn.protocol.bob.partners import send_all
from taciturn.protocol.circle import Endorsed, Member, Members, commitment
from taciturn.protocol.messages import (
    Endorsement,
    Endorsements,
    Hello,
    Introduction,
    PublicBytes,
    Roster,
)
from taciturn.protocol.steps import Program, receive, send
from taciturn.protocol.together import together, with_peer
from taciturn.rng import KEY_BYTES, Entropy

_ENVELOPE = KEY_BYTES + TAG_BYTES


def gather_circle(
    parties: Mapping[str, str] | None, terms: str, hellos: Mapping[str, Hello], entropy: Entropy
) -> Program[tuple[Members, bytes]]:
    """Hands all introductions and signatures to all.

    He checks what he hands out: whoever is not the agreed one is named, here as there.

    Args:
        parties: All Alices with the fingerprints of their keys, in the agreement's order.
        terms: What is agreed on, in canonical form.
        hellos: What each of them said first, in the agreement's order.
        entropy: His coins.

    Returns:
        The roster, and the joint seed.

    Raises:
        AgreementError: An Alice is not the agreed one, or has not signed the roster.
        RemoteProtocolError: A nonce is not the one that was bound.
    """
    if parties is None:
        raise LocalProtocolError("the agreement names no parties")
    nonce = entropy.fork("circle").token(KEY_BYTES)
    introductions = yield from together({name: receive(Introduction) for name in hellos})
    alices = (
        Member.of(name, hello.columns, hello.magnitude_bits, introductions[name])
        for name, hello in hellos.items()
    )
    members = Members(tuple(alices), commitment(nonce).hex())
    members.require_pins(parties)
    yield from send_all([*hellos], Roster(members.to_text()))
    answers = yield from together({name: receive(Endorsement) for name in hellos})
    endorsed = Endorsed(
        tuple(given.hex() for given in (*(a.nonce for a in answers.values()), nonce)),
        tuple(answer.signature.hex() for answer in answers.values()),
    )
    seed = members.seed_of(endorsed, members.signed_text(terms))
    text, envelopes = endorsed.to_text(), _envelopes(members.names, answers)
    for name in hellos:
        message = Endorsements(text, PublicBytes(envelopes.get(name, b"")))
        yield from with_peer(name, send(message))
    return members, seed


def _envelopes(names: Sequence[str], answers: Mapping[str, Endorsement]) -> dict[str, bytes]:
    """The first Alice's envelopes, by whom they are for.

    Raises:
        RemoteProtocolError: There are not as many as others.
    """
    first, *others = names
    data = answers[first].envelopes
    if len(data) != _ENVELOPE * len(others):
        raise RemoteProtocolError(f"{first} sent another number of envelopes than there are others")
    starts = range(0, len(data), _ENVELOPE)
    parts = (data[start : start + _ENVELOPE] for start in starts)
    return dict(zip(others, parts, strict=True))
