"""Bob's side of a joint prediction from shares of all weights: only he learns the scores.

The chart of messages stands in Alice's file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.batch_seed import key_seed
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.keyrings import OwnKeys, PeerKeys, own_keys, peer_keys
from taciturn.protocol.messages import Hello
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

    ``alices`` is his share of Alice's weights, and ``own`` that of his own. The size that he states
    is at least ``own.magnitude_bits``.
    """
    scales, features = alices.scales, whitened_rows(features, own.whitening)
    size = max(own.magnitude_bits, magnitude_bits(features.largest) if features.columns else 0)
    stated = shared_terms(terms, scales, "predict-mutual")
    hello = yield from shake_hands(greeting("bob", stated, features, size))
    if hello.columns != len(alices.values):
        raise RemoteProtocolError(
            f"the peer's table has {hello.columns} columns, and {len(alices.values)} weights "
            "are shared"
        )
    questions = yield from MutualQuestions.open(alices, own, terms, entropy, size, hello)
    scores, suspected_wraps = np.empty(features.rows), 0
    for number, rows in chunks(features.rows, SEALED_CHUNK_ROWS):
        part = yield from questions.ask(number, features.values[rows])
        scores[rows] = part.scores
        suspected_wraps += part.suspected_wraps
        yield from emit(RowsScored(rows.stop, features.rows))
    return Scored(scores, suspected_wraps)


@dataclass(frozen=True, slots=True)
class MutualQuestions:
    """His side once the keys' seed is agreed on: asks for some rows at a time.

    ``alices`` is his share of Alice's weights, and ``own`` that of his own. ``ring`` is that of
    products with her columns. ``hers`` is Alice's key; None where he has no columns.
    """

    alices: WeightShare
    own: WeightShare
    ring: Wrapping
    his: OwnKeys
    hers: PeerKeys | None
    entropy: Entropy

    @classmethod
    def open(
        cls,
        alices: WeightShare,
        own: WeightShare,
        terms: Terms,
        entropy: Entropy,
        size: int,
        hello: Hello,
    ) -> Program[MutualQuestions]:
        """Agrees on the seed of the keys; no value of his exceeds ``2^size``."""
        scales = alices.scales
        ring = scales.ring(hello.magnitude_bits, len(alices.values))
        seed = yield from agree_seed(entropy)
        his = own_keys(terms, ring, key_seed(seed, "bob"))
        hers: PeerKeys | None = None
        if len(own.values):
            other = scales.ring(size, len(own.values))
            hers = peer_keys(terms, other, key_seed(seed, "alice"))
        return cls(alices, own, ring, his, hers, entropy)

    def ask(self, number: int, values: FloatArray) -> Program[Scored]:
        """The log-odds of these rows, which were not asked for under this number before."""
        scales, ring = self.alices.scales, self.ring
        whole = scales.feature_grid.nearest(values)
        coins = self.entropy.fork(f"scores {number}")
        masks = yield from _answer_masked(self.hers, ring, whole, number, coins)
        question = Question((yield from self.his.offer(coins)), self.alices.values, len(whole))
        theirs = yield from exchange(2 * number + 1, question, None, coins.fork("hers"))
        total = ring.centred(theirs - masks + ring.product(whole, self.own.values))
        scores = scales.scores(total)
        return Scored(scores, scales.suspected(total), scales.doubtful(total))


def _answer_masked(
    keys: PeerKeys | None, ring: Wrapping, whole: FloatArray, number: int, coins: Entropy
) -> Program[IntArray]:
    """Answers for Alice's share of his weights, under his masks; returns the masks."""
    if keys is None:
        return np.zeros(len(whole), dtype=np.int64)
    masks = ring.draw(len(whole), coins.fork("masks"))
    matrix = Matrix((yield from keys.receive()), whole, masks)
    yield from exchange(2 * number, None, matrix, coins.fork("own"))
    return masks
