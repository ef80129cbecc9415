"""Bob's side of a joint prediction from shared weights: only he learns the scores.

The chart of messages stands in Alice's file.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import TableSize
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.logistic import row_products
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.bob.partners import Partners
from taciturn.protocol.bob.sealed import Keys, ask_table_scores
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.prediction import Scored, chunks, sealed_terms
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import ONLY, Program, emit
from taciturn.protocol.terms import Terms
from taciturn.protocol.turn import Turn
from taciturn.rng import Entropy


def predict(
    features: FeatureTable,
    weights: FloatArray,
    share: IntArray,
    terms: Terms,
    scales: Scales,
    entropy: Entropy,
    partners: Partners | None = None,
) -> Program[Scored]:
    """The log-odds of every row, and how many may have wrapped.

    ``share`` is his share of Alice's weights, or of all Alices' one after the other.
    """
    partners = partners or Partners.of((ONLY,), (len(share),))
    answers = yield from partners.ask(
        lambda partner: _ask(
            features,
            share[partner.place],
            terms,
            scales,
            partner.coins(entropy),
            reports=not partner.place.start,
        )
    )
    return whole_scores(features.values, weights, answers, scales)


def whole_scores(
    values: FloatArray, weights: FloatArray, answers: Sequence[IntArray], scales: Scales
) -> Scored:
    """Bob's part of the scores of some rows with that of all Alices, whose answers are modulo t."""
    # Modulo t, where the masks of several Alices cancel.
    theirs = scales.ring(1, 1).centred(reduce(operator.add, answers))
    scores = row_products(values, weights) + scales.scores(theirs)
    # Whatever the numbers are, he continues: an end here would tell that they are none.
    return Scored(np.nan_to_num(scores), scales.suspected(theirs), scales.doubtful(theirs))


def _ask(
    features: FeatureTable,
    share: IntArray,
    terms: Terms,
    scales: Scales,
    entropy: Entropy,
    *,
    reports: bool,
) -> Program[IntArray]:
    """One Alice's part of the score of every row, as values modulo t; tells how far it is."""
    hello = yield from shake_hands(greeting("bob", sealed_terms(terms, scales), features))
    if hello.columns != len(share):
        raise RemoteProtocolError(
            f"the peer's table has {hello.columns} columns, and {len(share)} weights are shared"
        )
    ring = scales.ring(hello.magnitude_bits, len(share))
    keys = Keys(terms, ring, (yield from agree_seed(entropy)))
    theirs: IntArray = np.empty(features.rows, dtype=np.int64)
    for number, rows in chunks(features.rows):
        size = TableSize(rows.stop - rows.start, len(share))
        coins = entropy.fork(f"scores {number}")
        theirs[rows] = yield from ask_table_scores(keys, share, size, Turn(number), coins)
        if reports:
            yield from emit(RowsScored(rows.stop, features.rows))
    return theirs
