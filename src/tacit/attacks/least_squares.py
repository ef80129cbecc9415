"""``least-squares``: the minimum-norm solution of each batch, whatever its size.

Where a batch has more rows than Alice has columns the system leaves freedom; the solution of least
norm is the projection of the true residues onto what she can see, and its sign is right more often
than not. A row's estimates are averaged over the epochs, each weighted by how much of the row the
batch shows.
"""

from __future__ import annotations

import numpy as np

from tacit.attacks.base import LabelGuess
from tacit.attacks.linear import solve
from tacit.view.alice_view import AliceView
from tacit.view.signals import Signal

_SEEN_AT_ALL = 1e-12


class LeastSquaresAttack:
    """Minimum-norm least squares over all batches and epochs."""

    name = "least-squares"
    reference = "minimum-norm solution of [Tan22] Eq. 4"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def infer(self, view: AliceView) -> LabelGuess:
        """Averages each row's estimates; it is never certain."""
        rows = view.features.rows
        total, weight = np.zeros(rows), np.zeros(rows)
        for solved in solve(view, view.observations.gradients):
            # E[estimate] = leverage * residue + a share of the others: the sum over epochs divided
            # by the sum of leverages is the weighted mean of estimate / leverage.
            total[solved.seen.rows] += solved.residues
            weight[solved.seen.rows] += solved.leverage
        scores = np.divide(total, weight, out=np.zeros(rows), where=weight > _SEEN_AT_ALL)
        # A residue of less than half a step of the grid is zero, and its estimate only rounding.
        signal = np.abs(scores) > 2.0 ** -(view.agreement.residue_bits + 1)
        return LabelGuess(scores, signal, np.zeros(rows, dtype=bool))
