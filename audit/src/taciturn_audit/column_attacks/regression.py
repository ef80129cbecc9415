"""``anchored``, ``gram`` and ``prediction``: known rows give the weights, and these the other rows.

A score is a linear function of a row of hers. Whole-table training scores all rows with the same
weights. In training by batches the weights move between the rows; Bob follows them (``motion``).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import counted
from taciturn.protocol.bob.observations import BobSignal
from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.motion import follow
from taciturn_audit.column_attacks.scores import (
    LEAST_NOISE,
    Batches,
    Prior,
    Visits,
    ridge,
    table_scores,
    whitened,
)
from taciturn_audit.views.bob_view import BobView


class AnchoredAttack(ColumnAttack):
    """Known rows give the inverse of the scores' linear function, by regression.

    In whole-table training it is exact where there are as many passes and known rows as columns.
    """

    name = "anchored"
    reference = "linear measurements with known rows"
    needs = frozenset({BobSignal.BATCH_SCORES, BobSignal.TABLE_SCORES})

    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        if view.directions:
            components = whitened(table_scores(view), view.columns)
            seen = counted(components.shape[1], "independent score")
            return ColumnEstimate(
                ridge(components, known, view.columns), remark=f"{seen} of each row"
            )
        batches = Batches.from_view(view)
        followed = follow(batches, view.features.rows, view.columns, known)
        return ColumnEstimate(followed.values, limited=followed.limited)


class GramAttack(ColumnAttack):
    """Alice's rows up to a rotation, from the effect of Bob's steps on the scores.

    Her weights are ``X^T a`` with numbers ``a``, one for each row, that Bob chose: directions in
    whole-table training, residues in training by batches. So every score is a product with the Gram
    matrix ``X X^T``, and scores of as many different weights as she has columns determine it: her
    rows up to a rotation, without a single known row. Known rows then fix the rotation, by
    regression.

    In whole-table training it is the Gram matrix of whitened columns, of which the scores'
    principal components are a factor: there the rows are known up to a linear map. In training by
    batches the weights are followed, beginning with the components of the scores.
    """

    name = "gram"
    reference = "factor of the Gram matrix"
    needs = frozenset({BobSignal.BATCH_SCORES, BobSignal.TABLE_SCORES})
    works_without = True

    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        factor, limited = _factor(view)
        if not known.count:
            remark = "up to a linear map, which the judge fits on every second row"
            return ColumnEstimate(
                factor, ambiguity=Ambiguity.LINEAR, remark=remark, limited=limited
            )
        # Followed weights leave errors in the factor: there is more to it than its size.
        columns = view.columns if view.directions else known.count + 1
        return ColumnEstimate(ridge(factor, known, columns), limited=limited)


@lru_cache(maxsize=1)
def _factor(view: BobView) -> tuple[FloatArray, bool]:
    """Alice's rows in some basis, and whether a limit on work made the estimate coarser.

    It does not depend on the known rows, so it is computed once for a view.
    """
    if view.directions:
        return whitened(table_scores(view), view.columns), False
    rows, columns = view.features.rows, view.columns
    batches = Batches.from_view(view)
    visits = Visits.from_batches(batches, rows)
    components = whitened(np.where(visits.there, visits.scores, 0.0), columns)
    start = np.zeros((rows, columns))
    start[:, : components.shape[1]] = components
    followed = follow(batches, rows, columns, KnownRows.none(columns), start)
    return followed.values, followed.limited


class PredictionAttack(ColumnAttack):
    """Equation solving, from joint predictions with a finished model.

    A joint prediction gives Bob one equation for each row, ``x w = z``. With the model's weights,
    or a guess at them from rows that he knows, he takes the likeliest row that fulfils it: the
    solution of least norm, in units of the columns' covariance. One equation gives one column; of
    more columns it gives the part that the score has of them.

    [Luo21] has it for a model that both sides know: there ``d`` columns of the passive party follow
    from the scores of ``d + 1`` classes, and fewer classes leave the solution of least norm. Here
    the model has two classes, and its weights are not told: they are estimated. Where Bob does not
    know his own weights either (``mutual``), the scores are whole, and known rows give estimates of
    both sides' weights.
    """

    name = "prediction"
    reference = "equation solving [Luo21]"
    needs = frozenset({BobSignal.PREDICTIONS})

    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        scores, prior = view.predictions, Prior.from_known_rows(known, view.columns)
        if scores is None:
            raise ValueError("there is no joint prediction")
        # Weights of least norm that score the known rows as they scored.
        bob_columns = view.features.values if view.predicts_whole else np.empty((len(scores), 0))
        inputs = np.column_stack([known.values, bob_columns[known.rows]])
        products = inputs @ inputs.T
        ridge = LEAST_NOISE + 1e-9 * float(np.trace(products)) / known.count
        solved = np.linalg.solve(products + ridge * np.eye(known.count), scores[known.rows])
        weights, bob_weights = np.split(inputs.T @ solved, [view.columns])
        scores = scores - bob_columns @ bob_weights
        spread = prior.covariance @ weights
        size = float(weights @ spread) + LEAST_NOISE
        values = prior.mean + np.outer((scores - prior.mean @ weights) / size, spread)
        return ColumnEstimate(values, remark="one equation for each row")
