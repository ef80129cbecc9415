"""``gamma``: amounts above 0, with the log link: cost of a claim, duration, size of an order."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn.families.base import Family, RowLikelihood


class Gamma(Family):
    """The deviation of an amount is proportional to its mean."""

    name = "gamma"
    link = "log"
    mean_name = "expected"
    valid = "above 0"
    remedy = "keep the rows with an amount alone, such as those with a claim"

    def likelihood(self, predictor: FloatArray, labels: LabelArray) -> RowLikelihood:
        """``log(y/mu) - y/mu + 1``, which is 0 where the mean is the label."""
        with np.errstate(over="ignore"):
            ratio = np.multiply(labels, np.exp(-predictor), dtype=np.float64)
        return RowLikelihood(np.log(labels) - predictor - ratio + 1.0, ratio - 1.0, ratio)

    def deviance(self, labels: LabelArray, means: FloatArray) -> FloatArray:
        """``2 (y/mu - log(y/mu) - 1)``."""
        with np.errstate(divide="ignore", over="ignore"):
            ratio = labels / means
            return np.asarray(2.0 * (ratio - np.log(ratio) - 1.0))

    def constant(self, labels: LabelArray, exposure: FloatArray, weights: FloatArray) -> float:
        """Logarithm of the mean rate, in which a row counts by its weight and not its exposure."""
        return float(np.log(weights @ (labels / exposure) / weights.sum()))

    def possible(self, labels: LabelArray) -> BoolArray:
        """Above 0."""
        return labels > 0
