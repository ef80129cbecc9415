"""``model-only``: what Alice would guess from the model she ends up with, were there no messages.

A protocol leaks what an attack learns *beyond* the controls. The other control, ``prior``, needs no
view and stands with the judge.
"""

from __future__ import annotations

import numpy as np

from taciturn.engine.callbacks import ReportProgress
from taciturn.numerics.logistic import sigmoid
from taciturn.protocol.observations import Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.views.alice_view import AliceView


class ModelOnlyControl(Attack):
    """Her own part of the trained model, applied to her own rows."""

    name = "model-only"
    reference = "control"
    needs = frozenset({Signal.FEATURES, Signal.WEIGHTS})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        scores = sigmoid(view.features.values @ view.observations.weights) - 0.5
        everywhere = np.ones(len(scores), dtype=bool)
        return LabelGuess(scores, everywhere, ~everywhere)
