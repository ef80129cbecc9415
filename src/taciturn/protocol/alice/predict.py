"""Alice's side of a joint prediction: she sends partial scores and learns nothing."""

from __future__ import annotations

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import row_products
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.circle import NO_MASKS, ZeroSum
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.prediction import PREDICTION_TERMS, chunks
from taciturn.protocol.scores import scores_message
from taciturn.protocol.steps import Program, emit, send


def predict(
    features: FeatureTable,
    weights: FloatArray,
    noise_key: bytes,
    grid: FixedPoint,
    masks: ZeroSum = NO_MASKS,
) -> Program[None]:
    """Sends ``X_A w_A`` and noise for every row, chunk by chunk, at its public scale.

    ``masks`` are those of one of several Alices, for this prediction alone.
    """
    yield from shake_hands(greeting("alice", PREDICTION_TERMS, features))
    noise = ScoreNoise(noise_key, weights)
    for number, rows in chunks(features.rows):
        values, ids = features.values[rows], features.ids.series[rows].to_list()
        scores = row_products(values, weights) + noise.reals(ids, values, grid)
        yield from send(scores_message(number, scores, grid, masks.fork(str(number))))
        yield from emit(RowsScored(rows.stop, features.rows))
