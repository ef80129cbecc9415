"""Predicted means of rows, with their deviances, for labels of any family."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable


class PredictedRows:
    """Means, deviances, exposures and weights of rows."""

    def __init__(self, scores: FloatArray, labels: LabelTable) -> None:
        self.labels, self.truth = labels, np.asarray(labels.values, dtype=np.float64)
        ones = np.ones(labels.rows)
        self.exposure = ones if labels.exposure is None else labels.exposure
        self.weights = ones if labels.weights is None else labels.weights
        self.scores = scores
        with np.errstate(over="ignore", invalid="ignore"):
            self.rates = labels.kind.mean(labels.response.predictor(scores))
            self.means = self.rates * self.exposure
            self.deviances = labels.kind.deviance(self.truth, self.means)

    @property
    def null_deviance(self) -> float:
        """Mean deviance of the best constant rate."""
        kind = self.labels.kind
        constant = kind.constant(self.truth, self.exposure, self.weights)
        means = kind.mean(np.full(self.labels.rows, constant)) * self.exposure
        return self.mean(kind.deviance(self.truth, means))

    def mean(self, values: FloatArray) -> float:
        """Mean of values of the rows, by their weights."""
        return float(self.weights @ values / self.weights.sum())
