"""``exact-solve``: the paper's attack. Solve ``X^T r = g``; the sign of ``r_i`` is the label.

Where a batch is numerically of full rank the residues are integers on the public grid, and the
attack checks that they satisfy Alice's integer equations to the last bit: a certificate, not an
estimate. Without it a row is called certain only where its residue stands clear of rounding and of
whatever the other rows may have mixed in.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import gradients, residue_step, solve
from taciturn_audit.views.alice_view import AliceView


class ExactSolveAttack(Attack):
    """Rank-aware solution of each batch's linear system."""

    name = "exact-solve"
    reference = "[Tan22] Sec. III-C, Eqs. 3 and 4"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        rows = view.features.rows
        scores = np.zeros(rows)
        certain = np.zeros(rows, dtype=bool)
        # Less than half a step of the grid is a residue of zero, whose sign says nothing.
        half_step = residue_step(view) / 2
        tried = full = certified = 0
        for _, epoch in groupby(gradients(view), key=lambda seen: seen.epoch):
            open_batches = [seen for seen in epoch if not certain[seen.rows].all()]
            for solved in solve(view, open_batches):
                tried += 1
                full += solved.full_rank
                certified += solved.exact
                doubt = 0.0 if solved.exact else solved.rounding + solved.mixing
                clear = np.abs(solved.residues) > np.maximum(half_step, doubt)
                sure = solved.determined & clear & ~certain[solved.seen.rows]
                scores[solved.seen.rows[sure]] = np.sign(solved.residues[sure])
                certain[solved.seen.rows[sure]] = True
        remark = _remark(tried, full, certified, int(certain.sum()))
        return LabelGuess(scores, certain, certain, remark)


def _remark(tried: int, full: int, certified: int, rows: int) -> str:
    if not full:
        fixed = f", though they fix {rows} single rows" if rows else ""
        return f"not determined: none of {tried} batches has full rank{fixed}"
    others = "; the others are not determined" if full < tried else ""
    doubtful = f"; {full - certified} not certified to the last bit" if certified < full else ""
    return f"{full} of {tried} batches determined{others}{doubtful}"
