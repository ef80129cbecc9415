"""Bob's introduction of several Alices to each other, whose messages he carries.

The chart stands in ``taciturn.protocol.party_group``.
"""

from __future__ import annotations

from collections.abc import Mapping

from taciturn.errors import LocalProtocolError
from taciturn.protocol.messages import (
    Endorsement,
    Endorsements,
    Hello,
    Introduction,
    Roster,
)
from taciturn.protocol.party_group import BOB, Member, Members, SignedRoster, commitment
from taciturn.protocol.steps import Program, gather, receive, send_all
from taciturn.rng import KEY_BYTES, Entropy


def form_group(
    parties: Mapping[str, str] | None, terms: str, hellos: Mapping[str, Hello], entropy: Entropy
) -> Program[tuple[Members, bytes]]:
    """Hands all introductions and signatures to all; returns the roster and the joint seed.

    Bob checks what he hands out, and names the Alice who is not the agreed one. ``parties`` has the
    key fingerprints in the agreement's order, and ``terms`` is the agreement in canonical form.
    """
    if parties is None:
        raise LocalProtocolError("the agreement names no parties")
    nonce = entropy.fork("circle").token(KEY_BYTES)
    introductions = yield from gather({name: receive(Introduction) for name in hellos})
    alices = (
        Member.from_introduction(name, hello.columns, hello.magnitude_bits, introductions[name])
        for name, hello in hellos.items()
    )
    members = Members(tuple(alices), commitment(BOB, nonce).hex())
    members.require_pins(parties)
    members.require_sound()
    yield from send_all([*hellos], Roster(members.to_text()))
    answers = yield from gather({name: receive(Endorsement) for name in hellos})
    endorsed = SignedRoster(
        tuple(given.hex() for given in (*(a.nonce for a in answers.values()), nonce)),
        tuple(answer.signature.hex() for answer in answers.values()),
    )
    seed = members.seed_of(endorsed, members.signed_text(terms))
    yield from send_all([*hellos], Endorsements(endorsed.to_text()))
    return members, seed
