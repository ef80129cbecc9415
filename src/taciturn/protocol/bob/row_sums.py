"""Bob's part of sums over rows of a function of each row's score.

The chart stands in ``taciturn.protocol.row_sums``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taciturn.arrays import IntArray
from taciturn.data.tables import FeatureTable
from taciturn.numerics.bounded_waves import RowFunctions
from taciturn.privacy.base import Mechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.scoring_mutual import MutualRequester
from taciturn.protocol.bob.slot_products import ProductRequester, offer_slot_key
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.joint_seed import agree_as_bob, key_seed
from taciturn.protocol.messages import OpenedSums
from taciturn.protocol.outcome import BobTrained, WeightShare
from taciturn.protocol.prediction import chunks
from taciturn.protocol.row_sums import OpenedLoss, RowSumPlan, modular_sum, opened_losses
from taciturn.protocol.steps import ONLY, Program, emit, receive
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def shared_sum(
    plan: RowSumPlan,
    alices: WeightShare,
    own: WeightShare,
    terms: Terms,
    features: FeatureTable,
    functions: RowFunctions,
    entropy: Entropy,
) -> Program[int]:
    """Return his share of the sum of each row's function, modulo the slots' prime.

    ``alices`` is his share of Alice's weights and ``own`` that of his.
    """
    requester = MutualRequester(alices, own, terms, entropy, single_use=True)
    table = requester.whitened(features)
    size = requester.size_of(table)
    hello = yield from shake_hands(greeting("bob", plan.stated(), table, size))
    yield from requester.open({ONLY: hello}, size)
    scores = np.rint(-functions.shifts / alices.scales.score_unit).astype(np.int64)
    for number, rows in chunks(table.rows, requester.chunk_rows):
        scores[rows] += yield from requester.shares(number, table.values[rows])
        yield from emit(RowsScored(rows.stop, table.rows))
    scores = alices.scales.ring(1, 1).centred(scores)
    waves = entropy.fork("waves")
    seed = yield from agree_as_bob(waves)
    bits = terms.agreement.key_bits
    key = yield from offer_slot_key(plan.slots, bits, waves.fork("key"), key_seed(seed, "waves"))
    numbers = plan.numbers

    def of_rows(rows: slice) -> IntArray:
        return numbers.numbers(scores[rows], *functions.coefficients(rows))

    products = ProductRequester(plan.slots, key, waves)
    shape = table.rows, numbers.entries
    shares = yield from products.shared_products("sum", 0, shape, of_rows)
    # The means of the functions are his to add: they take no exchange.
    constant = round(functions.constant * numbers.unit)
    return (modular_sum(shares, plan.slots.modulus) + constant) % plan.slots.modulus


def read_sums(plan: RowSumPlan, shares: Sequence[int]) -> Program[tuple[OpenedLoss, ...]]:
    """Read the sums that Alice opens; ``shares`` are his."""
    given = (yield from receive(OpenedSums)).shares
    return opened_losses(plan, shares, given)


def loss_share(inputs: BobInputs[Mechanism], trained: BobTrained) -> Program[int | None]:
    """His share of the sum of the held-out rows' losses; None where they judge nothing."""
    terms, held_out = inputs.terms, inputs.held_out
    summed, share, own = terms.summed, trained.share, trained.bob_share
    if summed is None or not summed.held_out or held_out is None or share is None or own is None:
        return None
    plan = RowSumPlan.from_terms(terms, summed.rows)
    functions = RowFunctions.from_losses(plan.waves, held_out.labels, terms.log_odds_shift)
    entropy = inputs.entropy.fork("sum of losses")
    return (yield from shared_sum(plan, share, own, terms, held_out.features, functions, entropy))
