"""``anchored``: Bob knows the columns of some rows, and reads the others off their scores.

A score is a linear function of a row of hers. Whole-table training scores all rows with the same
weights: known rows give the inverse of that function, by regression, and where there are as many
passes and known rows as columns it is exact. In training by batches the weights move between the
rows; Bob follows them (``motion``).
"""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.protocol.bob.observations import BobSignal
from taciturn_audit.column_attacks.base import ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.linear import ridge, whitened
from taciturn_audit.column_attacks.motion import follow
from taciturn_audit.column_attacks.scores import Batches, table_scores
from taciturn_audit.views.bob_view import BobView


class AnchoredAttack(ColumnAttack):
    """Known rows give the weights, and the weights the other rows."""

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
        batches = Batches.of(view)
        followed = follow(batches, view.features.rows, view.columns, known)
        return ColumnEstimate(followed.values, limited=followed.limited)
