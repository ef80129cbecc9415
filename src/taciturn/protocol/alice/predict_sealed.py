"""Alice's side of a joint prediction from shared weights: only Bob learns the scores.

::

    Alice                                            Bob
      Hello                                    <->   Hello
      the joint seed, of the key's uniform half
                                                <-   KeyOffer
      for each chunk of rows:
                                                <-   SealedWeights       <v>
      SealedScores         <X_A v + X_A u + e>  ->   e: the noise (``score_noise``)
"""

from __future__ import annotations

from taciturn.arrays import IntArray
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.batch_seed import agree_seed
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.sealed import Keys, answer_table_scores
from taciturn.protocol.circle import NO_MASKS, ZeroSum
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.prediction import CHUNK_ROWS, chunks, sealed_terms
from taciturn.protocol.prepared import Prepared
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, emit
from taciturn.protocol.terms import Terms
from taciturn.protocol.turn import Turn
from taciturn.rng import Entropy


def predict(
    features: FeatureTable,
    share: IntArray,
    terms: Terms,
    scales: Scales,
    noise_key: bytes,
    entropy: Entropy,
    least_bits: int = 0,
    masks: ZeroSum = NO_MASKS,
) -> Program[None]:
    """Answers for every row, some at a time.

    ``least_bits`` is the size to state for smaller values too. Bob hears the size of the largest
    value; the training's, which he knows, tells him nothing of a few rows. ``masks`` are those of
    one of several Alices, for this prediction alone.
    """
    size = max(least_bits, magnitude_bits(features.largest))
    yield from shake_hands(greeting("alice", sealed_terms(terms, scales), features, size))
    keys = Keys(terms, scales.ring(size, len(share)), (yield from agree_seed(entropy)))
    _require_hidden(terms, keys.ring, features)
    noise, unit = ScoreNoise(noise_key, share), scales.score_unit
    for number, rows in chunks(features.rows):
        values, hidden = features.values[rows], masks.fork(str(number))
        whole = scales.feature_grid.rounded(values)
        drawn = noise.draw(features.ids.series[rows].to_list(), whole, unit)
        coins = entropy.fork(f"scores {number}")
        yield from _answer_table(keys, whole, share, number, coins, hidden, drawn)
        yield from emit(RowsScored(rows.stop, features.rows))


def _require_hidden(terms: Terms, ring: Wrapping, features: FeatureTable) -> None:
    """Refuses rows of which the answers would tell more than their scores."""
    size = TableSize(min(CHUNK_ROWS, features.rows), len(features.columns))
    terms.scheme.check_tables(ring, size, -(-features.rows // CHUNK_ROWS))


def _answer_table(
    keys: Keys,
    whole: IntArray,
    share: IntArray,
    number: int,
    coins: Entropy,
    masks: ZeroSum,
    noise: IntArray,
) -> Program[None]:
    # One product is all that a piece is for: nothing of it is kept.
    prepared = Prepared(whole, memory=0)
    try:
        yield from answer_table_scores(keys, prepared, share, Turn(number), coins, masks, noise)
    finally:
        prepared.close()
