"""Alice's side of newton in which nobody sees a score.

Message chart: ``taciturn.protocol.mutual_table``.
Shared code: ``taciturn.protocol.mutual_training``.

Alice's part is her tables of the sigmoid and of the carries. With enough rows she opens her shares
of the change of the loss and of a count to Bob after the last pass. Her weights stay shared; with
``reveal`` Bob sends his share of hers, and with ``reveal_bob`` she sends hers of his.

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

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    SlotPublicKey,
    SlotScheme,
)
from taciturn.errors import RemoteProtocolError
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.sealed import revealed_share
from taciturn.protocol.alice.slot_products import ProductResponder, masked
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
from taciturn.protocol.mutual import Columns, Numbers
from taciturn.protocol.mutual_sums import SharedSums
from taciturn.protocol.mutual_table import (
    OwnTable,
    TablePlan,
    Tables,
    revealed_part,
    weight_shares,
    whitened_bits,
)
from taciturn.protocol.mutual_training import NO_LOSSES, SharedTraining, SlotSide, first_state
from taciturn.protocol.observations import ShareRevealed
from taciturn.protocol.outcome import Trained
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.protocol.state import TrainingState, mutual_of
from taciturn.protocol.steps import (
    Program,
    emit,
    receive,
    receive_at,
    require_entries,
    send,
)


@dataclass(frozen=True, slots=True)
class SigmoidResponder(SlotSide[SlotPublicKey]):
    """Alice's answers under Bob's keys."""

    is_alice = True

    def _waves(
        self,
        number: int,
        scores: IntArray,
        halves: FloatArray,
        key: SlotPublicKey,
        slots: SlotScheme,
    ) -> Program[tuple[WordArray, WordArray]]:
        """Her shares of the sigmoids, and of losses: the same ciphertexts times another table."""
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
                phases = (yield from receive_at(Phases, number)).phases
                require_entries("vector", phases.length, block.length)
                for total, part in zip(totals, parts, strict=True):
                    total.add(part, phases)
            answer, shares[block.rows] = masked(totals[0], block, slots, entropy)
            yield from send(ResidueShares(number, answer))
            if loss_unit is not None:
                answer, taken = masked(totals[1], block, slots, of_loss)
                losses.append(taken)
                yield from send(LossShares(number, answer))
        return shares, np.concatenate([*losses, NO_LOSSES])

    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """Her shares of the products, under masks of hers."""
        products = ProductResponder(self.plan.slots, self.key, self.entropy)
        return (yield from products.shared_products(purpose, number, shape, numbers))


_NO_WEIGHTS = np.empty(0)


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's share of all weights; her weights too, where Bob reveals his share."""
    terms, entropy = inputs.terms, inputs.entropy
    opened = yield from _opened(inputs)
    plan, state = opened.plan, opened.state
    ring, fraction = plan.ring(plan.alice), plan.fraction(raises=True)
    order = plan.row_order(state.seed)
    table = OwnTable.from_features(inputs.features, plan, plan.alice, order, inputs.scratch)
    asking = (plan.own_keys("alice", state.seed), plan.bob) if plan.bob.count else None
    holding = table, opened.bobs
    tables = Tables(plan, "alice", asking, holding, inputs.table_memory, entropy)
    answers = SigmoidResponder(plan, opened.waves, opened.narrow, ring, entropy)
    sums = SharedSums(plan.sums, fraction, answers.shared_products)
    training = SharedTraining(plan, tables, answers, sums)
    point = yield from training.run(state, np.zeros(plan.rows))
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
    plan: TablePlan
    bobs: PeerKeys
    waves: SlotPublicKey
    narrow: SlotPublicKey


def _opened(inputs: AliceInputs) -> Program[_Opened]:
    """Greet Bob, agree on the joint seed and receive his keys; or resume."""
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
    seed = yield from agree_as_alice(inputs.entropy)
    bobs = plan.peer_keys("bob", seed)
    yield from bobs.open()
    offer = yield from receive(KeyOffer)
    waves = plan.slots.read_public(offer.public_key, bits, key_seed(seed, "waves"))
    offer = yield from receive(KeyOffer)
    narrow = plan.narrow.read_public(offer.public_key, bits, key_seed(seed, "narrow"))
    state = TrainingState(0, _NO_WEIGHTS, seed, columns=bob.count, magnitude_bits=size)
    state = first_state(plan, state, bobs.to_bytes(), waves.to_bytes(), narrow.to_bytes())
    return _Opened(state, plan, bobs, waves, narrow)


def _resumed(inputs: AliceInputs, state: TrainingState) -> _Opened:
    terms, features, mutual = inputs.terms, inputs.features, mutual_of(state)
    bits = terms.agreement.key_bits
    alice = Columns(len(features.columns), state.magnitude_bits)
    bob = Columns(state.columns, mutual.bob_bits)
    plan = TablePlan.from_terms(terms, features.rows, alice, bob)
    bobs = plan.peer_keys("bob", state.seed, saved_key=state.key)
    waves = plan.slots.read_public(mutual.waves_key, bits)
    narrow = plan.narrow.read_public(mutual.narrow_key, bits)
    return _Opened(state, plan, bobs, waves, narrow)
