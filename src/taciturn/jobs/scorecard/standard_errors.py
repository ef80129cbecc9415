"""Standard errors of coefficients: exact where all columns are at hand, a bound at Bob alone.

With Bob's prepared columns ``B`` and Alice's ``A``, the information of the joint model is ::

    I = [ A'WA  A'WB ]          errors^2 of Bob's columns = diag (B'WB - B'WA (A'WA)^-1 A'WB)^-1
        [ B'WA  B'WB ]

What Bob subtracts for her columns he cannot know. He does know ``a = A w_A``, her part of each
score, which is one direction among her columns. With it alone in their place ::

    bound^2 = diag (B'WB - B'Wa (a'Wa)^-1 a'WB)^-1   <=   errors^2

because a projection on fewer directions takes less away. Where newton centred her columns, his
intercept and ``a`` are those of centred ones, and so is the bound of its error. Errors are *at
least* the bound; z values are at most as large as they look, and p values at least.

**What is reported.** The information of the likelihood without the penalty, at the fitted weights.
For the penalties in use (scikit-learn's default) the two hardly differ; a large one holds weights
near zero, which no standard error tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.memmap import over_blocks
from taciturn.numerics.information import covariance, errors_of, information, row_information
from taciturn.numerics.logistic import sigmoid


@dataclass(frozen=True, slots=True)
class Fit:
    """How the model was fitted, as far as errors depend on it.

    ``shift`` is by how much class weights have moved the logits; ``flip_epsilon`` is None where no
    labels were flipped.
    """

    shift: float = 0.0
    class_weight: tuple[float, float] | None = None
    flip_epsilon: float | None = None


def bound_errors(
    own: FloatArray, weights: FloatArray, scores: FloatArray, fit: Fit, rows: int
) -> FloatArray:
    """Lower bounds of one side's standard errors; NaN where the rows do not determine a weight.

    With class weights the bound is that of the likelihood without them, which no weighted fit
    undercuts. ``rows`` is how many rows the model was fitted to; where they are others than these,
    what these tell is taken as many times.
    """
    others = scores - _product(own, weights)
    matrix = information(own, row_information(scores - fit.shift, fit.flip_epsilon), others)
    return errors_of(covariance(matrix * (rows / len(scores))))[: own.shape[1]]


def exact_errors(
    columns: Sequence[FloatArray], scores: FloatArray, labels: LabelArray, fit: Fit
) -> FloatArray:
    """Standard errors of all sides' columns, side by side; NaN where rows determine no weight."""
    joined = np.concatenate(columns, axis=1)
    if fit.class_weight is None:
        weights = row_information(scores - fit.shift, fit.flip_epsilon)
        return errors_of(covariance(information(joined, weights)))
    counted = np.where(np.equal(labels, 1), fit.class_weight[1], fit.class_weight[0])
    probabilities = sigmoid(scores)
    bread = information(joined, counted * probabilities * (1 - probabilities))
    meat = information(joined, np.square(counted * (labels - probabilities)))
    return errors_of(covariance(bread, meat))


def _product(columns: FloatArray, weights: FloatArray) -> FloatArray:
    product = np.empty(len(columns))

    def part(place: slice) -> None:
        product[place] = columns[place] @ weights

    for _ in over_blocks(part, len(columns), columns):
        pass
    return product
