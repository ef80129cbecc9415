"""``exact-solve``: the paper's attack. Solve ``X^T r = g``; the sign of ``r_i`` is the label.

Where a batch has full rank the residues are integers on the public grid, and the attack checks that
they satisfy Alice's integer equations to the last bit: a certificate, not an estimate. Rows are
taken from the first batch that determines them; batches that cannot add anything are skipped.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from tacit.attacks.base import LabelGuess
from tacit.attacks.linear import solve
from tacit.view.alice_view import AliceView
from tacit.view.signals import Signal


class ExactSolveAttack:
    """Rank-aware solution of each batch's linear system."""

    name = "exact-solve"
    reference = "[Tan22] Sec. III-C, Eqs. 4 and 5"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def infer(self, view: AliceView) -> LabelGuess:
        """Solves until every row is determined or the epochs run out."""
        rows = view.features.rows
        scores = np.zeros(rows)
        certain = np.zeros(rows, dtype=bool)
        half_step = 2.0 ** -(view.agreement.residue_bits + 1)
        tried = determined = 0
        for _, epoch in groupby(view.observations.gradients, key=lambda seen: seen.epoch):
            open_batches = [seen for seen in epoch if not certain[seen.rows].all()]
            for solved in solve(view, open_batches):
                tried += 1
                determined += solved.exact
                # Less than half a step of the grid is a residue of zero, whose sign says nothing;
                # without the certificate a residue must also stand clear of rounding.
                floor = half_step if solved.exact else max(half_step, solved.rounding)
                sure = solved.determined & (np.abs(solved.residues) > floor)
                scores[solved.seen.rows[sure]] = np.sign(solved.residues[sure])
                certain[solved.seen.rows[sure]] = True
        return LabelGuess(scores, certain, certain, _remark(determined, tried, int(certain.sum())))


def _remark(determined: int, tried: int, rows: int) -> str:
    if determined == tried:
        return f"{determined} of {tried} batches determined"
    if determined:
        return f"{determined} of {tried} batches determined; the others are not determined"
    fixed = f", though they fix {rows} single rows" if rows else ""
    return f"not determined: none of {tried} batches has full rank{fixed}"
