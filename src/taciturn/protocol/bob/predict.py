"""Bob's side of a joint prediction: only he learns the scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import row_products
from taciturn.protocol.bob.partners import receive_all_scores
from taciturn.protocol.events import RowsScored
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.prediction import PREDICTION_TERMS, chunks
from taciturn.protocol.steps import ONLY, Program, emit
from taciturn.protocol.together import together

# Of one Alice's scores, which travel as they are.
_UNMASKED = FixedPoint(0)


def predict(
    features: FeatureTable,
    weights: FloatArray,
    names: Sequence[str] = (ONLY,),
    grid: FixedPoint = _UNMASKED,
) -> Program[FloatArray]:
    """Adds Alice's partial scores to Bob's: the log-odds of every row.

    ``grid`` is the scale of several Alices' scores, which come under masks.
    """
    ours = greeting("bob", PREDICTION_TERMS, features)
    yield from together({name: shake_hands(ours) for name in names})
    scores = np.empty(features.rows)
    for number, rows in chunks(features.rows):
        own = row_products(features.values[rows], weights)
        scores[rows] = (yield from receive_all_scores(names, number, len(own), grid)) + own
        yield from emit(RowsScored(rows.stop, features.rows))
    return scores
