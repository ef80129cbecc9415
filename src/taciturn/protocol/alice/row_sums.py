"""Alice's part of sums over rows of a function of each row's score.

The chart stands in ``taciturn.protocol.row_sums``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taciturn.arrays import IntArray
from taciturn.data.tables import FeatureTable
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.scoring_mutual import MutualResponder
from taciturn.protocol.alice.slot_products import ProductResponder
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.joint_seed import agree_as_alice, key_seed
from taciturn.protocol.messages import KeyOffer, OpenedSums, ShareNumbers
from taciturn.protocol.outcome import Trained, WeightShare
from taciturn.protocol.prediction import chunks
from taciturn.protocol.row_sums import RowSumPlan, modular_sum, noisy_shares
from taciturn.protocol.steps import Program, emit, receive, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def shared_sum(
    plan: RowSumPlan,
    share: WeightShare,
    bobs: WeightShare,
    terms: Terms,
    features: FeatureTable,
    entropy: Entropy,
) -> Program[int]:
    """Return her share of the sum over some rows, modulo the slots' prime; nothing is opened.

    ``share`` is hers of her own weights and ``bobs`` hers of Bob's.
    """
    responder = MutualResponder(share, bobs, b"", terms, entropy, single_use=True)
    table = responder.whitened(features)
    size = responder.size_of(table)
    hello = yield from shake_hands(greeting("alice", plan.stated(), table, size))
    yield from responder.open(hello, size)
    scores = np.empty(table.rows, dtype=np.int64)
    for number, rows in chunks(table.rows, responder.chunk_rows):
        scores[rows] = yield from responder.shares(number, table.values[rows])
        yield from emit(RowsScored(rows.stop, table.rows))
    waves = entropy.fork("waves")
    seed = yield from agree_as_alice(waves)
    offer = yield from receive(KeyOffer)
    bits = terms.agreement.key_bits
    key = plan.slots.read_public(offer.public_key, bits, key_seed(seed, "waves"))
    numbers = plan.numbers
    products = ProductResponder(plan.slots, key, waves)
    shares = yield from products.shared_products(
        "sum", 0, (table.rows, numbers.entries), lambda rows: numbers.table(scores[rows])
    )
    return modular_sum(shares, plan.slots.modulus)


def open_sums(plan: RowSumPlan, shares: Sequence[int], entropy: Entropy) -> Program[None]:
    """Open several sums to Bob, with noise; ``entropy`` serves these sums alone."""
    noisy: IntArray = noisy_shares(plan, shares, entropy)
    yield from send(OpenedSums(ShareNumbers(noisy)))


def loss_share(inputs: AliceInputs, trained: Trained) -> Program[int | None]:
    """Her share of the sum of the held-out rows' losses; None where they judge nothing."""
    terms, held_out = inputs.terms, inputs.held_out
    summed, share, bobs = terms.summed, trained.share, trained.bob_share
    if summed is None or not summed.held_out or held_out is None or share is None or bobs is None:
        return None
    plan = RowSumPlan.from_terms(terms, summed.rows)
    entropy = inputs.entropy.fork("sum of losses")
    return (yield from shared_sum(plan, share, bobs, terms, held_out, entropy))
