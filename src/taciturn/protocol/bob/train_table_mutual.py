"""Bob's side of newton in which nobody sees a score.

The chart of messages, and what both sides do alike, stand in ``taciturn.protocol.mutual_table``.
Bob's own part is the numbers of waves and segments, under his key, and the labels, which he adds
to his share of the residues.

**What he does never depends on what he decrypts**: a fixed number of passes, the same work in
each, and nothing but uniform numbers to decrypt. With enough rows Alice opens the change of the
loss and a count to him after the last pass; no message of his depends on them.

Bob's half of products number by number. The chart stands in Alice's file of this name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    SlotScheme,
    SlotSecretKey,
    Wrapping,
)
from taciturn.errors import RemoteProtocolError, StateError
from taciturn.numerics.likelihood import response_likelihood
from taciturn.numerics.shared_fraction import Carried, Carry
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.sealed import release_share
from taciturn.protocol.bob.slot_products import (
    ProductRequester,
    decrypted_sums,
    offer_slot_key,
    turns,
)
from taciturn.protocol.events import Boundary, Progress
from taciturn.protocol.handshake import open_training
from taciturn.protocol.joint_seed import agree_as_bob, key_seed
from taciturn.protocol.keyrings import OwnKeys
from taciturn.protocol.messages import (
    GivenShare,
    LossShares,
    Phases,
    ResidueShares,
)
from taciturn.protocol.mutual import Columns, Numbers, ring_words, shares_modulo_power
from taciturn.protocol.mutual_sums import SharedSums
from taciturn.protocol.mutual_table import (
    Anchor,
    OwnTable,
    Point,
    TablePlan,
    Tables,
    revealed_part,
    weight_shares,
    whitened_bits,
)
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.protocol.state import MutualState, TrainingState
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint


@dataclass(frozen=True, slots=True)
class SigmoidRequester:
    """Bob's questions under his keys: one for all numbers, one modulo a small prime."""

    plan: TablePlan
    key: SlotSecretKey
    narrow: SlotSecretKey
    ring: Wrapping
    entropy: Entropy

    def residues(
        self, number: int, scores: IntArray, halves: FloatArray
    ) -> Program[tuple[IntArray, WordArray]]:
        """His share of the rows' residues: what Alice's table makes of his numbers, and the label.

        ``halves`` are the residues of scores of zero: half the weight of a row's class, with the
        label's sign. Where the loss is summed also his shares of the rows' losses, modulo p.
        """
        plan, losses = self.plan, _NONE
        labels = np.rint(halves * plan.sigmoid.step).astype(np.int64)
        if plan.at_zero(number):
            return labels, losses
        if plan.linear:
            scaling = plan.score_scaling(raises=False)
            parts = scaling.parts(ring_words(scores, plan.scales.modulus_bits))
            carries = yield from self.carries("residues", number, scaling.carry, parts)
            return self.ring.centred(labels - scaling.widened(Carried(parts, carries))), losses
        # Minus: a residue is y - sigma(z).
        factors = -2.0 * np.abs(halves)
        if not plan.is_narrow(number):
            sums, losses = yield from self._waves(number, scores, factors, self.key, plan.slots)
            return self.ring.centred(self._whole(sums) + labels), losses
        sums, _ = yield from self._waves(number, scores, factors, self.narrow, plan.narrow)
        widening = plan.widening(raises=False)
        parts = widening.parts(sums)
        carries = yield from self.carries("residues", number, widening.carry, parts)
        return self.ring.centred(widening.widened(Carried(parts, carries)) + labels), losses

    def _waves(
        self,
        number: int,
        scores: IntArray,
        factors: FloatArray,
        key: SlotSecretKey,
        slots: SlotScheme,
    ) -> Program[tuple[WordArray, WordArray]]:
        """His shares of the sigmoids times ``factors``, and of losses, modulo the prime."""
        sigmoid, with_loss = self.plan.sigmoid_in(number), self.plan.sums.sums_loss(number)
        sums = np.empty(len(scores), dtype=np.uint64)
        losses = np.empty(len(scores) if with_loss else 0, dtype=np.uint64)
        for sent, answered in turns(slot_blocks(slots, len(scores), sigmoid.entries)):
            if sent is not None:
                phases = sigmoid.phases(scores[sent.rows], factors[sent.rows])
                entropy = self.entropy.fork(f"waves {number} {sent.rows.start}")
                for at, vector in enumerate(sent.vectors(phases)):
                    encrypted = key.encrypt(vector, entropy.fork(f"{at}"))
                    yield from send(Phases(number, encrypted))
            if answered is not None:
                message = yield from receive(ResidueShares)
                require_turn("ResidueShares", message.iteration, number)
                sums[answered.rows] = decrypted_sums(key, slots, message.answer, answered)
                if with_loss:
                    of_loss = yield from receive(LossShares)
                    require_turn("LossShares", of_loss.iteration, number)
                    losses[answered.rows] = decrypted_sums(key, slots, of_loss.answer, answered)
        return sums, losses

    def carries(
        self, purpose: str, number: int, carry: Carry, parts: IntArray
    ) -> Program[IntArray]:
        """His share of the carries of parts."""
        factors = carry.factors(parts)
        products = yield from self.shared_products(
            purpose, number, factors.shape, lambda rows: factors[rows]
        )
        return carry.completed(self._whole(products), parts)

    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """His shares, modulo the prime, of each row's sum of products of his numbers with Alice's.

        ``shape`` has the rows and the numbers of each. ``purpose`` is one of its kind in a pass.
        """
        products = ProductRequester(self.plan.slots, self.key, self.entropy)
        return (yield from products.shared_products(purpose, number, shape, numbers))

    def _whole(self, sums: WordArray) -> IntArray:
        return shares_modulo_power(sums, self.plan.slots.modulus, self.ring, less=False)


