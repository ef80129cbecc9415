"""Alice's side of newton in which nobody sees a score.

The chart of messages, and what both sides do alike, stand in ``taciturn.protocol.mutual_table``.
Alice's own part is her tables of the sigmoid and of the carries. With enough rows she opens her
shares of the change of the loss and of a count to Bob after the last pass. Her weights stay shared;
with ``reveal`` Bob sends his share of hers, and with ``reveal_bob`` she sends hers of his.

Alice's half of products number by number: her numbers times Bob's, summed, under a mask of hers.

::

    Alice                                            Bob
      for each block of rows:
                                                <-   Phases, or Segments      <numbers>, several
      ResidueShares, or CarryShares             ->   the sums are his shares
       <sum of table * numbers + masks>
      LossShares           the same of          ->   (to Phases, where the pass's loss is summed)
       another table
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import (
    SlotPublicKey,
    SlotScheme,
    Wrapping,
)
from taciturn.errors import RemoteProtocolError, StateError
from taciturn.numerics.shared_fraction import Carried, Carry
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.sealed import revealed_share
from taciturn.protocol.alice.slot_products import ProductResponder, masked
from taciturn.protocol.events import Boundary
from taciturn.protocol.handshake import open_training
from taciturn.protocol.joint_seed import agree_as_alice, key_seed
from taciturn.protocol.keyrings import PeerKeys
from taciturn.protocol.messages import (
    GivenShare,
    KeyOffer,
    LossShares,
    Phases,
    ResidueShares,
    ShareNumbers,
)
from taciturn.protocol.mutual import Columns, Numbers, ring_words, shares_modulo_power, sized_vector
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
from taciturn.protocol.observations import ShareRevealed
from taciturn.protocol.outcome import Trained
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.protocol.state import MutualState, TrainingState
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint

_NONE = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class SigmoidResponder:
    """Alice's answers under Bob's keys: one for all numbers, one modulo a small prime."""

    plan: TablePlan
    key: SlotPublicKey
    narrow: SlotPublicKey
    ring: Wrapping
    entropy: Entropy

    def residues(self, number: int, scores: IntArray) -> Program[tuple[IntArray, WordArray]]:
        """Her share of the rows' residues, from her table of the sigmoid.

        Where the loss is summed also her shares of the rows' losses, modulo p: the same ciphertexts
        times another table.
        """
        plan = self.plan
        if plan.at_zero(number):
            return np.zeros(len(scores), dtype=np.int64), _NONE
        if plan.linear:
            scaling = plan.score_scaling(raises=True)
            parts = scaling.parts(ring_words(scores, plan.scales.modulus_bits))
            carries = yield from self.carries("residues", number, scaling.carry, parts)
            return self.ring.centred(-scaling.widened(Carried(parts, carries))), _NONE
        if not plan.is_narrow(number):
            taken, losses = yield from self._waves(number, scores, self.key, plan.slots)
            return self._whole(taken), losses
        taken, losses = yield from self._waves(number, scores, self.narrow, plan.narrow)
        widening = plan.widening(raises=True)
        parts = widening.parts(taken)
        carries = yield from self.carries("residues", number, widening.carry, parts)
        return self.ring.centred(widening.widened(Carried(parts, carries))), losses

    def _waves(
        self, number: int, scores: IntArray, key: SlotPublicKey, slots: SlotScheme
    ) -> Program[tuple[WordArray, WordArray]]:
        """Her shares of the sigmoids, and of losses, modulo the prime."""
        plan, sigmoid = self.plan, self.plan.sigmoid_in(number)
        loss_unit = plan.sums.loss_unit / plan.rows if plan.sums.sums_loss(number) else None
        shares, losses = np.empty(len(scores), dtype=np.uint64), list[WordArray]()
        for block in slot_blocks(slots, len(scores), sigmoid.entries):
            entropy = self.entropy.fork(f"waves {number} {block.rows.start}")
            of_loss = entropy.fork("loss")
            tables = [sigmoid.table(scores[block.rows], entropy.fork("table"))]
            if loss_unit is not None:
                of_table = of_loss.fork("table")
                tables.append(sigmoid.loss_table(scores[block.rows], loss_unit, of_table))
            totals = [key.sum_of(block.length) for _ in tables]
            for parts in zip(*map(block.vectors, tables), strict=True):
                message = yield from receive(Phases)
                require_turn("Phases", message.iteration, number)
                phases = sized_vector(message.phases, block.length)
                for total, part in zip(totals, parts, strict=True):
                    total.add(part, phases)
            answer, shares[block.rows] = masked(totals[0], block, slots, entropy)
            yield from send(ResidueShares(number, answer))
            if loss_unit is not None:
                answer, taken = masked(totals[1], block, slots, of_loss)
                losses.append(taken)
                yield from send(LossShares(number, answer))
        return shares, np.concatenate([*losses, _NONE])

    def carries(
        self, purpose: str, number: int, carry: Carry, parts: IntArray
    ) -> Program[IntArray]:
        """Her share of the carries of parts."""
        factors = carry.factors(parts)
        taken = yield from self.shared_products(
            purpose, number, factors.shape, lambda rows: factors[rows]
        )
        return carry.completed(self._whole(taken), parts)

    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """Her shares, modulo the prime, of each row's sum of products of her numbers with Bob's.

        ``shape`` has the rows and the numbers of each. ``purpose`` is one of its kind in a pass.
        """
        products = ProductResponder(self.plan.slots, self.key, self.entropy)
        return (yield from products.shared_products(purpose, number, shape, numbers))

    def _whole(self, taken: WordArray) -> IntArray:
        return shares_modulo_power(taken, self.plan.slots.modulus, self.ring, less=True)


_NO_WEIGHTS = np.empty(0)


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's share of all weights; her weights too, where Bob reveals his share."""
    terms, entropy = inputs.terms, inputs.entropy
    opened = yield from _opened(inputs)
    plan, state, mutual = opened.plan, opened.state, opened.mutual
    ring, fraction, count = plan.ring(plan.alice), plan.fraction(raises=True), plan.alice.count
    schedule, order = plan.schedule, plan.row_order(state.seed)
    table = OwnTable.from_features(inputs.features, plan, plan.alice, order, inputs.scratch)
    asking = (plan.own_keys("alice", state.seed), plan.bob) if plan.bob.count else None
    tables = Tables(plan, asking, (table, opened.bobs), inputs.table_memory, entropy)
    answers = SigmoidResponder(plan, opened.waves, opened.narrow, ring, entropy)
    sums = SharedSums(plan.sums, fraction, answers.shared_products)
    point, anchor = Point.from_state(state, mutual), Anchor.start(schedule, ring)
    try:
        for number in range(schedule.first_step(state.iteration), plan.steps):
            done = schedule.resumes_after(number)
            if done is not None:
                yield from emit(Boundary(point.kept(state, mutual, done)))
            own, other = point.ahead[:count], point.ahead[count:]
            scores = yield from tables.shared_scores(number, own, other)
            residues, even = yield from answers.residues(number, scores)
            rows, points = anchor.changes(number, residues, point.ahead)
            hers, his = yield from tables.shared_steps(number, rows, points[:count], points[count:])
            products = np.concatenate([hers, his])
            anchor, products = anchor.following(number, residues, point.ahead, products)
            divided = point.divided(fraction, products)
            carries = yield from answers.carries("weights", number, fraction.carry, divided)
            point = yield from point.summed(number, sums, products, carries, scores, even)
            ahead = schedule.momentum(number)
            point = point.following(fraction, ring, ahead, products, carries)
    finally:
        tables.close()
    yield from sums.open_sums(point.sums, entropy.fork("opened"))
    share, bobs_share = weight_shares(plan, point.weights(fraction, ring), alice=table.whitening)
    weights = _NO_WEIGHTS
    if terms.agreement.reveal:
        whole = yield from revealed_share(ring, share.values)
        weights = table.whitening.weights(plan.scales.weights(whole))
        yield from emit(ShareRevealed(terms.rounds, weights))
    if terms.agreement.reveal_bob:
        yield from send(GivenShare(ShareNumbers(revealed_part(bobs_share.values, plan.scales))))
    return Trained(
        weights, terms.rounds, share=share, bob_share=bobs_share, means=table.whitening.means
    )


