"""Alice's side of a joint prediction from shared weights: only Bob learns the scores.

::

    Alice                                            Bob
      Hello                                    <->   Hello
                                                <-   KeyOffer
      for every so many rows:
                                                <-   SealedWeights       <v>
      SealedScores         <X_A v + X_A u>      ->
"""

from __future__ import annotations

from tacit.arrays import IntArray
from tacit.data.tables import FeatureTable
from tacit.numerics.fixedpoint import magnitude_bits
from tacit.protocol.alice.sealed import Keys, answer_scores
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.prediction import SEALED_CHUNK_ROWS, chunks, sealed_terms
from tacit.protocol.scales import Scales
from tacit.protocol.steps import Program
from tacit.protocol.terms import Terms
from tacit.rng import Entropy


def predict(
    features: FeatureTable, share: IntArray, terms: Terms, scales: Scales, entropy: Entropy
) -> Program[None]:
    """Answers for every row, some at a time.

    Args:
        features: Her columns of the rows to score.
        share: Her share of her weights.
        terms: The agreement of the training.
        scales: Its scales.
        entropy: Her coins.
    """
    size, dither = magnitude_bits(features.largest), terms.agreement.dither or 0.0
    yield from shake_hands(greeting("alice", sealed_terms(terms, scales), features, size))
    keys = Keys(terms, scales.ring(size, len(share)))
    for number, rows in chunks(features.rows, SEALED_CHUNK_ROWS):
        whole = scales.feature_grid.nearest(features.values[rows])
        yield from answer_scores(keys, scales, whole, share, number, entropy, dither)
