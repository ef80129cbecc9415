"""Opening of Bob's trainings: greetings, Alices' introductions, his key, the seed of the batches.

Each conversation takes of it what it needs, in this order. Where a training is resumed nothing of
it is said again: the state has it all.

The chart of the seed of the batches stands in ``taciturn.protocol.joint_seed``, that of several
Alices who meet each other in ``taciturn.protocol.party_group``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.crypto.base import SecretKey
from taciturn.data.tables import FeatureTable
from taciturn.privacy.base import Mechanism
from taciturn.protocol.bob.group import form_group
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.handshake import PeerTable, group_terms, open_training
from taciturn.protocol.joint_seed import agree_as_bob
from taciturn.protocol.messages import (
    KeyOffer,
    PublicBytes,
)
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import ONLY, Program, gather, persist, send_all
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


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
    return replace(state, seed=(yield from agree_as_bob(inputs.entropy)))
