"""``gram``: her rows up to a rotation, from what his own steps did to the scores.

Her weights are ``X^T a`` with numbers ``a``, one for each row, that Bob chose: directions in
whole-table training, residues in training by batches. So every score is a product with the Gram
matrix ``X X^T``, and scores of as many different weights as she has columns determine it: her rows
up to a rotation, without a single known row. Known rows then fix the rotation, by regression.

In whole-table training it is the Gram matrix of whitened columns, of which the scores' principal
components are a factor: there the rows are known up to a linear map. In training by batches the
weights are followed (``motion``), beginning with the components of the scores.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.protocol.bob.observations import BobSignal
from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.linear import ridge, whitened
from taciturn_audit.column_attacks.motion import follow
from taciturn_audit.column_attacks.scores import Batches, Visits, table_scores
from taciturn_audit.views.bob_view import BobView


class GramAttack(ColumnAttack):
    """A factor of the Gram matrix; known rows turn it."""

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
    """Her rows in a basis of their own, and whether a limit on work was in the way.

    It does not depend on the known rows, so it is computed once for a view.
    """
    if view.directions:
        return whitened(table_scores(view), view.columns), False
    rows, columns = view.features.rows, view.columns
    batches = Batches.of(view)
    visits = Visits.of(batches, rows)
    components = whitened(np.where(visits.there, visits.scores, 0.0), columns)
    start = np.zeros((rows, columns))
    start[:, : components.shape[1]] = components
    followed = follow(batches, rows, columns, KnownRows.none(columns), start)
    return followed.values, followed.limited
