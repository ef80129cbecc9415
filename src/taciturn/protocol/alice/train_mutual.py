"""Alice's side of the training in which nobody sees a score.

The chart of messages, and what both sides do alike, stand in ``taciturn.protocol.mutual``. Alice's
own part is her table of the sigmoid: what she makes of her share of the scores, under Bob's key.

At the end her weights stay shared. With ``reveal`` Bob sends his share of hers (RevealedShare),
and with ``reveal_bob`` she sends hers of his (GivenShare).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.base import PublicKey, SecretKey, SlotPublicKey
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import with_seed
from taciturn.protocol.alice.sealed import revealed_share
from taciturn.protocol.alice.slots import Answers
from taciturn.protocol.batch_seed import key_seed
from taciturn.protocol.batches import Batch
from taciturn.protocol.events import Boundary
from taciturn.protocol.handshake import open_training
from taciturn.protocol.messages import GivenShare, KeyOffer, ShareNumbers
from taciturn.protocol.mutual import (
    Asking,
    Columns,
    Holding,
    Plan,
    Shares,
    Step,
    offer_key,
    receive_key,
)
from taciturn.protocol.observations import ShareRevealed
from taciturn.protocol.outcome import Trained, WeightShare
from taciturn.protocol.state import MutualState, TrainingState
from taciturn.protocol.steps import Program, emit, receive, send

_NO_WEIGHTS = np.empty(0)


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's share of all weights.

    Returns:
        Her shares, and no weights: she has none in clear. Her weights too, one per column, where
        Bob reveals his share.
    """
    features, terms, entropy = inputs.features, inputs.terms, inputs.entropy
    state, plan, bobs, waves, hers = yield from _opened(inputs)
    mutual = _mutual(state)
    batches = terms.plan(state.seed, features.rows)
    scales, ring = plan.scales, plan.alice.ring
    asking = None if hers is None else Asking(hers, plan.bob)
    holding = Holding(bobs, plan.alice)
    answers = Answers(waves, plan.slots, ring, entropy)

    def rounded(batch: Batch) -> FloatArray:
        taken = features.values.take(batch.rows, axis=0)
        return scales.rounded(taken, entropy.fork(f"rounding {batch.iteration}"))

    shares, rows = Shares(state.share, mutual.bob_share, state.ahead), None
    for batch, following in batches.with_next(state.iteration):
        number = batch.iteration
        kept = replace(mutual, bob_share=shares.other)
        at = state.at(number, state.weights, share=shares.own, ahead=shares.scores)
        yield from emit(Boundary(replace(at, mutual=kept)))
        rows = rounded(batch) if rows is None else rows
        after = None if following is None else rounded(following)
        sigmoid = plan.sigmoids.at(number, len(shares.scores))
        residues = yield from answers.residues(number, sigmoid, shares.scores)
        step = Step(number, ring, asking, holding, rows, after, entropy)
        shares, rows = (yield from step.advance(shares, residues)), after
    weights = _NO_WEIGHTS
    if terms.agreement.reveal:
        weights = scales.weights((yield from revealed_share(ring, shares.own)))
        yield from emit(ShareRevealed(batches.iterations, weights))
    if terms.agreement.reveal_bob:
        yield from send(GivenShare(ShareNumbers(shares.other)))
    return Trained(
        weights,
        batches.iterations,
        share=WeightShare(shares.own, scales, magnitude_bits=state.magnitude_bits),
        bob_share=WeightShare(shares.other, scales, magnitude_bits=mutual.bob_bits),
    )


def _opened(
    inputs: AliceInputs,
) -> Program[tuple[TrainingState, Plan, PublicKey, SlotPublicKey, SecretKey | None]]:
    """The state from which the training goes on, its plan, Bob's keys and her own."""
    features, terms, state = inputs.features, inputs.terms, inputs.resume
    scheme, bits = terms.scheme, terms.agreement.key_bits
    if state is not None:
        mutual = _mutual(state)
        plan = _plan(inputs, state.magnitude_bits, Columns(state.columns, mutual.bob_bits))
        hers = None
        if state.columns:
            hers = scheme.read_secret(mutual.alice_key, bits, plan.bob.ring)
        bobs = scheme.read_public(state.key, bits, plan.alice.ring)
        return state, plan, bobs, plan.slots.read_public(mutual.waves_key, bits), hers
    size = magnitude_bits(features.largest)
    hello = yield from open_training("alice", terms, features, size)
    plan = _plan(inputs, size, Columns(hello.columns, hello.magnitude_bits))
    state = TrainingState(0, _NO_WEIGHTS, columns=hello.columns, magnitude_bits=size)
    state = yield from with_seed(inputs, state)
    bobs = yield from receive_key(terms, plan.alice.ring, key_seed(state.seed, "bob"))
    offer = yield from receive(KeyOffer)
    waves = plan.slots.read_public(offer.public_key, bits, key_seed(state.seed, "waves"))
    hers = None
    if hello.columns:
        seed = key_seed(state.seed, "alice")
        hers = yield from offer_key(terms, plan.bob.ring, inputs.entropy, seed)
    first = next(iter(terms.plan(state.seed, features.rows)))
    state = replace(
        state,
        key=bobs.to_bytes(),
        share=np.zeros(len(features.columns), dtype=np.int64),
        ahead=np.zeros(len(first.rows), dtype=np.int64),
        mutual=MutualState(
            b"" if hers is None else hers.to_bytes(),
            hello.magnitude_bits,
            np.zeros(hello.columns, dtype=np.int64),
            waves.to_bytes(),
        ),
    )
    return state, plan, bobs, waves, hers


def _plan(inputs: AliceInputs, size: int, bob: Columns) -> Plan:
    features = inputs.features
    return Plan.of(inputs.terms, features.rows, Columns(len(features.columns), size), bob)


def _mutual(state: TrainingState) -> MutualState:
    if state.mutual is None:
        raise RemoteProtocolError("the state is not that of a training that shares scores")
    return state.mutual
