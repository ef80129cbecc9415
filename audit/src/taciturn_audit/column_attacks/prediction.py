"""``prediction``: the equation solving attack, from joint predictions with a finished model.

A joint prediction gives Bob one equation for each row, ``x w = z``. With the model's weights, or a
guess at them from rows that he knows, he takes the likeliest row that fulfils it: the solution of
least norm, in units of the columns' covariance. One equation gives one column; of more columns it
gives the part that the score has of them.

[Luo21] has it for a model that both sides know: there ``d`` columns of the passive party follow
from the scores of ``d + 1`` classes, and fewer classes leave the solution of least norm. Here the
model has two classes, and its weights are not told: they are estimated.

Where Bob does not know his own weights either (``mutual``), the scores are whole, and known rows
give estimates of both sides' weights.
"""

from __future__ import annotations

import numpy as np

from taciturn.protocol.bob.observations import BobSignal
from taciturn_audit.column_attacks.base import ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.linear import Prior
from taciturn_audit.column_attacks.scores import LEAST_NOISE
from taciturn_audit.views.bob_view import BobView


class PredictionAttack(ColumnAttack):
    """The likeliest row that scores as it did."""

    name = "prediction"
    reference = "equation solving [Luo21]"
    needs = frozenset({BobSignal.PREDICTIONS})

    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        scores, prior = view.predictions, Prior.of(known, view.columns)
        if scores is None:
            raise ValueError("there is no joint prediction")
        # Weights of least norm that score the known rows as they scored.
        own = view.features.values if view.predicts_whole else np.empty((len(scores), 0))
        inputs = np.column_stack([known.values, own[known.rows]])
        products = inputs @ inputs.T
        ridge = LEAST_NOISE + 1e-9 * float(np.trace(products)) / known.count
        solved = np.linalg.solve(products + ridge * np.eye(known.count), scores[known.rows])
        weights, his = np.split(inputs.T @ solved, [view.columns])
        scores = scores - own @ his
        spread = prior.covariance @ weights
        size = float(weights @ spread) + LEAST_NOISE
        values = prior.mean + np.outer((scores - prior.mean @ weights) / size, spread)
        return ColumnEstimate(values, remark="one equation for each row")
