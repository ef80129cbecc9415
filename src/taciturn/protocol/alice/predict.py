"""Alice's side of a joint prediction: she sends partial scores and learns nothing."""

from __future__ import annotations

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.messages import PartialScores
from taciturn.protocol.prediction import PREDICTION_TERMS, chunks
from taciturn.protocol.scores import at_scale
from taciturn.protocol.steps import Program, emit, send


def predict(features: FeatureTable, weights: FloatArray, grid: FixedPoint) -> Program[None]:
    """Sends ``X_A w_A`` for every row, chunk by chunk, at its public scale."""
    yield from shake_hands(greeting("alice", PREDICTION_TERMS, features))
    for number, rows in chunks(features.rows):
        yield from send(PartialScores(number, at_scale(features.values[rows] @ weights, grid)))
        yield from emit(RowsScored(rows.stop, features.rows))
