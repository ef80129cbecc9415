"""Fisher information, standard errors and Wald tests of fitted coefficients.

A logistic regression with the columns X and the probabilities p has the information ::

    I = X' W X        W = diag(p (1 - p))

and its maximum-likelihood coefficients have the covariance ``I^-1``, for many rows. Of labels that
were flipped, each with the chance ``1/(1 + e^eps)``, a row tells less of its score [Warner65]::

    W = (dq/dz)^2 / (q (1 - q))     q = (p e^eps + 1 - p) / (e^eps + 1)

With class weights ``w`` the rows do not count once each, and the covariance is the sandwich
``I^-1 M I^-1`` [White82] with ``I = X' diag(w p (1-p)) X`` and ``M = X' diag(w^2 (y - p)^2) X``.

Wald's test of a coefficient ``b`` with the error ``s`` compares ``b/s`` with a normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.memmap import over_blocks
from taciturn.numerics.logistic import sigmoid

# Directions in which the columns hold less than this, of what they hold on average, say nothing.
_NOTHING = 1e-10
_REACH = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Wald:
    """A coefficient with its error; NaN where the rows do not determine it.

    ``p_value`` is two-sided; ``low`` and ``high`` are the 95 % interval.
    """

    estimate: float
    error: float
    z: float
    p_value: float
    low: float
    high: float


def row_information(scores: FloatArray, flip_epsilon: float | None = None) -> FloatArray:
    """Fisher information of each row about its score; ``flip_epsilon`` for flipped labels."""
    probabilities = sigmoid(scores)
    spread: FloatArray = probabilities * (1 - probabilities)
    if flip_epsilon is None:
        return spread
    kept = sigmoid(np.array([flip_epsilon]))[0]
    seen = probabilities * kept + (1 - probabilities) * (1 - kept)
    row_told: FloatArray = np.square((2 * kept - 1) * spread) / (seen * (1 - seen))
    return row_told


def information(columns: FloatArray, weights: FloatArray, *beside: FloatArray) -> FloatArray:
    """``X' diag(weights) X``, by blocks of rows; ``beside`` has further columns of X."""

    def part(place: slice) -> FloatArray:
        block = np.column_stack([columns[place], *(one[place] for one in beside)])
        product: FloatArray = (block * weights[place, None]).T @ block
        return product

    total = np.zeros((columns.shape[1] + len(beside),) * 2)
    for matrix in over_blocks(part, len(columns), columns):
        total += matrix
    return total


def covariance(matrix: FloatArray, meat: FloatArray | None = None) -> FloatArray:
    """Inverse of an information matrix; with ``meat`` the sandwich.

    A column that others determine, or that is constant zero, has no coefficient of its own: its
    variance is NaN. The others' are what they are without it.
    """
    sizes = np.sqrt(np.diag(matrix))
    sizes = np.where(sizes > 0, sizes, 1.0)
    values, vectors = np.linalg.eigh(matrix / np.outer(sizes, sizes))
    known = values > _NOTHING * max(float(values.max(initial=0.0)), 1e-300)
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T / np.outer(sizes, sizes)
    result: FloatArray = inverse if meat is None else inverse @ meat @ inverse
    unknown = np.square(vectors[:, ~known]).sum(axis=1) > 1e-6
    result[unknown, :] = math.nan
    result[:, unknown] = math.nan
    return result


def wald(estimate: float, error: float) -> Wald:
    """Wald's test that a coefficient is 0, and its interval."""
    if not error > 0:
        return Wald(estimate, math.nan, math.nan, math.nan, math.nan, math.nan)
    z = estimate / error
    reach = _REACH * error
    tail = math.erfc(abs(z) / math.sqrt(2))
    return Wald(estimate, error, z, tail, estimate - reach, estimate + reach)


def errors_of(matrix: FloatArray) -> FloatArray:
    """Standard errors in a covariance matrix."""
    return np.sqrt(np.diag(matrix))
