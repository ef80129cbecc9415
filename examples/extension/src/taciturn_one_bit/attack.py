"""``mean-residue``: a row's released residues, averaged and compared with the two it can have.

At a predicted probability ``f`` the residue is ``1 - f`` for a label of 1 and ``-f`` for a 0; half
way between them lies ``1/2 - f``. What is released is right on average, so the sum over the epochs
of ``released - (1/2 - f)`` is positive for a label of 1, and the more epochs the more clearly.
Unlike the likelihood it needs no law of the noise, only its mean.

**Certain.** Never.
"""

from __future__ import annotations

import numpy as np

from taciturn.engine.callbacks import ReportProgress
from taciturn.protocol.observations import ResiduesSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.views.alice_view import AliceView


class MeanResidueAttack(Attack):
    """The sum of a row's releases, less what lies half way between its two residues."""

    name = "mean-residue"
    reference = "the mean of unbiased releases"
    needs = frozenset({Signal.FEATURES, Signal.RESIDUES})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        """Adds up what each release says of its row."""
        batches = view.observations.of_kind(ResiduesSeen)
        total = np.zeros(view.features.rows)
        seen = np.zeros(view.features.rows, dtype=bool)
        for number, batch in enumerate(batches, start=1):
            predicted = view.probabilities(batch.rows, batch.weights)
            total[batch.rows] += batch.residues - (0.5 - predicted)
            seen[batch.rows] = True
            progress(number, len(batches))
        return LabelGuess(scores=total, signal=seen, certain=np.zeros(len(total), dtype=bool))
