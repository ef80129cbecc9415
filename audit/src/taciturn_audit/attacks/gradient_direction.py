"""``gradient-direction``: a matched filter. How far does a batch's gradient point along the row?

``g = sum_j r_j x_j``, so the gradient of a batch holds ``r_i |x_i|^2`` along ``x_i``, plus what the
other rows add. Li et al. compare the directions of single rows' gradients [LiSun22]; in a batch sum
the row's own part is what its features filter out::

    s_i = sum over its batches of <x_i, g> / |x_i|

The sign of ``s_i`` is the guess. It needs no system to be solved and no score to be known, and
gives the labels away the less, the more rows share a batch. It is never certain.
"""

from __future__ import annotations

import numpy as np

from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.attacks.linear import gradients
from taciturn_audit.views.alice_view import AliceView


class GradientDirectionAttack(Attack):
    """Each row's features against the gradients of its batches."""

    name = "gradient-direction"
    reference = "direction attack of [LiSun22], adapted to the sum over a batch"
    needs = frozenset({Signal.FEATURES, Signal.GRADIENTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        values = view.features.values
        scale = 2.0 ** -(view.agreement.feature_bits + view.agreement.residue_bits)
        seen = gradients(view)
        total = np.zeros(len(values))
        every = max(1, len(seen) // 100)
        for at, observation in enumerate(seen):
            if at % every == 0:
                progress(at, len(seen))
            total[observation.rows] += values.take(observation.rows, axis=0) @ (
                observation.gradient * scale
            )
        progress(len(seen), len(seen))
        norms = np.linalg.norm(values, axis=1)
        scores = np.divide(total, norms, out=np.zeros(len(values)), where=norms > 0)
        return LabelGuess(scores, scores != 0, np.zeros(len(values), dtype=bool))
