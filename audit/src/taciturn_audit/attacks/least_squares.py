"""``least-squares``: the minimum-norm solution of each batch, whatever its size.

Where a batch has more rows than Alice has columns the system leaves freedom; the solution of least
norm is the projection of the true residues onto what she can see, and its sign is right more often
than not. A row's estimates are summed over the epochs. An estimate is ``leverage * residue`` plus a
share of the other rows, so that the sum ranks first the rows she sees best; dividing by the
leverage would rank first those she sees least.
"""

from __future__ import annotations

import numpy as np

from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import gradients, residue_step, solve
from taciturn_audit.views.alice_view import AliceView

_SEEN_AT_ALL = 1e-12


class LeastSquaresAttack(Attack):
    """Minimum-norm least squares over all batches and epochs."""

    name = "least-squares"
    reference = "minimum-norm solution of [Tan22] Eq. 3"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        rows = view.features.rows
        total, weight = np.zeros(rows), np.zeros(rows)
        for solved in solve(view, gradients(view)):
            total[solved.seen.rows] += solved.residues
            weight[solved.seen.rows] += solved.leverage
        # A residue of less than half a step of the grid is zero, and its estimate only rounding:
        # the ratio is the estimate at the scale of a residue, however little of it was seen.
        residues = np.divide(total, weight, out=np.zeros(rows), where=weight > _SEEN_AT_ALL)
        signal = np.abs(residues) > residue_step(view) / 2
        return LabelGuess(total, signal, np.zeros(rows, dtype=bool))
