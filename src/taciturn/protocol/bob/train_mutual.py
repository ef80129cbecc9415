"""Bob's side of the training in which nobody sees a score.

The chart of messages, and what both sides do alike, stand in ``taciturn.protocol.mutual``. Bob's
own part is the numbers of the waves, under his key, and the labels, which he adds to his share of
the residues. The weight of a row's class is a factor of both.

**What he does never depends on what he decrypts**, as in ``train_sealed``; he decrypts nothing but
uniform numbers, and does not know how good the model is before the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import PublicKey, SecretKey, SlotSecretKey
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.batch_seed import key_seed
from taciturn.protocol.batches import Batch
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.opening import with_seed
from taciturn.protocol.bob.sealed import release_share
from taciturn.protocol.bob.slots import Questions
from taciturn.protocol.events import Boundary, Progress
from taciturn.protocol.handshake import open_training
from taciturn.protocol.keyrings import OwnKeys, PeerKeys, own_keys, own_slot_keys, peer_keys
from taciturn.protocol.messages import (
    GivenShare,
)
from taciturn.protocol.mutual import (
    Asking,
    Columns,
    Holding,
    Plan,
    Shares,
    Step,
)
from taciturn.protocol.outcome import BobTrained, WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import MutualState, TrainingState
from taciturn.protocol.steps import Program, emit, receive
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

_NO_WEIGHTS = np.empty(0)


def train(inputs: BobInputs[EncryptedMechanism]) -> Program[BobTrained]:
    """Trains Bob's share of all weights; charged only where he reveals Alice's.

    Returns:
        His shares, and no weights; his weights too, one per column, where Alice reveals her share.
    """
    features, terms, entropy = inputs.features, inputs.terms, inputs.entropy
    state, plan, keys = yield from _opened(inputs)
    mutual = _mutual(state)
    batches = terms.plan(state.seed, features.rows)
    scales, ring = plan.scales, plan.alice.ring
    asking = Asking(keys.own, plan.alice)
    holding = Holding(keys.hers, plan.bob) if features.columns else None
    # The residue of a score of zero is half the weight of its class, with the label's sign.
    of_zero = inputs.mechanism.residue(np.zeros(features.rows), inputs.labels.values)

    def rounded(batch: Batch) -> FloatArray:
        taken = features.values.take(batch.rows, axis=0)
        return scales.rounded(taken, entropy.fork(f"rounding {batch.iteration}"))

    def in_step(rows: FloatArray, number: int) -> FloatArray:
        factor = float(scales.decay[number + 1] / scales.decay[-1])
        coins = entropy.fork(f"step intercept {number}")
        return _with_intercept(rows, scales, factor, features.free, coins)

    def in_scores(rows: FloatArray | None, number: int) -> FloatArray | None:
        if rows is None:
            return None
        factor = float(scales.decay[-1] / scales.decay[number])
        coins = entropy.fork(f"score intercept {number}")
        return _with_intercept(rows, scales, factor, features.free, coins)

    shares, rows = Shares(mutual.bob_share, state.share, state.ahead), None
    for batch, following in batches.with_next(state.iteration):
        number = batch.iteration
        kept = replace(mutual, bob_share=shares.own)
        at = state.at(number, state.weights, share=shares.other, ahead=shares.scores)
        yield from emit(Boundary(replace(at, mutual=kept)))
        rows = rounded(batch) if rows is None else rows
        after = None if following is None else rounded(following)
        used, scored = in_step(rows, number), in_scores(after, number + 1)
        halves = of_zero[batch.rows]
        sigmoid = plan.sigmoids.at(number, len(halves))
        waves = yield from keys.waves.offer(entropy.fork(f"waves {number}"))
        questions = Questions(waves, plan.slots, ring, entropy)
        residues = yield from questions.residues(number, sigmoid, shares.scores, halves)
        yield from emit(Progress(number + 1, batches.iterations, batch.rows))
        step = Step(number, ring, asking, holding, used, scored, entropy)
        shares, rows = (yield from step.advance(shares, residues)), after
    if terms.agreement.reveal:
        yield from release_share(inputs, shares.other)
    weights = _NO_WEIGHTS
    if terms.agreement.reveal_bob:
        weights = scales.weights((yield from given_share(shares.own)))
    return BobTrained(
        weights,
        batches.iterations,
        share=WeightShare(shares.other, scales),
        bob_share=WeightShare(shares.own, scales, magnitude_bits=mutual.bob_bits),
    )


@dataclass(frozen=True, slots=True)
class _Keys:
    """Those of the training: his two kinds, and Alice's, which she has where he has columns."""

    own: OwnKeys[SecretKey]
    waves: OwnKeys[SlotSecretKey]
    hers: PeerKeys[PublicKey]

    @classmethod
    def of(cls, terms: Terms, plan: Plan, state: TrainingState) -> _Keys:
        seed, mutual = state.seed, state.mutual
        kept, waves = (b"", b"") if mutual is None else (mutual.alice_key, mutual.waves_key)
        return cls(
            own_keys(terms, plan.alice.ring, key_seed(seed, "bob"), state.key),
            own_slot_keys(terms, plan.slots, key_seed(seed, "waves"), waves),
            peer_keys(terms, plan.bob.ring, key_seed(seed, "alice"), kept),
        )