_NO_WEIGHTS = np.empty(0)
_NONE = np.empty(0, dtype=np.uint64)


def train(inputs: BobInputs[EncryptedMechanism]) -> Program[BobTrained]:
    """Trains Bob's share of all weights; charged only where he reveals Alice's.

    The result has his weights too, one per column, where Alice reveals her share.
    """
    features, terms, entropy = inputs.features, inputs.terms, inputs.entropy
    opened = yield from _opened(inputs)
    plan, state, mutual = opened.plan, opened.state, opened.mutual
    ring, fraction, count = plan.ring(plan.alice), plan.fraction(raises=False), plan.alice.count
    schedule, order = plan.schedule, plan.row_order(state.seed)
    table, holding = None, None
    if plan.bob.count:
        table = OwnTable.from_features(features, plan, plan.bob, order, inputs.scratch)
        holding = table, plan.peer_keys("alice", state.seed)
    asking = opened.own, plan.alice
    tables = Tables(plan, asking, holding, inputs.table_memory, entropy)
    questions = SigmoidRequester(plan, opened.waves, opened.narrow, ring, entropy)
    sums = SharedSums(plan.sums, fraction, questions.shared_products)
    # The residue of a score of zero is half the weight of its class, with the label's sign.
    # A linear residue of a score of zero is the label itself.
    likelihood = response_likelihood(inputs.labels, inputs.mechanism.likelihood)
    halves = likelihood(np.zeros(features.rows)).slope
    halves = halves if order is None else halves[order]
    point, anchor = Point.from_state(state, mutual), Anchor.start(schedule, ring)
    try:
        for number in range(schedule.first_step(state.iteration), plan.steps):
            done = schedule.resumes_after(number)
            if done is not None:
                yield from emit(Boundary(point.kept(state, mutual, done)))
            other, own = point.ahead[:count], point.ahead[count:]
            scores = yield from tables.shared_scores(number, own, other)
            residues, even = yield from questions.residues(
                number, scores, halves[schedule.rows_of(number)]
            )
            rows, points = anchor.changes(number, residues, point.ahead)
            his, hers = yield from tables.shared_steps(number, rows, points[count:], points[:count])
            products = np.concatenate([hers, his])
            anchor, products = anchor.following(number, residues, point.ahead, products)
            divided = point.divided(fraction, products)
            carries = yield from questions.carries("weights", number, fraction.carry, divided)
            point = yield from point.summed(number, sums, products, carries, scores, even)
            ahead = schedule.momentum(number)
            point = point.following(fraction, ring, ahead, products, carries)
            if schedule.passes_done(number + 1) > schedule.passes_done(number):
                yield from emit(Progress(schedule.passes_done(number + 1), terms.rounds))
    finally:
        tables.close()
    figures = yield from sums.read_sums(point.sums)
    whitening = None if table is None else table.whitening
    share, own_share = weight_shares(plan, point.weights(fraction, ring), bob=whitening)
    if terms.agreement.reveal:
        yield from release_share(inputs, revealed_part(share.values, plan.scales))
    weights = _NO_WEIGHTS
    if terms.agreement.reveal_bob:
        weights = plan.scales.weights((yield from _given_share(own_share.values)))
        weights = weights if whitening is None else whitening.weights(weights)
    return BobTrained(
        weights,
        terms.rounds,
        share=share,
        bob_share=own_share,
        means=None if whitening is None else whitening.means,
        opened_change=figures.change,
        scores_beyond_range=figures.beyond,
    )


