"""Logistic regression: the sigmoid, the loss, the residue, the gradient and the penalty.

With ``z = X w`` and labels ``y`` in {0, 1}::

    sigma(z) = 1 / (1 + exp(-z))
    loss     = (1/n) sum log(1 + exp(-s z)),      s = +1 where y = 1, -1 where y = 0
    r        = y - sigma(z)                        the residue
    gradient = -(1/n) X^T r
    penalty  = l1 |w|_1 + (l2/2) |w|^2             its gradient: l1 sign(w) + l2 w
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.errors import ConfigError, ShapeError
from taciturn.memmap import over_blocks


def sigmoid(scores: FloatArray) -> FloatArray:
    """The probability that belongs to a score (a logit), without overflow at either end.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    with np.errstate(over="ignore"):  # exp(1000) is infinite, and its inverse 0 is the answer
        return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(scores, dtype=np.float64))))


def log_loss(scores: FloatArray, labels: LabelArray) -> float:
    """The mean negative log likelihood of 0/1 labels in nats, from scores.

    >>> round(log_loss(np.array([0.0, 1000.0, 1000.0]), np.array([1, 1, 0])), 6)
    333.564382
    """
    return float(np.mean(row_losses(scores, labels)))


def row_losses(scores: FloatArray, labels: LabelArray) -> FloatArray:
    """The loss of each row, of which ``log_loss`` is the mean.

    >>> row_losses(np.array([0.0, 0.0]), np.array([1, 0])).round(4).tolist()
    [0.6931, 0.6931]
    """
    _check_rows(scores, labels)
    # Turning the sign of the score, not subtracting y z, keeps the small losses of sure rows.
    signed = np.where(labels, -scores, scores)
    losses: FloatArray = np.logaddexp(0.0, signed)
    return losses


def training_loss(
    scores: FloatArray, labels: LabelArray, class_weight: tuple[float, float] | None
) -> float:
    """The mean loss as a training sees it: rows count as much as their class does.

    In nats; 0 where no row counts anything. ``class_weight`` is the weight of a row of label 0 and
    of label 1.

    >>> round(training_loss(np.array([0.0, 5.0]), np.array([1, 0]), (0.0, 1.0)), 6)
    0.693147
    """
    _check_rows(scores, labels)

    def sums(place: slice) -> tuple[float, float]:
        losses = row_losses(scores[place], labels[place])
        if class_weight is None:
            return float(np.sum(losses)), float(len(losses))
        counts = np.where(labels[place], class_weight[1], class_weight[0])
        return float(losses @ counts), float(counts.sum())

    loss, total = map(sum, zip(*over_blocks(sums, len(scores), scores), strict=True))
    return loss / total if total else 0.0


def residue(scores: FloatArray, labels: LabelArray) -> FloatArray:
    """What the model has left to explain in each row, ``y - sigma(z)``.

    >>> residue(np.array([0.0, 0.0]), np.array([1, 0])).tolist()
    [0.5, -0.5]
    """
    _check_rows(scores, labels)
    return np.subtract(labels, sigmoid(scores), dtype=np.float64)


def weighted_residue(
    scores: FloatArray, labels: LabelArray, weights: tuple[float, float] | None
) -> FloatArray:
    """The residue times the weight of its row's class: the slope of the weighted loss.

    ``weights`` are those of a row of label 0 and of label 1.

    >>> weighted_residue(np.array([0.0, 0.0]), np.array([1, 0]), (1.0, 0.5)).tolist()
    [0.25, -0.5]
    """
    residues = residue(scores, labels)
    if weights is not None:
        residues *= np.where(labels, weights[1], weights[0])
    return residues


def gradient(features: FloatArray, residues: FloatArray) -> FloatArray:
    """The gradient of the mean loss, ``-(1/n) X^T r``.

    >>> gradient(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, -0.5])).tolist()
    [0.5, 0.5]
    """
    if features.ndim != 2 or residues.shape != features.shape[:1] or not len(residues):
        raise ShapeError(f"features of shape {features.shape}, residues of {residues.shape}")
    product: FloatArray = residues @ features
    product /= -len(residues)
    return product


@dataclass(frozen=True, slots=True)
class Penalty:
    """The price of large weights, ``l1 |w|_1 + (l2/2) |w|^2``.

    >>> Penalty(l1=0.0, l2=0.1).gradient(np.array([2.0, -1.0, 5.0]), free=1).tolist()
    [0.2, -0.1, 0.0]
    """

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        for name, factor in (("l1", self.l1), ("l2", self.l2)):
            if not (math.isfinite(factor) and factor >= 0):
                raise ConfigError(f"{name} is {factor}", setting=name, hint="use 0 or more")

    def value(self, weights: FloatArray, free: int = 0) -> float:
        """The penalty; the last ``free`` weights (the intercept) cost nothing.

        >>> Penalty(l1=1.0, l2=2.0).value(np.array([3.0, -4.0, 9.0]), free=1)
        32.0
        """
        penalised = weights[: _penalised(weights, free)]
        return float(self.l1 * np.abs(penalised).sum() + 0.5 * self.l2 * (penalised @ penalised))

    def gradient(self, weights: FloatArray, free: int = 0) -> FloatArray:
        """The gradient of ``value``; at a weight of 0 the subgradient 0 is taken.

        >>> Penalty(l1=1.0, l2=2.0).gradient(np.array([3.0, -4.0, 9.0]), free=1).tolist()
        [7.0, -9.0, 0.0]
        """
        slope = self.l2 * weights
        if self.l1:
            slope += self.l1 * np.sign(weights)
        slope[_penalised(weights, free) :] = 0.0
        return slope


def _penalised(weights: FloatArray, free: int) -> int:
    if weights.ndim != 1 or not 0 <= free <= len(weights):
        raise ShapeError(f"weights of shape {weights.shape}, of which {free} are free")
    return len(weights) - free


def _check_rows(scores: FloatArray, labels: LabelArray) -> None:
    # Without this, a column of scores and a row of labels would broadcast to a matrix.
    if scores.ndim != 1 or scores.shape != labels.shape or not len(scores):
        raise ShapeError(f"scores of shape {scores.shape}, labels of {labels.shape}")