@dataclass(frozen=True, slots=True)
class _Opened:
    """What she has before the first pass."""

    state: TrainingState
    mutual: MutualState
    plan: TablePlan
    bobs: PeerKeys
    waves: SlotPublicKey
    narrow: SlotPublicKey


def _opened(inputs: AliceInputs) -> Program[_Opened]:
    features, terms = inputs.features, inputs.terms
    if inputs.resume is not None:
        return _resumed(inputs, inputs.resume)
    bits = terms.agreement.key_bits
    size = whitened_bits(features, terms)
    hello = yield from open_training("alice", terms, features, size)
    bob = Columns(hello.columns, hello.magnitude_bits)
    if bob.count < terms.agreement.intercept:
        raise RemoteProtocolError("the peer has no column, and an intercept is agreed on")
    plan = TablePlan.from_terms(terms, features.rows, Columns(len(features.columns), size), bob)
    state = TrainingState(0, _NO_WEIGHTS, columns=bob.count, magnitude_bits=size)
    state = replace(state, seed=(yield from agree_as_alice(inputs.entropy)))
    bobs = plan.peer_keys("bob", state.seed)
    yield from bobs.open()
    offer = yield from receive(KeyOffer)
    waves = plan.slots.read_public(offer.public_key, bits, key_seed(state.seed, "waves"))
    offer = yield from receive(KeyOffer)
    narrow = plan.narrow.read_public(offer.public_key, bits, key_seed(state.seed, "narrow"))
    start = Point.start(plan.alice.count + bob.count)
    mutual = MutualState(
        bob.bits,
        start.ahead[plan.alice.count :],
        waves.to_bytes(),
        narrow.to_bytes(),
        start.products,
        start.carries,
        start.slope,
        start.sums,
    )
    share = start.ahead[: plan.alice.count]
    state = replace(state, key=bobs.to_bytes(), share=share, mutual=mutual)
    return _Opened(state, mutual, plan, bobs, waves, narrow)


def _resumed(inputs: AliceInputs, state: TrainingState) -> _Opened:
    terms, features, mutual = inputs.terms, inputs.features, state.mutual
    if mutual is None:
        raise StateError(
            "the state is not that of a training that shares scores",
            hint=Hint("start over on both sides with {fresh}", fresh=True),
        )
    bits = terms.agreement.key_bits
    alice = Columns(len(features.columns), state.magnitude_bits)
    plan = TablePlan.from_terms(
        terms, features.rows, alice, Columns(state.columns, mutual.bob_bits)
    )
    bobs = plan.peer_keys("bob", state.seed, saved_key=state.key)
    waves = plan.slots.read_public(mutual.waves_key, bits)
    narrow = plan.narrow.read_public(mutual.narrow_key, bits)
    return _Opened(state, mutual, plan, bobs, waves, narrow)
