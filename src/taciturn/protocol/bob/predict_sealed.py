"""Bob's side of a joint prediction from shared weights: only he learns the scores.

The chart of messages stands in Alice's file.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import TableSize
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.bob.sealed import Keys, ask_scores, ask_table_scores
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.prediction import Scored, chunks, sealed_chunk, sealed_terms
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, emit
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
) -> Program[Scored]:
    """The log-odds of every row, and how many may have wrapped.

    Args:
        features: His columns of the rows to score.
        weights: His own weights.
        share: His share of Alice's.
        terms: The agreement of the training.
        scales: Its scales.
        entropy: His coins.

    Raises:
        RemoteProtocolError: Alice's table has another number of columns than the share.
    """
    hello = yield from shake_hands(greeting("bob", sealed_terms(terms, scales), features))
    if hello.columns != len(share):
        raise RemoteProtocolError(
            f"the peer's table has {hello.columns} columns, and {len(share)} weights are shared"
        )
    ring = scales.ring(hello.magnitude_bits, len(share))
    keys = Keys(terms, ring, (yield from agree_seed(entropy)))
    scores = features.values @ weights
    last, suspected_wraps = len(scales.decay) - 1, 0
    for number, rows in chunks(features.rows, sealed_chunk(terms.scheme)):
        count = rows.stop - rows.start
        if terms.scheme.whole_tables:
            size, coins = TableSize(count, len(share)), entropy.fork(f"scores {number}")
            theirs = yield from ask_table_scores(keys, share, size, Turn(number), coins)
        else:
            theirs = yield from ask_scores(keys, share, count, number, entropy)
        suspected_wraps += scales.suspected(theirs)
        scores[rows] += scales.scores(theirs, last)
        yield from emit(RowsScored(rows.stop, features.rows))
    # Whatever the numbers are, he continues: an end here would tell that they are none.
    return Scored(np.nan_to_num(scores), suspected_wraps)