@dataclass(frozen=True, slots=True)
class _Opened:
    """What he has before the first pass."""

    state: TrainingState
    mutual: MutualState
    plan: TablePlan
    own: OwnKeys
    waves: SlotSecretKey
    narrow: SlotSecretKey


def _opened(inputs: BobInputs[EncryptedMechanism]) -> Program[_Opened]:
    features, terms = inputs.features, inputs.terms
    if inputs.resume is not None:
        return _resumed(inputs, inputs.resume)
    bits, entropy = terms.agreement.key_bits, inputs.entropy
    size = whitened_bits(features, terms)
    hello = yield from open_training("bob", terms, features, size, inputs.peer)
    alice = Columns(hello.columns, hello.magnitude_bits)
    plan = TablePlan.from_terms(terms, features.rows, alice, Columns(len(features.columns), size))
    state = TrainingState(0, _NO_WEIGHTS, columns=alice.count, magnitude_bits=alice.bits)
    state = replace(state, seed=(yield from agree_as_bob(inputs.entropy)))
    own = plan.own_keys("bob", state.seed)
    yield from own.open(entropy)
    waves = yield from offer_slot_key(
        plan.slots, bits, entropy.fork("waves key"), key_seed(state.seed, "waves")
    )
    narrow = yield from offer_slot_key(
        plan.narrow, bits, entropy.fork("narrow key"), key_seed(state.seed, "narrow")
    )
    start = Point.start(alice.count + plan.bob.count)
    mutual = MutualState(
        size,
        start.ahead[alice.count :],
        waves.to_bytes(),
        narrow.to_bytes(),
        start.products,
        start.carries,
        start.slope,
        start.sums,
    )
    share = start.ahead[: alice.count]
    state = replace(state, key=own.to_bytes(), share=share, mutual=mutual)
    return _Opened(state, mutual, plan, own, waves, narrow)


def _resumed(inputs: BobInputs[EncryptedMechanism], state: TrainingState) -> _Opened:
    terms, features, mutual = inputs.terms, inputs.features, state.mutual
    if mutual is None:
        raise StateError(
            "the state is not that of a training that shares scores",
            hint=Hint("start over on both sides with {fresh}", fresh=True),
        )
    bits = terms.agreement.key_bits
    alice = Columns(state.columns, state.magnitude_bits)
    bob = Columns(len(features.columns), mutual.bob_bits)
    plan = TablePlan.from_terms(terms, features.rows, alice, bob)
    own = plan.own_keys("bob", state.seed, saved_key=state.key)
    waves = plan.slots.read_secret(mutual.waves_key, bits)
    narrow = plan.narrow.read_secret(mutual.narrow_key, bits)
    return _Opened(state, mutual, plan, own, waves, narrow)


def _given_share(share: IntArray) -> Program[IntArray]:
    """His weights in exact integers: Alice's share, which she reveals, and his."""
    theirs = (yield from receive(GivenShare)).share
    if len(theirs) != len(share):
        raise RemoteProtocolError(
            f"the peer's weight share has {len(theirs)} entries, not {len(share)}"
        )
    # 64-bit sums wrap modulo 2^64, of which t is a divisor; the scales reduce them.
    return share + theirs
