"""Optimum of the penalised loss over all columns, by Newton's method in clear."""

from __future__ import annotations

import operator
from functools import reduce
from typing import NamedTuple

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.memmap import over_blocks
from taciturn.numerics.damped import damped_solve
from taciturn.numerics.likelihood import Likelihood
from taciturn.numerics.logistic import Penalty
from taciturn.numerics.whitening import centred, centring_offset, training_means

# Newton's method on a convex loss needs about ten; a loss that is not convex may need more.
_MOST_ITERATIONS = 200
_HALVINGS = 40


class Optimum(NamedTuple):
    """Best weights and their penalised mean loss."""

    weights: FloatArray
    loss: float


def penalised_loss(
    scores: FloatArray, likelihood: Likelihood, weights: FloatArray, l2: float, free: int
) -> float:
    """Mean loss plus penalty; the last ``free`` weights (the intercept) cost nothing."""
    return Penalty(l2=l2).value(weights, free) - float(np.mean(likelihood(scores).value))


def optimum(joined: FloatArray, likelihood: Likelihood, l2: float, free: int) -> Optimum:
    """Minimum of the penalised loss over all columns, to machine precision.

    Newton's method from zero, with halved steps. Where the loss is not convex (flipped labels) it
    is a minimum, which need not be the least. The last ``free`` columns (the intercept) carry no
    penalty; where there is one, columns are centred.
    """
    means = training_means(joined, free) if free else None
    penalty = Penalty(l2=l2)
    rows, columns = joined.shape
    ridge = np.full(columns, l2)
    ridge[columns - free :] = 0.0
    weights = np.zeros(columns)

    def curved(place: slice) -> tuple[FloatArray, FloatArray]:
        block = centred(joined[place], means)
        state = likelihood(block @ weights, place)
        return state.slope @ block, (block * state.curvature[:, None]).T @ block

    def loss_of(trial: FloatArray) -> float:
        def value(place: slice) -> float:
            scores = centred(joined[place], means) @ trial
            return float(np.sum(likelihood(scores, place).value))

        mean = sum(over_blocks(value, rows, joined)) / rows
        return float(penalty.value(trial, free) - mean)

    loss = loss_of(weights)
    for _ in range(_MOST_ITERATIONS):
        slopes, curvatures = zip(*over_blocks(curved, rows, joined), strict=True)
        slope = penalty.gradient(weights, free) - reduce(operator.add, slopes) / rows
        matrix = reduce(operator.add, curvatures) / rows + np.diag(ridge)
        step = -damped_solve(matrix, slope)
        if slope @ step > 0.0:
            # Uphill, by a negative curvature of flipped labels.
            step = -damped_solve(matrix, slope, most=columns)
        for halving in range(_HALVINGS):
            trial = weights + 0.5**halving * step
            lower = loss_of(trial)
            if lower < loss:
                break
        else:
            break
        weights, loss = trial, lower
    if free:
        weights[-1] += centring_offset(weights, means)
    return Optimum(weights, loss)
