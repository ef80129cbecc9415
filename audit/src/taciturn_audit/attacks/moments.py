"""``moments``: what sums over all rows, in clear, say about single labels.

In whole-table training under ``none`` Alice sees ``p_k = T^T a_k`` in every pass: d exact integers,
T her whitened table, of centred columns where Bob has an intercept (``group_sums``). The first
vector is Bob's slopes at what he knows alone, ``a_0 = 2^g/n slope_0``, at a public length and
rounded at random: positive for label 1, negative for label 0.

1. *Settled rows.* For any v, ``p_0 . v = sum_i (T v)_i a_0i``. Where ``T v`` is nearly the unit
   vector of a row (a category of one row), or of a few rows, and the others cannot make up for it
   at their largest, the sign of the row is proven (``settled``).
2. *Two values.* Where Bob has no column, or an intercept alone, ``a_0`` takes two values up to
   rounding, and the labels are a subset-sum problem in exact integers (``two_valued``).
3. *The best linear guess* otherwise: the log-odds of her part of the model, plus what ``p_0`` says
   of a row beyond it. With ``H = T (T^T T)^+ T^T`` the least-norm slopes are ``H slope_0``, and
   a row of leverage ``h = H_ii``, 1 or -1, is seen with a variance of ``(1 - h)/h``.

Without a column at Bob all passes are functions of ``T^T y`` and of roundings: the later ones add
nothing to the first. With columns at Bob they add what his scores do to the slopes, and these are
unknown to Alice; of the later ones only the last is used, which is her model. One of several Alices
is in the same place: the first slopes do not depend on the others' columns, all later ones do.

**Certain.** Rows of which 1 is a proof; and those of 2 where the labels fit all equations and
chance cannot explain it, no exchange of two rows fits too, and no row's flip does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.families.binomial import sigmoid
from taciturn.protocol.observations import MomentsSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.group_sums import FirstPass, Settled, Slopes, settle
from taciturn_audit.attacks.two_valued import Solver
from taciturn_audit.views.alice_view import AliceView

# The most that a sum may say of one row, in nats: only a proof is more.
_MOST_EVIDENCE = 30.0
_TINY = 1e-100


@dataclass(frozen=True)
class MomentsAttack(Attack):
    """Isolated rows, then whole tables of few rows, then a linear guess.

    Beyond ``most_rows`` rows no lattice is reduced.
    """

    name = "moments"
    reference = "small groups; [MangasarianRecht11]; [LLL82]; least squares"
    needs = frozenset({Signal.FEATURES, Signal.MOMENTS})

    most_rows: int = 64

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        seen = view.observations.of_kind(MomentsSeen)
        first = FirstPass.from_moments(seen[0], Slopes.from_view(view))
        rows = settle(first)
        progress(1, 3)
        # Where others' columns are in them, later sums follow from no labelling alone.
        passes = len(seen) if view.complete else 1
        solver = Solver(first, self.most_rows, passes)
        labels = solver.solve()
        progress(2, 3)
        scores = _odds(first, seen)
        if labels is not None:
            sign = np.where(labels.values == 1, 1.0, -1.0)
            scores = sign * np.maximum(np.abs(scores), _MOST_EVIDENCE)
        proven = rows.sign != 0
        scores = np.where(proven, rows.sign * (_MOST_EVIDENCE + 1.0), scores)
        certain = proven if labels is None else proven | labels.certain
        progress(3, 3)
        return LabelGuess(
            scores,
            np.ones(len(scores), dtype=bool),
            certain,
            _remark(first, rows, solver),
            limited=solver.limited or rows.limited,
            work=solver.work + rows.work,
        )


def _odds(first: FirstPass, seen: tuple[MomentsSeen, ...]) -> FloatArray:
    """The log-odds of label 1: those of her part of the model, and what the first sum adds.

    Of the least-norm slopes, that which the model expects of them is not counted twice. As many
    rows are guessed to be 1 as her part of the model guesses: no sum says how many are.
    """
    final = next((observed for observed in seen if observed.final), None)
    model = np.zeros(len(first.table))
    if final is not None:
        weights = final.product * 2.0 ** -(final.table_bits + final.vector_bits)
        model = final.table @ weights * 2.0**-final.table_bits
    expected = first.projected(sigmoid(model) - 0.5)
    share = expected @ first.least_norm / max(float(expected @ expected), _TINY)
    width = np.clip(1.0 - first.leverage, 1e-6, 1.0)
    evidence = 2.0 * (first.least_norm - share * expected) / width
    odds = model + np.clip(evidence, -_MOST_EVIDENCE, _MOST_EVIDENCE)
    if final is None:
        return odds
    centred: FloatArray = odds - np.quantile(odds, np.mean(model <= 0))
    return centred


def _remark(first: FirstPass, rows: Settled, solver: Solver) -> str:
    count = int(np.count_nonzero(rows.sign))
    alone = "1 row stands" if count == 1 else f"{count or 'no'} rows stand"
    shape = f"{len(first.table)} rows in {first.rank} independent sums"
    return f"{alone} alone in a sum; {shape}: {solver.remark}"
