"""Bob's side of a joint prediction: only he learns the scores."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.prediction import PREDICTION_TERMS, chunks
from taciturn.protocol.scores import receive_scores
from taciturn.protocol.steps import Program, emit


def predict(features: FeatureTable, weights: FloatArray) -> Program[FloatArray]:
    """Adds Alice's partial scores to Bob's: the log-odds of every row."""
    yield from shake_hands(greeting("bob", PREDICTION_TERMS, features))
    scores = np.empty(features.rows)
    for number, rows in chunks(features.rows):
        own = features.values[rows] @ weights
        scores[rows] = (yield from receive_scores(number, len(own))) + own
        yield from emit(RowsScored(rows.stop, features.rows))
    return scores
