"""Opening of Alice's trainings: greetings, other Alices, Bob's key, the seed of the batches.

Each conversation takes of it what it needs, in this order. Where a training is resumed nothing of
it is said again: the state has it all.

The chart of the seed of the batches stands in ``taciturn.protocol.batches``, that of several Alices
who meet each other in ``taciturn.protocol.party_group``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from taciturn.crypto.base import PublicKey
from taciturn.crypto.signatures import ExchangeKey, SigningIdentity
from taciturn.errors import CryptoError, LocalProtocolError, RemoteProtocolError
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.whitened import WhitenedTable
from taciturn.protocol.batches import commitment as seed_commitment
from taciturn.protocol.batches import draw_share, joint_seed, require_length
from taciturn.protocol.handshake import group_terms, open_training
from taciturn.protocol.messages import (
    BatchCommitment,
    BatchShare,
    Endorsement,
    Endorsements,
    Introduction,
    KeyOffer,
    PublicBytes,
    Roster,
)
from taciturn.protocol.party_group import Member, Members, PairwiseMasks, SignedRoster, commitment
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, receive, send
from taciturn.protocol.table_shape import table_sizes
from taciturn.rng import KEY_BYTES, Entropy


def agree_seed(entropy: Entropy) -> Program[bytes]:
    """The joint seed of the batches, to which Alice contributes."""
    bound = (yield from receive(BatchCommitment)).digest
    require_length(bound, "seed commitment")
    share = draw_share(entropy)
    yield from send(BatchShare(share))
    bob_share = (yield from receive(BatchShare)).share
    require_length(bob_share, "seed share")
    if seed_commitment(bob_share) != bound:
        raise RemoteProtocolError("the peer's seed share does not match its commitment")
    return joint_seed(share, bob_share)


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
    return replace(state, seed=(yield from agree_seed(inputs.entropy)))
