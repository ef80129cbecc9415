"""Opening of Alice's trainings: greetings, other Alices, Bob's key, the seed of the batches.

Each conversation takes of it what it needs, in this order. Where a training is resumed nothing of
it is said again: the state has it all.

The chart of the seed of the batches stands in ``taciturn.protocol.joint_seed``, that of several
Alices who meet each other in ``taciturn.protocol.party_group``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.crypto.base import PublicKey
from taciturn.protocol.alice.group import join_group
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.whitened import WhitenedTable
from taciturn.protocol.handshake import group_terms, open_training
from taciturn.protocol.joint_seed import agree_as_alice
from taciturn.protocol.messages import (
    KeyOffer,
)
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, receive
from taciturn.protocol.table_shape import table_sizes


def greet(
    inputs: AliceInputs, magnitude_bits: int = 0, spread_bits: int = 0
) -> Program[TrainingState]:
    """The state before the first iteration; it has no key yet, and a seed only of several Alices.

    ``magnitude_bits`` is the size of her values and ``spread_bits`` that of her columns together,
    where the conversation needs them.
    """
    hello = yield from open_training("alice", inputs.terms, inputs.features, magnitude_bits)
    columns = len(inputs.features.columns)
    state = TrainingState(
        0, np.zeros(columns), columns=hello.columns, magnitude_bits=magnitude_bits
    )
    agreed = inputs.terms.agreement
    if agreed.parties is None:
        return state
    pairwise_masks = yield from join_group(
        agreed.parties,
        group_terms(inputs.terms, inputs.features),
        inputs.identity,
        inputs.entropy,
        columns,
        magnitude_bits,
        spread_bits,
    )
    # All Alices have the same scales: those of the largest value of all.
    return replace(
        state,
        magnitude_bits=pairwise_masks.magnitude_bits,
        seed=pairwise_masks.seed,
        widths=pairwise_masks.widths,
        sizes=pairwise_masks.sizes,
        pairwise_masks=pairwise_masks,
    )


def greet_with_table(inputs: AliceInputs) -> Program[tuple[TrainingState, WhitenedTable]]:
    """The same for a training with her whole table, which is whitened; or the state to resume.

    One Alice whitens and rounds her table first, and says how large its values are. Several have
    the scales of all tables together, which they know after the greetings, and do not whiten: what
    whitens would show in the sums who has which columns.
    """
    if inputs.terms.agreement.parties is None:
        table = WhitenedTable.from_inputs(inputs)
        return inputs.resume or (yield from greet(inputs, table.magnitude_bits)), table
    state = inputs.resume
    if state is None:
        values = inputs.features.values
        state = yield from greet(inputs, *table_sizes(values, inputs.terms.means_of(values)))
    return state, WhitenedTable.among(inputs, state)


def with_key(inputs: AliceInputs, state: TrainingState) -> Program[tuple[TrainingState, PublicKey]]:
    """The state with Bob's public key, which is fit for products of her table."""
    scheme, bits = inputs.terms.scheme, inputs.terms.agreement.key_bits
    capacity = inputs.terms.capacity(state.magnitude_bits, inputs.features.rows)
    if inputs.resume is not None:
        return state, scheme.read_public(state.key, bits, capacity)
    offer = yield from receive(KeyOffer)
    key = scheme.read_public(offer.public_key, bits, capacity)
    return replace(state, key=key.to_bytes()), key


def with_seed(inputs: AliceInputs, state: TrainingState) -> Program[TrainingState]:
    """The state with the seed of the batches; several Alices have one already."""
    if inputs.resume is not None or state.pairwise_masks is not None:
        return state
    return replace(state, seed=(yield from agree_as_alice(inputs.entropy)))
