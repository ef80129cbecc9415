"""``values``: counts, amounts and numbers from the first sums of whole-table training in clear.

Under ``none`` Alice sees ``T^T a`` of Bob's slopes at what he knows alone (``group_sums``). Where
he has an intercept and nothing else, every family's slope is affine in the label, ``c (y - m)``
with unknown c and m: the paper's residue attack, on residues of any size. A row of leverage 1 is
solved: as many columns as rows solve all, a category of one row that row.

*Counts* lie on a grid of step c. The step is found as the largest that fits all solved rows, and
the lowest of them is taken to be 0: exact counts, without knowing c or m. *Amounts and numbers* are
known up to a unit and an offset. Rows that are not solved are ranked by their least-norm slope.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.families.registry import FAMILIES
from taciturn.protocol.observations import MomentsSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.group_sums import FirstPass, Slopes
from taciturn_audit.views.alice_view import AliceView

_SOLVED = 1.0 - 1e-6
# How far a count may lie from its grid, in steps; and the most parts of the least gap that are
# tried as the step.
_OFF_GRID, _MOST_PARTS = 0.05, 12


class ValuesAttack(Attack):
    """Labels of any family but two classes, up to what the slopes leave open."""

    name = "values"
    reference = "[Tan22] Sec. III-C, residues of any size; common step of differences"
    needs = frozenset({Signal.FEATURES, Signal.MOMENTS})
    families = tuple(name for name, kind in FAMILIES.items() if not kind.has_classes)

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        first = FirstPass.from_moments(
            view.observations.of_kind(MomentsSeen)[0], Slopes.from_view(view)
        )
        slopes, solved = first.least_norm, first.leverage >= _SOLVED
        values, certain = np.full(len(slopes), np.nan), solved
        if not first.slopes.two_valued:
            certain, remark = np.zeros(len(slopes), dtype=bool), "Bob's columns are in the slopes"
        elif view.agreement.kind.exact_labels:
            counts = common_steps(slopes[solved], 8.0 / first.unit)
            remark = f"{int(solved.sum())} rows solved"
            if counts is None:
                certain, remark = np.zeros(len(slopes), dtype=bool), f"{remark}, and no common step"
            else:
                values[solved] = counts
        else:
            values[solved] = slopes[solved]
            remark = f"{int(solved.sum())} rows solved, up to a unit and an offset"
        everywhere = np.ones(len(slopes), dtype=bool)
        shape = f"{len(slopes)} rows in {first.rank} independent sums"
        return LabelGuess(slopes, everywhere, certain, f"{shape}: {remark}", values=values)


def common_steps(numbers: FloatArray, noise: float) -> FloatArray | None:
    """Numbers in the largest common step of their differences, from the lowest on.

    ``noise`` is how far rounding may have moved one. None where there is no such step.

    >>> common_steps(np.array([-0.5, 0.7, 0.1, 2.5]), 1e-6)
    array([0., 2., 1., 5.])
    """
    if len(numbers) < 2:
        return None
    above = numbers - numbers.min()
    gaps = np.diff(np.sort(above))
    gaps = gaps[gaps > 4 * noise]
    if not len(gaps):
        return None
    for parts in range(1, _MOST_PARTS + 1):
        steps = above / (float(gaps.min()) / parts)
        # The least gap is the least exact number here: the step is fitted to all.
        counts = np.rint(steps)
        fitted = float(above @ counts) / float(counts @ counts)
        whole: FloatArray = np.rint(above / fitted)
        if np.abs(above / fitted - whole).max() < _OFF_GRID:
            return whole
    return None
