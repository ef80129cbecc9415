"""``likelihood`` and ``sign``: what noisy residues say about their row's label, over the epochs.

**Likelihood.** At a known score f the residue is ``1 - f`` or ``-f``. A released z then weighs in
with::

    log P(z | r = 1 - f) - log P(z | r = -f)

under the mechanism's exact law. A row's label shows in its own releases only, so the sum over the
epochs is the logarithm of the likelihood ratio of all that Alice received: by Neyman and Pearson
[NeymanPearson33] no test of the label that uses the releases does better.

With known scores a row is called certain where the sum lies beyond ``±ln(10^6)``. The ratio is a
martingale under the other label, so the chance that a row is called certain and wrongly so is at
most ``10^-6``, whatever the number of epochs (Ville's inequality). A ratio may be infinite, where
the released value is impossible under one label: ``mult one-sided``. Where Bob has columns Alice
takes her part of the score for all of it. The ratio is then no ratio of likelihoods: nothing is
called certain, and no release counts for more than ``ln(10^6)``, so that one wrong score cannot
outvote the other epochs.

**Sign.** A residue is positive exactly where the label is 1, and noise about it averages out: the
sign of the summed residues is the likelihood attack of someone who knows neither the scores nor the
mechanism's law. It is certain only where a mechanism such as ``mult one-sided`` keeps the sign of
every residue. A negative release then proves a label of 0. A positive one proves a label of 1,
unless the row's score was so low that the residue of a 0 rounds to zero, which counts as positive;
so that is claimed only where Alice knows the score.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from taciturn.arrays import BoolArray, FloatArray
from taciturn.engine.callbacks import ReportProgress
from taciturn.privacy.base import ResidueMechanism, SignPreserving
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
        seen = view.observations.of_kind(ResiduesSeen)
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


class SignAttack(Attack):
    """The sign of the summed residues."""

    name = "sign"
    reference = "[Tan22] Sec. III-C, on released residues"
    needs = frozenset({Signal.RESIDUES})

    def _guess(self, view: AliceView, progress: ReportProgress) -> LabelGuess:
        seen = view.observations.of_kind(ResiduesSeen)
        keeps_signs = isinstance(view.mechanism, SignPreserving)
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
    """Whether each row's residue at label 0, ``-sigma(z)``, would surely be below zero."""
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
