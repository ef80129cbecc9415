"""Alice's side of a joint prediction from shared weights: only Bob learns the scores.

::

    Alice                                            Bob
      Hello                                    <->   Hello
                                                <-   KeyOffer
      for each chunk of rows:
                                                <-   SealedWeights       <v>
      SealedScores         <X_A v + X_A u>      ->
"""

from __future__ import annotations

from taciturn.arrays import IntArray
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.sealed import Keys, answer_scores
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.prediction import SEALED_CHUNK_ROWS, chunks, sealed_terms
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, emit
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def predict(
    features: FeatureTable,
    share: IntArray,
    terms: Terms,
    scales: Scales,
    entropy: Entropy,
    least_bits: int = 0,
) -> Program[None]:
    """Answers for every row, some at a time.

    Args:
        features: Her columns of the rows to score.
        share: Her share of her weights.
        terms: The agreement of the training.
        scales: Its scales.
        entropy: Her coins.
        least_bits: The size to state for smaller values too. Bob hears the size of the largest
            value; the training's, which he knows, tells him nothing of a few rows.
    """
    size = max(least_bits, magnitude_bits(features.largest))
    dither = terms.agreement.dither or 0.0
    yield from shake_hands(greeting("alice", sealed_terms(terms, scales), features, size))
    keys = Keys(terms, scales.ring(size, len(share)))
    for number, rows in chunks(features.rows, SEALED_CHUNK_ROWS):
        whole = scales.feature_grid.nearest(features.values[rows])
        yield from answer_scores(keys, scales, whole, share, number, entropy, dither)
        yield from emit(RowsScored(rows.stop, features.rows))
