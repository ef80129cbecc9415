"""Bob's side of newton in which nobody sees a score.

Message chart: ``taciturn.protocol.mutual_table``.
Shared code: ``taciturn.protocol.mutual_training``.

Bob's part is the numbers of waves and segments, under his key, and the labels, which he adds to his
share of the residues.

**What he does never depends on what he decrypts**: a fixed number of passes, the same work in
each, and nothing but uniform numbers to decrypt. With enough rows Alice opens the change of the
loss and a count to him after the last pass; no message of his depends on them.

Bob's half of products number by number. The chart stands in Alice's file of this name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import (
    SlotScheme,
    SlotSecretKey,
)
from taciturn.numerics.likelihood import response_likelihood
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.sealed import release_share
from taciturn.protocol.bob.slot_products import (
    ProductRequester,
    decrypted_sums,
    offer_slot_key,
    turns,
)
from taciturn.protocol.handshake import open_training
from taciturn.protocol.joint_seed import agree_as_bob, key_seed
from taciturn.protocol.keyrings import OwnKeys
from taciturn.protocol.messages import (
    GivenShare,
    LossShares,
    Phases,
    ResidueShares,
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
from taciturn.protocol.mutual_training import SharedTraining, SlotSide, first_state
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.slot_blocks import slot_blocks
from taciturn.protocol.state import TrainingState, mutual_of
from taciturn.protocol.steps import (
    Program,
    receive,
    receive_at,
    require_entries,
    send,
)


@dataclass(frozen=True, slots=True)
class SigmoidRequester(SlotSide[SlotSecretKey]):
    """Bob's questions under his keys."""

    is_alice = False

    def _waves(
        self,
        number: int,
        scores: IntArray,
        halves: FloatArray,
        key: SlotSecretKey,
        slots: SlotScheme,
    ) -> Program[tuple[WordArray, WordArray]]:
        """His shares of the sigmoids times his rows' weights, and of losses, modulo the prime."""
        # Minus: a residue is y - sigma(z).
        factors = -2.0 * np.abs(halves)
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
                message = yield from receive_at(ResidueShares, number)
                sums[answered.rows] = decrypted_sums(key, slots, message.answer, answered)
                if with_loss:
                    of_loss = yield from receive_at(LossShares, number)
                    losses[answered.rows] = decrypted_sums(key, slots, of_loss.answer, answered)
        return sums, losses

    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """His shares of the products, which he decrypts."""
        products = ProductRequester(self.plan.slots, self.key, self.entropy)
        return (yield from products.shared_products(purpose, number, shape, numbers))


_NO_WEIGHTS = np.empty(0)


def train(inputs: BobInputs[EncryptedMechanism]) -> Program[BobTrained]:
    """Trains Bob's share of all weights; charged only where he reveals Alice's.

    The result has his weights too, one per column, where Alice reveals her share.
    """
    features, terms, entropy = inputs.features, inputs.terms, inputs.entropy
    opened = yield from _opened(inputs)
    plan, state = opened.plan, opened.state
    ring, fraction = plan.ring(plan.alice), plan.fraction(raises=False)
    order = plan.row_order(state.seed)
    table, holding = None, None
    if plan.bob.count:
        table = OwnTable.from_features(features, plan, plan.bob, order, inputs.scratch)
        holding = table, plan.peer_keys("alice", state.seed)
    asking = opened.own, plan.alice
    tables = Tables(plan, "bob", asking, holding, inputs.table_memory, entropy)
    questions = SigmoidRequester(plan, opened.waves, opened.narrow, ring, entropy)
    sums = SharedSums(plan.sums, fraction, questions.shared_products)
    # The residue of a score of zero is half the weight of its class, with the label's sign.
    # A linear residue of a score of zero is the label itself.
    likelihood = response_likelihood(inputs.labels, inputs.mechanism.likelihood)
    halves = likelihood(np.zeros(features.rows)).slope
    training = SharedTraining(plan, tables, questions, sums)
    point = yield from training.run(state, halves if order is None else halves[order])
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
    plan: TablePlan
    own: OwnKeys
    waves: SlotSecretKey
    narrow: SlotSecretKey


def _opened(inputs: BobInputs[EncryptedMechanism]) -> Program[_Opened]:
    """Greet Alice, agree on the joint seed and offer his keys; or resume."""
    features, terms = inputs.features, inputs.terms
    if inputs.resume is not None:
        return _resumed(inputs, inputs.resume)
    bits, entropy = terms.agreement.key_bits, inputs.entropy
    size = whitened_bits(features, terms)
    hello = yield from open_training("bob", terms, features, size, inputs.peer)
    alice = Columns(hello.columns, hello.magnitude_bits)
    plan = TablePlan.from_terms(terms, features.rows, alice, Columns(len(features.columns), size))
    seed = yield from agree_as_bob(entropy)
    own = plan.own_keys("bob", seed)
    yield from own.open(entropy)
    waves = yield from offer_slot_key(
        plan.slots, bits, entropy.fork("waves key"), key_seed(seed, "waves")
    )
    narrow = yield from offer_slot_key(
        plan.narrow, bits, entropy.fork("narrow key"), key_seed(seed, "narrow")
    )
    state = TrainingState(0, _NO_WEIGHTS, seed, columns=alice.count, magnitude_bits=alice.bits)
    state = first_state(plan, state, own.to_bytes(), waves.to_bytes(), narrow.to_bytes())
    return _Opened(state, plan, own, waves, narrow)


def _resumed(inputs: BobInputs[EncryptedMechanism], state: TrainingState) -> _Opened:
    terms, features, mutual = inputs.terms, inputs.features, mutual_of(state)
    bits = terms.agreement.key_bits
    alice = Columns(state.columns, state.magnitude_bits)
    bob = Columns(len(features.columns), mutual.bob_bits)
    plan = TablePlan.from_terms(terms, features.rows, alice, bob)
    own = plan.own_keys("bob", state.seed, saved_key=state.key)
    waves = plan.slots.read_secret(mutual.waves_key, bits)
    narrow = plan.narrow.read_secret(mutual.narrow_key, bits)
    return _Opened(state, plan, own, waves, narrow)


def _given_share(share: IntArray) -> Program[IntArray]:
    """His weights in exact integers: Alice's share, which she reveals, and his."""
    theirs = (yield from receive(GivenShare)).share
    require_entries("weight share", len(theirs), len(share))
    # 64-bit sums wrap modulo 2^64, of which t is a divisor; the scales reduce them.
    return share + theirs
