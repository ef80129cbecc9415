"""Bob's side of a joint prediction from shares of all weights: only he learns the scores.

The chart of messages stands in Alice's file.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import PublicKey, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.batch_seed import key_seed
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.keyrings import PeerKeys, own_keys, peer_keys
from taciturn.protocol.mutual import Matrix, Question, exchange
from taciturn.protocol.outcome import WeightShare
from taciturn.protocol.prediction import (
    SEALED_CHUNK_ROWS,
    Scored,
    chunks,
    shared_terms,
    whitened_rows,
)
from taciturn.protocol.steps import Program, emit
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def predict(
    features: FeatureTable, alices: WeightShare, own: WeightShare, terms: Terms, entropy: Entropy
) -> Program[Scored]:
    """The log-odds of every row, and how many may have wrapped.

    Args:
        features: His columns of the rows to score.
        alices: His share of Alice's weights.
        own: His share of his own; says the size to state for smaller values too.
        terms: The agreement of the training.
        entropy: His coins.

    Raises:
        RemoteProtocolError: Alice's table has another number of columns than the share.
    """
    scales, share, features = alices.scales, alices.values, whitened_rows(features, own.whitening)
    size = max(own.magnitude_bits, magnitude_bits(features.largest) if features.columns else 0)
    stated = shared_terms(terms, scales, "predict-mutual")
    hello = yield from shake_hands(greeting("bob", stated, features, size))
    if hello.columns != len(share):
        raise RemoteProtocolError(
            f"the peer's table has {hello.columns} columns, and {len(share)} weights are shared"
        )
    ring = scales.ring(hello.magnitude_bits, len(share))
    seed = yield from agree_seed(entropy)
    his = own_keys(terms, ring, key_seed(seed, "bob"))
    hers: PeerKeys[PublicKey] | None = None
    if features.columns:
        other = scales.ring(size, len(features.columns))
        hers = peer_keys(terms, other, key_seed(seed, "alice"))
    scores, suspected_wraps = np.empty(features.rows), 0
    for number, rows in chunks(features.rows, SEALED_CHUNK_ROWS):
        whole = scales.feature_grid.nearest(features.values[rows])
        coins = entropy.fork(f"scores {number}")
        masks = yield from _answer_masked(hers, ring, whole, number, coins)
        question = Question((yield from his.offer(coins)), share, len(whole))
        theirs = yield from exchange(2 * number + 1, question, None, coins.fork("hers"))
        total = ring.centred(theirs - masks + ring.product(whole, own.values))
        suspected_wraps += scales.suspected(total)
        scores[rows] = scales.scores(total, len(scales.decay) - 1)
        yield from emit(RowsScored(rows.stop, features.rows))
    return Scored(scores, suspected_wraps)


def _answer_masked(
    keys: PeerKeys[PublicKey] | None, ring: Wrapping, whole: FloatArray, number: int, coins: Entropy
) -> Program[IntArray]:
    """Alice's share of his weights times his rows, for her alone to read, under his masks.

    Returns:
        The masks; zeros where he has no columns, and she asks for nothing.
    """
    if keys is None:
        return np.zeros(len(whole), dtype=np.int64)
    masks = ring.draw(len(whole), coins.fork("masks"))
    matrix = Matrix((yield from keys.receive()), whole, masks)
    yield from exchange(2 * number, None, matrix, coins.fork("own"))
    return masks
