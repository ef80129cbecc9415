"""``sign``: the sum of a row's released residues; its sign is the label.

A residue is positive exactly where the label is 1, and noise about it averages out: this is the
likelihood attack of someone who knows neither the scores nor the mechanism's law.

**Certain.** Only where a mechanism such as ``mult one-sided`` keeps the sign of every residue. A
negative release then proves a label of 0. A positive one proves a label of 1, unless the row's
score was so low that the residue of a 0 rounds to zero, which counts as positive; so that is
claimed only where Alice knows the score.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.privacy.base import ResidueMechanism
from taciturn.protocol.observations import ResiduesSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.views.alice_view import AliceView


class SignAttack(Attack):
    """The sign of the summed residues."""

    name = "sign"
    reference = "[Tan22] Sec. III-C, on released residues"
    needs = frozenset({Signal.RESIDUES})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        seen = view.observations.of(ResiduesSeen)
        method = view.mechanism
        keeps_signs = isinstance(method, ResidueMechanism) and method.keeps_signs
        rows = view.features.rows
        total = np.zeros(rows)
        zeros, ones = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
        every = max(1, len(seen) // 100)
        for at, observation in enumerate(seen):
            if at % every == 0:
                progress(at, len(seen))
            total[observation.rows] += observation.residues
            if keeps_signs:
                zeros[observation.rows] |= observation.residues < 0
                ones[observation.rows] |= (observation.residues > 0) & _negative_if_label_zero(
                    view, observation
                )
        progress(len(seen), len(seen))
        return LabelGuess(_ranked(total, zeros, ones), total != 0, zeros ^ ones)


def _negative_if_label_zero(view: AliceView, seen: ResiduesSeen) -> BoolArray:
    """Where the residue of a label of 0, ``-sigma(z)``, would surely have been below zero."""
    # A probability that is only estimated proves nothing.
    if not view.scores_known:
        return np.zeros(len(seen.rows), dtype=bool)
    sizes = view.probabilities(seen.rows, seen.weights)
    # On a grid a small residue rounds to zero, and then has no sign to keep.
    if view.agreement.noise != "continuous":
        sizes = np.rint(sizes * 2.0**view.agreement.residue_bits)
    negative: BoolArray = sizes > 0
    return negative


def _ranked(total: FloatArray, zeros: BoolArray, ones: BoolArray) -> FloatArray:
    beyond = 2 * np.abs(total).max(initial=1.0)
    return np.where(zeros, total - beyond, np.where(ones, total + beyond, total))
