"""``binomial``: labels 0 and 1, with the logit link: logistic regression."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn.families.base import Family, RowLikelihood


def sigmoid(scores: FloatArray) -> FloatArray:
    """Probability that belongs to a score (a logit), without overflow at either end."""
    with np.errstate(over="ignore"):  # exp(1000) is infinite, and its inverse 0 is the answer
        return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(scores, dtype=np.float64))))


def softplus(scores: FloatArray) -> FloatArray:
    """``log(1 + e^z)``: several times as fast as ``logaddexp``, to a few last digits."""
    values: FloatArray = np.abs(scores)
    np.exp(np.negative(values, out=values), out=values)
    np.log1p(values, out=values)
    values += np.maximum(scores, 0.0)
    return values


class Binomial(Family):
    """The logistic regression; its label check is that of ``LabelTable``."""

    name = "binomial"
    link = "logit"
    mean_name = "probability"
    has_classes = exact_labels = True
    two_labels = (0, 1)
    curvature = 0.25
    step_lengths = (1.0, 0.25)
    valid = "0 and 1"
    remedy = "turn them into 0 and 1 (1 is the class to predict)"

    def mean(self, predictor: FloatArray) -> FloatArray:
        """Probability of a one."""
        return sigmoid(predictor)

    def likelihood(self, predictor: FloatArray, labels: LabelArray) -> RowLikelihood:
        """Log likelihood of each label: half of a deviance whose other half is 0."""
        slope = np.subtract(labels, sigmoid(predictor), dtype=np.float64)
        # Of y - p, whatever y is, the size is p or 1 - p.
        curvature = np.abs(slope)
        curvature *= 1.0 - curvature
        return RowLikelihood(-softplus(predictor * (1.0 - 2.0 * labels)), slope, curvature)

    def deviance(self, labels: LabelArray, means: FloatArray) -> FloatArray:
        """Minus twice the log likelihood."""
        with np.errstate(divide="ignore"):
            return np.asarray(-2.0 * np.log(np.where(labels, means, 1.0 - means)))

    def possible(self, labels: LabelArray) -> BoolArray:
        """0 and 1."""
        return np.isin(labels, (0, 1))

    def constant(self, labels: LabelArray, exposure: FloatArray, weights: FloatArray) -> float:
        """Log-odds of a one; half a row more of either class, where one is absent."""
        ones = float(weights @ labels)
        return float(np.log((ones + 0.5) / (float(weights.sum()) - ones + 0.5)))
