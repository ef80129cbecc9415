"""Logistic regression on labels that were flipped at random with a known probability.

A label is kept with probability ``p = e^eps / (1 + e^eps)`` and flipped otherwise. With
``f = sigma(z)`` the *flipped* label is 1 with probability ``q = p f + (1-p)(1-f)``.

**Forward correction** [PatriniRMNQ17, Thm. 2] fits q to the flipped labels. Its loss is a
likelihood: never below 0. What enters the gradient is its slope in the score::

    r = (y~ - q) (2p-1) f (1-f) / (q (1-q))

which, with ``s = +1`` for a flipped label of 1 and ``-1`` for 0, is::

    r = s (1 - e^-eps) sigma(-s z) sigma(s z + eps)        |r| <= tanh(eps / 4)

The second form has no quotient, so nothing overflows or cancels at large scores. As eps grows it
becomes the ordinary residue ``y - f``.

**The debiased loss** [NatarajanDRT13, Lemma 1] puts an unbiased estimate of the label in its
place, ``(y~ - (1-p)) / (2p-1)``, which lies outside [0, 1]. It is right on average and has no lower
bound: on finitely many rows the weights run away where eps is small. It stands here to be compared.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.errors import ShapeError
from taciturn.numerics.logistic import sigmoid


def corrected_residue(scores: FloatArray, labels: LabelArray, epsilon: float) -> FloatArray:
    """The slope of each row's forward-corrected log likelihood in its score.

    The result has the sign of the flipped label and is at most ``tanh(epsilon / 4)`` in size.

    >>> corrected_residue(np.array([0.0, 0.0]), np.array([1, 0]), 50.0).tolist()
    [0.5, -0.5]
    >>> corrected_residue(np.array([-1000.0, 1000.0]), np.array([1, 0]), 1.0).tolist()
    [0.0, -0.0]
    """
    _check_rows(scores, labels)
    signs = np.where(labels, 1.0, -1.0)
    signed = signs * scores
    slopes: FloatArray = -math.expm1(-epsilon) * sigmoid(-signed) * sigmoid(signed + epsilon)
    return signs * slopes


def corrected_loss(scores: FloatArray, labels: LabelArray, epsilon: float) -> float:
    """The mean negative log likelihood of flipped labels: at least ``log(1 + e^-eps)``.

    >>> round(corrected_loss(np.array([1000.0]), np.array([1]), 1.0), 6)
    0.313262
    """
    _check_rows(scores, labels)
    signed = np.where(labels, scores, -scores)
    # q = (sigma(z) + e^-eps sigma(-z)) / (1 + e^-eps), and both parts are known in logarithms.
    kept, flipped = -np.logaddexp(0.0, -signed), -np.logaddexp(0.0, signed) - epsilon
    logs = np.logaddexp(kept, flipped) - math.log1p(math.exp(-epsilon))
    return float(-np.mean(logs))


def debiased_residue(scores: FloatArray, labels: LabelArray, epsilon: float) -> FloatArray:
    """The slope of the debiased log likelihood: an unbiased label less the probability.

    >>> debiased_residue(np.array([0.0]), np.array([1]), math.log(3.0)).round(6).tolist()
    [1.0]
    """
    _check_rows(scores, labels)
    return _unbiased(labels, epsilon) - sigmoid(scores)


def debiased_loss(scores: FloatArray, labels: LabelArray, epsilon: float) -> float:
    """The mean debiased loss, which has no lower bound.

    >>> debiased_loss(np.array([1e6]), np.array([1]), 0.1) < -1e6
    True
    """
    _check_rows(scores, labels)
    return float(np.mean(np.logaddexp(0.0, scores) - _unbiased(labels, epsilon) * scores))


def _unbiased(labels: LabelArray, epsilon: float) -> FloatArray:
    # (y~ - (1-p)) / (2p-1), where 2p-1 = tanh(eps/2) and 1-p = 1/(1+e^eps).
    flipped = 1.0 / (1.0 + math.exp(epsilon))
    values: FloatArray = (np.asarray(labels, dtype=np.float64) - flipped) / math.tanh(epsilon / 2)
    return values


def _check_rows(scores: FloatArray, labels: LabelArray) -> None:
    if scores.ndim != 1 or scores.shape != labels.shape or not len(scores):
        raise ShapeError(f"scores of shape {scores.shape}, labels of {labels.shape}")
