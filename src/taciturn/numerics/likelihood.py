"""Log likelihood of each row as a function of its score, with two derivatives.

What a training over the whole table needs of the labels::

    value      log p(y | z)
    slope      d value / d z          the residue
    curvature  -d^2 value / d z^2     in [0, 1/4] of true labels, in [-1/4, 1/4] of flipped ones

**Flipped labels.** A label is kept with probability ``p = e^eps / (1 + e^eps)`` and flipped
otherwise. With ``f = sigma(z)`` the *flipped* label is 1 with probability ``q = p f + (1-p)(1-f)``.

*Forward correction* [PatriniRMNQ17, Thm. 2] fits q to the flipped labels. Its loss is a likelihood:
never below 0. What enters the gradient is its slope in the score::

    r = (y~ - q) (2p-1) f (1-f) / (q (1-q))

which, with ``s = +1`` for a flipped label of 1 and ``-1`` for 0, is::

    r = s (1 - e^-eps) sigma(-s z) sigma(s z + eps)        |r| <= tanh(eps / 4)

The second form has no quotient, so nothing overflows or cancels at large scores. As eps grows it
becomes the ordinary residue ``y - f``.

*The debiased loss* [NatarajanDRT13, Lemma 1] puts an unbiased estimate of the label in its place,
``(y~ - (1-p)) / (2p-1)``, which lies outside [0, 1]. It is right on average and has no lower bound:
on finitely many rows the weights diverge where eps is small. It is here for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, LabelArray
from taciturn.data.tables import LabelTable
from taciturn.families.base import RowLikelihood as RowLikelihood
from taciturn.families.binomial import sigmoid, softplus
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.numerics.logistic import check_rows


def corrected_residue(scores: FloatArray, labels: LabelArray, epsilon: float) -> FloatArray:
    """Slope of the forward-corrected log likelihood: at most ``tanh(epsilon / 4)`` in size."""
    check_rows(scores, labels)
    signs = np.where(labels, 1.0, -1.0)
    signed = signs * scores
    slopes: FloatArray = -math.expm1(-epsilon) * sigmoid(-signed) * sigmoid(signed + epsilon)
    return signs * slopes


def corrected_loss(scores: FloatArray, labels: LabelArray, epsilon: float) -> float:
    """Mean negative log likelihood of flipped labels: at least ``log(1 + e^-eps)``."""
    check_rows(scores, labels)
    signed = np.where(labels, scores, -scores)
    # q = (sigma(z) + e^-eps sigma(-z)) / (1 + e^-eps), and both parts are known in logarithms.
    kept, flipped = -np.logaddexp(0.0, -signed), -np.logaddexp(0.0, signed) - epsilon
    logs = np.logaddexp(kept, flipped) - math.log1p(math.exp(-epsilon))
    return float(-np.mean(logs))


def debiased_residue(scores: FloatArray, labels: LabelArray, epsilon: float) -> FloatArray:
    """Slope of the debiased log likelihood."""
    check_rows(scores, labels)
    return _unbiased(labels, epsilon) - sigmoid(scores)


def debiased_loss(scores: FloatArray, labels: LabelArray, epsilon: float) -> float:
    """Mean debiased loss, which has no lower bound."""
    check_rows(scores, labels)
    return float(np.mean(np.logaddexp(0.0, scores) - _unbiased(labels, epsilon) * scores))


def _unbiased(labels: LabelArray, epsilon: float) -> FloatArray:
    # (y~ - (1-p)) / (2p-1), where 2p-1 = tanh(eps/2) and 1-p = 1/(1+e^eps).
    flipped = 1.0 / (1.0 + math.exp(epsilon))
    values: FloatArray = (np.asarray(labels, dtype=np.float64) - flipped) / math.tanh(epsilon / 2)
    return values


# The sigmoid differs from 0 or 1 by 2^-92 there.
MOST_SCORE = 64.0


class Likelihood(Protocol):
    """Likelihood of rows as a function of their scores, with the labels bound."""

    def __call__(self, scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        """Likelihood of the rows in a block, or of all."""


def label_likelihood(
    labels: LabelArray, likelihood: Callable[[FloatArray, LabelArray], RowLikelihood]
) -> Likelihood:
    """Bind labels of two classes to a likelihood of rows."""

    def bound(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        return likelihood(scores, labels[place])

    return bound


def response_likelihood(
    labels: LabelTable, classes: Callable[[FloatArray, LabelArray], RowLikelihood]
) -> Likelihood:
    """Likelihood of a family's labels; ``classes`` is that of labels of two classes.

    Scores are in the labels' coordinates, and rows count by their weight, 1 on average.
    """
    if labels.kind.has_classes:
        return label_likelihood(labels.values, classes)
    family, response, values = labels.kind, labels.response, labels.values
    offset = None if labels.exposure is None else np.log(labels.exposure)
    weights = None if labels.weights is None else labels.weights / np.mean(labels.weights)
    scale = response.scale

    def bound(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        predictor = response.predictor(scores)
        if offset is not None:
            predictor += offset[place]
        bare = family.likelihood(predictor, values[place])
        # The loss is divided by the square of the scale, and a score counts that many units.
        count = 1.0 if weights is None else weights[place]
        return RowLikelihood(
            bare.value * (count / scale**2), bare.slope * (count / scale), bare.curvature * count
        )

    return bound


def weighted_likelihood(
    scores: FloatArray, labels: LabelArray, class_weight: tuple[float, float] | None
) -> RowLikelihood:
    """Likelihood of true labels; ``class_weight`` has the weights of labels 0 and 1."""
    check_rows(scores, labels)
    rows = FAMILIES[BINOMIAL].likelihood(scores, labels)
    if class_weight is not None:
        weights = np.where(labels, class_weight[1], class_weight[0])
        for part in (rows.value, rows.slope, rows.curvature):
            part *= weights
    return rows


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


def clip_scores(scores: FloatArray, most: float = MOST_SCORE) -> FloatArray:
    """Scores clipped to ``most`` in size; NaN becomes ``most``.

    Beyond ``MOST_SCORE`` the sigmoid is 0 or 1 to the last digit of a residue. NaN must not raise:
    that Bob stops would tell Alice that there was one.
    """
    return np.fmax(np.fmin(scores, most), -most)
