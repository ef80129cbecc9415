"""The centralised cleartext trainer: what every joint run is compared with, in weights and speed.

Mini-batch SGD from zero, in the open, on all columns at once::

    w <- w - lr_t (-(1/|B|) X_B^T (y_B - sigma(X_B w)) + penalty'(w))
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, LabelArray
from taciturn.errors import ShapeError
from taciturn.numerics.logistic import Penalty, gradient, weighted_residue
from taciturn.numerics.schedule import LearningRate


def train_centralised(
    features: FloatArray,
    labels: LabelArray,
    batches: Iterable[IndexArray],
    rate: LearningRate,
    penalty: Penalty,
    free: int = 0,
    class_weight: tuple[float, float] | None = None,
) -> FloatArray:
    """Trains on the given batches, in their order; they decide the number of iterations.

    An intercept is a last column of ones; the last ``free`` weights carry no penalty. An empty
    batch costs its penalty alone. ``class_weight`` is the weight of a row of label 0 and of label
    1.

    >>> features, labels = np.array([[1.0], [-1.0]]), np.array([1, 0])
    >>> train_centralised(features, labels, [np.array([0, 1])], LearningRate(0.5), Penalty())
    array([0.25])
    """
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ShapeError(f"features of shape {features.shape}, labels of {labels.shape}")
    weights = np.zeros(features.shape[1])
    for iteration, rows in enumerate(batches):
        # On whole rows, take is about twice as fast as indexing.
        slope = penalty.gradient(weights, free)
        if len(rows):
            batch = features.take(rows, axis=0)
            truth = labels.take(rows)
            slope += gradient(batch, weighted_residue(batch @ weights, truth, class_weight))
        slope *= rate.at(iteration)
        weights -= slope
    return weights
