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
from taciturn.families.binomial import sigmoid
from taciturn.memmap import over_blocks


def log_loss(scores: FloatArray, labels: LabelArray) -> float:
    """Mean negative log likelihood of 0/1 labels, in nats."""
    return float(np.mean(row_losses(scores, labels)))


def row_losses(scores: FloatArray, labels: LabelArray) -> FloatArray:
    """Loss of each row, of which ``log_loss`` is the mean."""
    check_rows(scores, labels)
    # Turning the sign of the score, not subtracting y z, keeps the small losses of sure rows.
    signed = np.where(labels, -scores, scores)
    losses: FloatArray = np.logaddexp(0.0, signed)
    return losses


def training_loss(
    scores: FloatArray, labels: LabelArray, class_weight: tuple[float, float] | None
) -> float:
    """Mean loss in nats, weighted by class; 0 where no row has a weight.

    ``class_weight`` is the weight of a row of label 0 and of label 1.

    >>> round(training_loss(np.array([0.0, 5.0]), np.array([1, 0]), (0.0, 1.0)), 6)
    0.693147
    """
    check_rows(scores, labels)

    def sums(place: slice) -> tuple[float, float]:
        losses = row_losses(scores[place], labels[place])
        if class_weight is None:
            return float(np.sum(losses)), float(len(losses))
        counts = np.where(labels[place], class_weight[1], class_weight[0])
        return float(losses @ counts), float(counts.sum())

    loss, total = map(sum, zip(*over_blocks(sums, len(scores), scores), strict=True))
    return loss / total if total else 0.0


def residue(scores: FloatArray, labels: LabelArray) -> FloatArray:
    """Residue of each row, ``y - sigma(z)``."""
    check_rows(scores, labels)
    return np.subtract(labels, sigmoid(scores), dtype=np.float64)


def weighted_residue(
    scores: FloatArray, labels: LabelArray, weights: tuple[float, float] | None
) -> FloatArray:
    """Residue times the weight of its row's class; ``weights`` are those of labels 0 and 1."""
    residues = residue(scores, labels)
    if weights is not None:
        residues *= np.where(labels, weights[1], weights[0])
    return residues


def gradient(features: FloatArray, residues: FloatArray) -> FloatArray:
    """Gradient of the mean loss, ``-(1/n) X^T r``."""
    if features.ndim != 2 or residues.shape != features.shape[:1] or not len(residues):
        raise ShapeError(f"features of shape {features.shape}, residues of {residues.shape}")
    product: FloatArray = residues @ features
    product /= -len(residues)
    return product


@dataclass(frozen=True, slots=True)
class Penalty:
    """Elastic-net penalty, ``l1 |w|_1 + (l2/2) |w|^2``."""

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        for name, factor in (("l1", self.l1), ("l2", self.l2)):
            if not (math.isfinite(factor) and factor >= 0):
                raise ConfigError(f"{name} is {factor}", setting=name, hint="use 0 or more")

    def value(self, weights: FloatArray, free: int = 0) -> float:
        """The penalty; the last ``free`` weights (the intercept) cost nothing."""
        penalised = weights[: _penalised(weights, free)]
        return float(self.l1 * np.abs(penalised).sum() + 0.5 * self.l2 * (penalised @ penalised))

    def gradient(self, weights: FloatArray, free: int = 0) -> FloatArray:
        """Gradient of ``value``; at a weight of 0 the subgradient 0 is taken."""
        slope = self.l2 * weights
        if self.l1:
            slope += self.l1 * np.sign(weights)
        slope[_penalised(weights, free) :] = 0.0
        return slope


def _penalised(weights: FloatArray, free: int) -> int:
    if weights.ndim != 1 or not 0 <= free <= len(weights):
        raise ShapeError(f"weights of shape {weights.shape}, of which {free} are free")
    return len(weights) - free


def check_rows(scores: FloatArray, labels: LabelArray) -> None:
    # Without this, a column of scores and a row of labels would broadcast to a matrix.
    """Raise ``ShapeError`` unless there is one score for each label."""
    if scores.ndim != 1 or scores.shape != labels.shape or not len(scores):
        raise ShapeError(f"scores of shape {scores.shape}, labels of {labels.shape}")
