"""Opening of Bob's trainings: greetings, Alices' introductions, his key, the seed of the batches.

Each conversation takes of it what it needs, in this order. Where a training is resumed nothing of
it is said again: the state has it all.

The chart of the seed of the batches stands in ``taciturn.protocol.batches``. Bob carries the
introductions of several Alices; see ``taciturn.protocol.party_group``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from taciturn.crypto.base import SecretKey
from taciturn.data.tables import FeatureTable
from taciturn.errors import LocalProtocolError
from taciturn.privacy.base import Mechanism
from taciturn.protocol.batches import commitment as seed_commitment
from taciturn.protocol.batches import draw_share, joint_seed, require_length
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.partners import send_all
from taciturn.protocol.handshake import PeerTable, group_terms, open_training
from taciturn.protocol.messages import (
    BatchCommitment,
    BatchShare,
    Endorsement,
    Endorsements,
    Hello,
    Introduction,
    KeyOffer,
    PublicBytes,
    Roster,
)
from taciturn.protocol.party_group import BOB, Member, Members, SignedRoster, commitment
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY, Program, gather, persist, receive, send
from taciturn.protocol.terms import Terms
from taciturn.rng import KEY_BYTES, Entropy


def agree_seed(entropy: Entropy) -> Program[bytes]:
    """The seed to which he contributes: bound first, told last."""
    share = draw_share(entropy)
    yield from send(BatchCommitment(seed_commitment(share)))
    alice_share = (yield from receive(BatchShare)).share
    require_length(alice_share, "seed share")
    yield from send(BatchShare(share))
    return joint_seed(alice_share, share)


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


def greet(inputs: BobInputs[Mechanism]) -> Program[TrainingState]:
    """The state before the first iteration: no key yet, and a seed only with several Alices."""
    return (
        yield from open_all(
            inputs.terms, inputs.features, inputs.peer, inputs.partners, inputs.entropy
        )
    )


def open_all(
    terms: Terms,
    features: FeatureTable,
    peer: PeerTable,
    names: tuple[str, ...],
    entropy: Entropy,
) -> Program[TrainingState]:
    """Greets the one Alice, or several, who are introduced to each other."""
    state = TrainingState(0, np.zeros(len(features.columns)))
    if names == (ONLY,):
        hello = yield from open_training("bob", terms, features, peer=peer)
        return replace(state, columns=hello.columns, magnitude_bits=hello.magnitude_bits)
    # How many columns one of them has is not agreed on: only their number in all.
    single = replace(peer, columns=None)
    hellos = yield from gather(
        {name: open_training("bob", terms, features, peer=single) for name in names}
    )
    peer.require_total(sum(hello.columns for hello in hellos.values()))
    members, seed = yield from form_group(
        terms.agreement.parties, group_terms(terms, features), hellos, entropy
    )
    return replace(
        state,
        columns=sum(members.widths),
        magnitude_bits=members.magnitude_bits,
        widths=members.widths,
        sizes=members.sizes,
        seed=seed,
    )


def with_key(
    inputs: BobInputs[Mechanism], state: TrainingState
) -> Program[tuple[TrainingState, SecretKey]]:
    """The state with a key for products with Alice's table; a fresh one is on its way to her."""
    scheme, bits = inputs.terms.scheme, inputs.terms.agreement.key_bits
    capacity = inputs.terms.capacity(state.magnitude_bits, inputs.features.rows)
    if inputs.resume is not None:
        return state, scheme.read_secret(state.key, bits, capacity)
    key = scheme.generate(bits, capacity, inputs.entropy.fork("key"))
    # Whatever a scheme draws its keys from: after a stop it is this one.
    saved_key = yield from persist(key.to_bytes())
    if saved_key != key.to_bytes():
        key = scheme.read_secret(saved_key, bits, capacity)
    yield from send_all(inputs.partners, KeyOffer(PublicBytes(key.public.to_bytes())))
    return replace(state, key=key.to_bytes()), key


def with_seed(inputs: BobInputs[Mechanism], state: TrainingState) -> Program[TrainingState]:
    """The state with the seed of the batches; with several Alices it is there already."""
    if inputs.resume is not None or state.widths:
        return state
    return replace(state, seed=(yield from agree_seed(inputs.entropy)))
