"""Bob's side of a joint prediction: only he learns the scores."""

from __future__ import annotations

import numpy as np

from tacit.arrays import FloatArray
from tacit.data.tables import FeatureTable
from tacit.errors import RemoteProtocolError
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import PartialScores
from tacit.protocol.prediction import PREDICTION_TERMS, chunks
from tacit.protocol.steps import Program, receive, require_turn


def predict(features: FeatureTable, weights: FloatArray) -> Program[FloatArray]:
    """Adds Alice's partial scores to Bob's: the log-odds of every row."""
    yield from shake_hands(greeting("bob", PREDICTION_TERMS, features))
    scores = np.empty(features.rows)
    for number, rows in chunks(features.rows):
        message = yield from receive(PartialScores)
        require_turn("PartialScores", message.iteration, number)
        mine = features.values[rows] @ weights
        if len(message.scores) != len(mine):
            raise RemoteProtocolError(
                f"the peer scored {len(message.scores)} rows of a chunk of {len(mine)}"
            )
        scores[rows] = message.scores + mine
    return scores
