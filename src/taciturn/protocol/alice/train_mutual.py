"""Alice's side of the training in which nobody sees a score.

The chart of messages, and what both sides do alike, stand in ``taciturn.protocol.mutual``. Alice's
own part is her table of the sigmoid: what she makes of her share of the scores, under Bob's key.

At the end her weights stay shared. With ``reveal`` Bob sends his share of hers (RevealedShare),
and with ``reveal_bob`` she sends hers of his (GivenShare).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from taciturn.protocol.keyrings import OwnKeys, PeerKeys, own_keys, peer_keys, peer_slot_keys
from taciturn.protocol.messages import GivenShare, ShareNumbers
from taciturn.protocol.mutual import (
    Asking,
    Columns,
    Holding,
    Plan,
    Shares,
    Step,
)
from taciturn.protocol.observations import ShareRevealed
from taciturn.protocol.outcome import Trained, WeightShare
from taciturn.protocol.state import MutualState, TrainingState
from taciturn.protocol.steps import Program, emit, send
from taciturn.protocol.terms import Terms

_NO_WEIGHTS = np.empty(0)


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's share of all weights.

    Returns:
        Her shares, and no weights: she has none in clear. Her weights too, one per column, where
        Bob reveals his share.
    """
    features, terms, entropy = inputs.features, inputs.terms, inputs.entropy
    state, plan, keys = yield from _opened(inputs)
    mutual = _mutual(state)
    batches = terms.plan(state.seed, features.rows)
    scales, ring = plan.scales, plan.alice.ring
    asking = Asking(keys.own, plan.bob) if state.columns else None
    holding = Holding(keys.bobs, plan.alice)

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
        answers = Answers((yield from keys.waves.receive()), plan.slots, ring, entropy)
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


@dataclass(frozen=True, slots=True)
class _Keys:
    """Those of the training: Bob's two kinds, and her own, which she has where he has columns."""

    bobs: PeerKeys[PublicKey]
    waves: PeerKeys[SlotPublicKey]
    own: OwnKeys[SecretKey]

    @classmethod
    def of(cls, terms: Terms, plan: Plan, state: TrainingState) -> _Keys:
        seed, mutual = state.seed, state.mutual
        kept, waves = (b"", b"") if mutual is None else (mutual.alice_key, mutual.waves_key)
        return cls(
            peer_keys(terms, plan.alice.ring, key_seed(seed, "bob"), state.key),
            peer_slot_keys(terms, plan.slots, key_seed(seed, "waves"), waves),
            own_keys(terms, plan.bob.ring, key_seed(seed, "alice"), kept),
        )


def _opened(inputs: AliceInputs) -> Program[tuple[TrainingState, Plan, _Keys]]:
    """The state from which the training goes on, its plan, and the keys."""
    features, terms, state = inputs.features, inputs.terms, inputs.resume
    if state is not None:
        bobs = Columns(state.columns, _mutual(state).bob_bits)
        plan = _plan(inputs, state.magnitude_bits, bobs)
        return state, plan, _Keys.of(terms, plan, state)
    size = magnitude_bits(features.largest)
    hello = yield from open_training("alice", terms, features, size)
    plan = _plan(inputs, size, Columns(hello.columns, hello.magnitude_bits))
    state = TrainingState(0, _NO_WEIGHTS, columns=hello.columns, magnitude_bits=size)
    state = yield from with_seed(inputs, state)
    keys = _Keys.of(terms, plan, state)
    yield from keys.bobs.open()
    yield from keys.waves.open()
    if hello.columns:
        yield from keys.own.open(inputs.entropy)
    first = next(iter(terms.plan(state.seed, features.rows)))
    state = replace(
        state,
        key=keys.bobs.to_bytes(),
        share=np.zeros(len(features.columns), dtype=np.int64),
        ahead=np.zeros(len(first.rows), dtype=np.int64),
        mutual=MutualState(
            keys.own.to_bytes(),
            hello.magnitude_bits,
            np.zeros(hello.columns, dtype=np.int64),
            keys.waves.to_bytes(),
        ),
    )
    return state, plan, keys


def _plan(inputs: AliceInputs, size: int, bob: Columns) -> Plan:
    features = inputs.features
    return Plan.of(inputs.terms, features.rows, Columns(len(features.columns), size), bob)


def _mutual(state: TrainingState) -> MutualState:
    if state.mutual is None:
        raise RemoteProtocolError("the state is not that of a training that shares scores")
    return state.mutual