def _opened(
    inputs: BobInputs[EncryptedMechanism],
) -> Program[tuple[TrainingState, Plan, _Keys]]:
    """The state from which the training goes on, its plan, and the keys."""
    features, terms, state = inputs.features, inputs.terms, inputs.resume
    if state is not None:
        alices = Columns(state.columns, state.magnitude_bits)
        plan = _plan(inputs, alices, _mutual(state).bob_bits)
        return state, plan, _Keys.of(terms, plan, state)
    size = _size(inputs)
    hello = yield from open_training("bob", terms, features, size, inputs.peer)
    plan = _plan(inputs, Columns(hello.columns, hello.magnitude_bits), size)
    state = TrainingState(
        0, _NO_WEIGHTS, columns=hello.columns, magnitude_bits=hello.magnitude_bits
    )
    state = yield from with_seed(inputs, state)
    keys = _Keys.of(terms, plan, state)
    yield from keys.own.open(inputs.entropy)
    yield from keys.waves.open(inputs.entropy)
    if features.columns:
        yield from keys.hers.open()
    first = next(iter(terms.plan(state.seed, features.rows)))
    state = replace(
        state,
        key=keys.own.to_bytes(),
        share=np.zeros(hello.columns, dtype=np.int64),
        ahead=np.zeros(len(first.rows), dtype=np.int64),
        mutual=MutualState(
            keys.hers.to_bytes(),
            size,
            np.zeros(len(features.columns), dtype=np.int64),
            keys.waves.to_bytes(),
        ),
    )
    return state, plan, keys


def _size(inputs: BobInputs[EncryptedMechanism]) -> int:
    """The bits of his largest value, the intercept's own scale included."""
    features = inputs.features
    if not features.columns:
        return 0
    decay = Scales.of_shared_scores(inputs.terms.agreement, features.rows).decay
    free = float(decay[0] / decay[-1]) if features.free else 1.0
    return magnitude_bits(max(features.largest, free))


def _with_intercept(
    rows: FloatArray, scales: Scales, factor: float, free: int, entropy: Entropy
) -> FloatArray:
    """A batch with its intercept, which has no penalty, at a scale of its own.

    Shares hold ``w / c``, and c falls with each step. So that the weight of the intercept does not
    shrink with it, its column is ``c_(i+1) / c_T`` in the step of iteration i, and ``c_T / c_i`` in
    the scores of that iteration, c_T the last: the c of the step goes out, and that of the scores
    comes in, and after the last step all is as with the others.
    """
    if not free or factor == 1.0:
        return rows
    column = scales.rounded(np.full((len(rows), 1), factor), entropy)
    return np.hstack([rows[:, :-1], column])


def _plan(inputs: BobInputs[EncryptedMechanism], alice: Columns, size: int) -> Plan:
    features = inputs.features
    return Plan.of(inputs.terms, features.rows, alice, Columns(len(features.columns), size))


def _mutual(state: TrainingState) -> MutualState:
    if state.mutual is None:
        raise RemoteProtocolError("the state is not that of a training that shares scores")
    return state.mutual


def given_share(share: IntArray) -> Program[IntArray]:
    """His weights in exact integers: Alice's share, which she reveals, and his.

    Raises:
        RemoteProtocolError: Hers has another number of entries.
    """
    theirs = (yield from receive(GivenShare)).share
    if len(theirs) != len(share):
        raise RemoteProtocolError(
            f"the peer's weight share has {len(theirs)} entries, not {len(share)}"
        )
    # 64-bit sums wrap modulo 2^64, of which t is a divisor; the scales reduce them.
    return share + theirs
