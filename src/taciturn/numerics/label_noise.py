"""Likelihood of labels that were flipped at random, corrected for the flips.

A label is kept with probability ``p = e^eps / (1 + e^eps)`` and flipped otherwise. With
``f = sigma(z)`` the *flipped* label is 1 with probability ``q = p f + (1-p)(1-f)``.

*Forward correction* [PatriniRMNQ17, Thm. 2] fits q to the flipped labels. Its loss is a likelihood:
never below 0. What enters the gradient is its slope in the score::

    r = (y~ - q) (2p-1) f (1-f) / (q (1-q))

which, with ``s = +1`` for a flipped label of 1 and ``-1`` for 0, is::

    r = s (1 - e^-eps) sigma(-s z) sigma(s z + eps)        |r| <= tanh(eps / 4)

The second form has no quotient, so nothing overflows or cancels at large scores. As eps grows it
becomes the ordinary residue ``y - f``.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.families.base import RowLikelihood
from taciturn.families.binomial import sigmoid, softplus
from taciturn.numerics.logistic import check_rows


def corrected_residue(scores: FloatArray, labels: LabelArray, epsilon: float) -> FloatArray:
    """Slope of the forward-corrected log likelihood: at most ``tanh(epsilon / 4)`` in size."""
    check_rows(scores, labels)
    signs = np.where(labels, 1.0, -1.0)
    signed = signs * scores
    slopes: FloatArray = -math.expm1(-epsilon) * sigmoid(-signed) * sigmoid(signed + epsilon)
    return signs * slopes


def corrected_likelihood(scores: FloatArray, labels: LabelArray, epsilon: float) -> RowLikelihood:
    """Forward-corrected likelihood of flipped labels.

    Not concave: rows whose score contradicts their label by more than ``epsilon / 2`` have negative
    curvature.
    """
    slope = corrected_residue(scores, labels, epsilon)
    signed = scores * (2.0 * labels - 1.0)
    # q = (sigma(z) + e^-eps sigma(-z)) / (1 + e^-eps), of which only the quotient
    # (1 + e^-(z + eps)) / (1 + e^-z) changes with z.
    value = softplus(-signed - epsilon) - softplus(-signed)
    value -= math.log1p(math.exp(-epsilon))
    curvature = np.abs(slope) * (sigmoid(signed) - sigmoid(-signed - epsilon))
    return RowLikelihood(value, slope, curvature)
