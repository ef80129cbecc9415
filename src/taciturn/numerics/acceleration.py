"""Whole-table training that nobody watches: the optimised gradient method on a public schedule.

Where no score is seen there is no search. Each side changes to coordinates in which the loss of
*both* tables curves by at most 1, alone and without a label (``Whitening.beside``), and then

    w_(k+1) = (I - P) y_k + X^T (y - sigma(z)) / n       z = X_A y_A + X_B y_B
    y_(k+1) = w_(k+1) + b_k (w_(k+1) - w_k) + g_k (w_(k+1) - y_k)

is a step of length 1 on the penalised loss, P the penalty in these coordinates. The momenta are
``b_k = (t_k - 1) / t_(k+1)`` and ``g_k = t_k / t_(k+1)`` with ``t_(k+1) = (1 + sqrt(1 + 4 t_k^2)) /
2``, and 8 in place of 4 for the last point. The loss of that point y_N is within ``|w*|^2 / (N +
1)^2`` of its least [KimFessler16]: half of what Nesterov's acceleration has, the case ``g = 0``.
The model is w after a step from there, which is no worse.
"""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.numerics.likelihood import Likelihood
from taciturn.numerics.shared_fraction import UNIT_BITS, Momentum
from taciturn.numerics.whitening import Whitening
from taciturn.numerics.whole_table import Fit


def momentum(number: int, passes: int) -> Momentum:
    """The b and g of the step after pass ``number`` of so many, in units of ``2^-UNIT_BITS``.

    >>> [tuple(momentum(number, 42)) for number in (0, 1, 2, 40)]
    [(0, 632), (288, 755), (444, 816), (679, 712)]
    """
    now = 1.0
    for _ in range(number):
        now = _following(now, 4.0)
    last = number == passes - 2
    factor = (1 << UNIT_BITS) / _following(now, 8.0 if last else 4.0)
    return Momentum(math.floor((now - 1.0) * factor), math.floor(now * factor))


def _following(size: float, factor: float) -> float:
    return (1.0 + math.sqrt(1.0 + factor * size * size)) / 2.0


def fit_on_schedule(
    alice: FloatArray,
    own: FloatArray,
    likelihood: Likelihood,
    l2: float,
    free: int,
    passes: int,
    heaviest: float = 1.0,
) -> Fit:
    """Fit in clear, without fixed point: the reference for training on a schedule.

    The last ``free`` of Bob's columns (the intercept) carry no penalty; ``heaviest`` is the largest
    class weight.
    """
    sides = [(values, at) for values, at in ((alice, 0), (own, free)) if values.shape[1]]
    counts = [values.shape[1] for values, _ in sides]
    whitenings = [
        Whitening.of(values, l2, at, heaviest).beside(sum(counts) - values.shape[1])
        for values, at in sides
    ]
    table = np.hstack([w.apply(side) for w, (side, _) in zip(whitenings, sides, strict=True)])
    kept = _blocks([w.kept(l2, at) for w, (_, at) in zip(whitenings, sides, strict=True)])
    now = ahead = np.zeros(table.shape[1])
    for number in range(passes):
        step = table.T @ likelihood(table @ ahead).slope / len(table)
        before, now = now, kept @ ahead + step
        by_step, by_point = (part / (1 << UNIT_BITS) for part in momentum(number, passes))
        ahead = now + by_step * (now - before) + by_point * (now - ahead)
    parts = np.split(now, np.cumsum(counts)[:-1])
    weights = [w.weights(part) for w, part in zip(whitenings, parts, strict=True)]
    return Fit(weights[0], weights[1] if len(weights) > 1 else np.empty(0), table @ now)


def _blocks(squares: list[FloatArray]) -> FloatArray:
    size = sum(len(square) for square in squares)
    whole, at = np.zeros((size, size)), 0
    for square in squares:
        whole[at : at + len(square), at : at + len(square)] = square
        at += len(square)
    return whole
