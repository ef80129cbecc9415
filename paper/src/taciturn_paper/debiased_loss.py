"""Mean losses of flipped labels: the forward-corrected one, and the debiased one.

The debiased loss [NatarajanDRT13, Lemma 1] puts an unbiased estimate of the label in its place,
``(y~ - (1-p)) / (2p-1)`` with ``p = e^eps / (1 + e^eps)``, which lies outside [0, 1]. It is right
on average and has no lower bound: on finitely many rows the weights diverge where eps is small.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.families.binomial import sigmoid
from taciturn.numerics.logistic import check_rows


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
