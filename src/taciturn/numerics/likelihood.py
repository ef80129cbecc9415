"""The log likelihood of each row as a function of its score, with two derivatives.

What a training over the whole table needs of the labels::

    value      log p(y | z)
    slope      d value / d z          the residue
    curvature  -d^2 value / d z^2     in [0, 1/4] of true labels, in [-1/4, 1/4] of flipped ones
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, LabelArray
from taciturn.numerics.flipped_labels import corrected_residue
from taciturn.numerics.logistic import residue, sigmoid

# The sigmoid differs from 0 or 1 by 2^-92 there.
MOST_SCORE = 64.0


@dataclass(frozen=True, slots=True)
class RowLikelihood:
    """Log likelihood of each row, with its slope in the score and its curvature.

    Values count the weight of the row's class; ``curvature`` is minus the second derivative.
    """

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


class Likelihood(Protocol):
    """Likelihood of rows as a function of their scores, with the labels bound."""

    def __call__(self, scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        """Likelihood of the rows at a place, or of all."""


def of_labels(
    labels: LabelArray, likelihood: Callable[[FloatArray, LabelArray], RowLikelihood]
) -> Likelihood:
    """Bind labels to a likelihood of rows.

    >>> from functools import partial
    >>> halves = of_labels(np.array([1, 0]), partial(weighted_likelihood, class_weight=None))
    >>> halves(np.zeros(2)).slope.tolist(), halves(np.zeros(1), slice(1, 2)).slope.tolist()
    ([0.5, -0.5], [-0.5])
    """

    def bound(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        return likelihood(scores, labels[place])

    return bound


def weighted_likelihood(
    scores: FloatArray, labels: LabelArray, class_weight: tuple[float, float] | None
) -> RowLikelihood:
    """Likelihood of true labels.

    ``class_weight`` is the weight of a row of label 0 and of label 1; None where all count once.

    >>> likelihood = weighted_likelihood(np.array([0.0, 0.0]), np.array([1, 0]), (1.0, 0.5))
    >>> likelihood.slope.tolist(), likelihood.curvature.tolist()
    ([0.25, -0.5], [0.125, 0.25])
    """
    slope = residue(scores, labels)
    # Of y - p, whatever y is, the size is p or 1 - p.
    curvature = np.abs(slope)
    curvature *= 1.0 - curvature
    value = -_softplus(scores * (1.0 - 2.0 * labels))
    if class_weight is not None:
        weights = np.where(labels, class_weight[1], class_weight[0])
        for part in (value, slope, curvature):
            part *= weights
    return RowLikelihood(value, slope, curvature)


def corrected_likelihood(scores: FloatArray, labels: LabelArray, epsilon: float) -> RowLikelihood:
    """That of flipped labels, forward-corrected (``taciturn.numerics.flipped_labels``).

    Not concave: rows whose score contradicts their label by more than ``epsilon / 2`` have negative
    curvature.

    >>> likelihood = corrected_likelihood(np.array([0.0, -5.0]), np.array([1, 1]), 1.0)
    >>> (likelihood.curvature > 0).tolist()
    [True, False]
    """
    slope = corrected_residue(scores, labels, epsilon)
    signed = scores * (2.0 * labels - 1.0)
    # q = (sigma(z) + e^-eps sigma(-z)) / (1 + e^-eps), of which only the quotient
    # (1 + e^-(z + eps)) / (1 + e^-z) changes with z.
    value = _softplus(-signed - epsilon) - _softplus(-signed)
    value -= math.log1p(math.exp(-epsilon))
    curvature = np.abs(slope) * (sigmoid(signed) - sigmoid(-signed - epsilon))
    return RowLikelihood(value, slope, curvature)


def bounded(scores: FloatArray) -> FloatArray:
    """Scores as the sigmoid takes them, at most ``MOST_SCORE`` in size, whatever they were.

    Beyond it the sigmoid is 0 or 1 to the last digit of a residue. Numbers that are none become
    one, and Bob continues: an end here would tell that they were.

    >>> bounded(np.array([1e9, -0.5, np.nan])).tolist()
    [64.0, -0.5, 64.0]
    """
    return np.fmax(np.fmin(scores, MOST_SCORE), -MOST_SCORE)


def _softplus(scores: FloatArray) -> FloatArray:
    """``log(1 + e^z)``: ``logaddexp``, several times as fast, and as good to a few last digits."""
    values: FloatArray = np.abs(scores)
    np.exp(np.negative(values, out=values), out=values)
    np.log1p(values, out=values)
    values += np.maximum(scores, 0.0)
    return values
