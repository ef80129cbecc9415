"""``likelihood``: what every noisy residue says about its row's label, added up over the epochs.

At a known score f the residue is ``1 - f`` or ``-f``. A released z then weighs in with::

    log P(z | r = 1 - f) - log P(z | r = -f)

under the mechanism's exact law. A row's label shows in its own releases only, so the sum over the
epochs is the logarithm of the likelihood ratio of all that Alice was told: by Neyman and Pearson
[NeymanPearson33] no test of the label that uses the releases does better.

**Certain.** With known scores a row is called certain where the sum lies beyond ``±ln(10^6)``. The
ratio is a martingale under the other label, so the chance that a row is called certain and wrongly
so is at most ``10^-6``, whatever the number of epochs (Ville's inequality). A ratio may be
infinite, where the released value is impossible under one label: ``mult one-sided``.

**Scores that are not known.** Where Bob has columns Alice takes her part of the score for all of
it. The ratio is then no ratio of likelihoods: nothing is called certain, and no release counts for
more than ``ln(10^6)``, so that one wrong score cannot outvote the other epochs.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.privacy.base import ResidueMechanism
from taciturn.protocol.observations import ResiduesSeen, Signal
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn_audit.views.alice_view import AliceView

SURE = math.log(1e6)
"""The logarithm of a ratio from which on a row is called certain."""

# Stands for an infinite ratio: far beyond SURE, and sums of it stay ordered.
_INFINITE = 1e4
# Ratios of several epochs may cancel, and leave rounding behind.
_NOTHING = 1e-9
_BLOCK = 2048


class LikelihoodAttack(Attack):
    """The exact log-likelihood ratio of the two labels, summed over the releases of a row."""

    name = "likelihood"
    reference = "likelihood ratio of [Tan22] Eqs. 5 and 7-9; [NeymanPearson33]"
    needs = frozenset({Signal.FEATURES, Signal.RESIDUES})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        seen = view.observations.of(ResiduesSeen)
        total = np.zeros(view.features.rows)
        most = _INFINITE if view.scores_known else SURE
        for start in range(0, len(seen), _BLOCK):
            block = seen[start : start + _BLOCK]
            progress(start, len(seen))
            # Batch by batch, as Bob's scores were made: one product for all may round otherwise.
            scores = np.concatenate([_probabilities(view, observation) for observation in block])
            released = np.concatenate([observation.residues for observation in block])
            rows = np.concatenate([observation.rows for observation in block])
            ratios = log_ratios(view, released, scores)
            total += np.bincount(rows, np.clip(ratios, -most, most), minlength=len(total))
        progress(len(seen), len(seen))
        certain = (np.abs(total) >= SURE) & view.scores_known
        return LabelGuess(total, np.abs(total) > _NOTHING, certain, _remark(view))


def log_ratios(view: AliceView, released: FloatArray, probabilities: FloatArray) -> FloatArray:
    """``log P(z | y = 1) - log P(z | y = 0)`` of each release, at its real scale and its score.

    Infinite where one label is impossible; zero where both are, which only a wrong score brings
    about.
    """
    law = cast(ResidueMechanism[Any], view.mechanism)
    if view.agreement.noise == "continuous":
        one = law.log_density(released, 1.0 - probabilities)
        zero = law.log_density(released, 0.0 - probabilities)
    else:
        bits = view.agreement.residue_bits
        steps = np.rint(released * 2.0**bits).astype(np.int64)
        # As Bob rounds them: the label moves the integer by exactly 2^bits.
        scored = np.rint(probabilities * 2.0**bits).astype(np.int64)
        one = law.log_probability(steps, (1 << bits) - scored)
        zero = law.log_probability(steps, -scored)
    with np.errstate(invalid="ignore"):
        ratios = one - zero
    return np.where(np.isnan(ratios), 0.0, ratios)


def _probabilities(view: AliceView, seen: ResiduesSeen) -> FloatArray:
    probabilities = view.probabilities(seen.rows, seen.weights)
    if view.scores_known:
        return probabilities
    # A residue of exactly zero loses its sign; an estimate cannot know that there was one.
    step = 2.0**-view.agreement.residue_bits
    return np.clip(probabilities, step, 1.0 - step)


def _remark(view: AliceView) -> str:
    if view.scores_known:
        return ""
    return "scores are estimated from Alice's part alone: nothing is called certain"
