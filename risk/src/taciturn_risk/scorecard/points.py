"""Scorecard points: log-odds on the scale that credit people use.

Points rise as the risk of a label 1 falls. With the base score ``S0``, the odds ``O0`` of a label 0
to a label 1 at that score, and ``PDO``, the points that double the odds [Siddiqi06]::

    factor = PDO / ln 2       offset = S0 - factor ln O0
    points = offset - factor z                        z = ln(odds of a label 1)

``z`` is the score less the shift of class weights, so that the odds are those of the rows. A
column's part of the score, ``c``, is worth ``-factor c`` points.

Fisher information, standard errors and Wald tests of fitted coefficients.

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
from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.memmap import over_blocks


@dataclass(frozen=True, slots=True)
class Scale:
    """Scale of points: ``base_score`` at ``base_odds``, labels 0 for each label 1.

    ``points_to_double`` more points double the odds of a label 0.
    """

    base_score: float = 600.0
    base_odds: float = 50.0
    points_to_double: float = 20.0

    def __post_init__(self) -> None:
        positive = self.base_odds > 0 and self.points_to_double > 0
        numbers = (self.base_score, self.base_odds, self.points_to_double)
        if not positive or not all(map(math.isfinite, numbers)):
            raise ConfigError(
                "base odds and points to double the odds must be positive",
                hint="use 600, 50 and 20, for example",
            )

    @property
    def factor(self) -> float:
        """Points for each unit of log-odds."""
        return self.points_to_double / math.log(2)

    @property
    def offset(self) -> float:
        """Points at even odds."""
        return self.base_score - self.factor * math.log(self.base_odds)

    def points(self, scores: FloatArray, shift: float = 0.0) -> FloatArray:
        """Points of rows; ``shift`` is by how much class weights have moved the logits."""
        return self.offset - self.factor * (scores - shift)

    def worth(self, score: float) -> float:
        """Points of a part of the score."""
        return -self.factor * score


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
