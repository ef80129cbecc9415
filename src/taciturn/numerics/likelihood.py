"""Log likelihood of each row as a function of its score, with two derivatives.

What a training over the whole table needs of the labels::

    value      log p(y | z)
    slope      d value / d z          the residue
    curvature  -d^2 value / d z^2     in [0, 1/4] of true labels, in [-1/4, 1/4] of flipped ones
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, LabelArray
from taciturn.data.label_table import LabelTable
from taciturn.families.base import RowLikelihood
from taciturn.families.registry import BINOMIAL, FAMILIES
from taciturn.numerics.logistic import check_rows

# The sigmoid differs from 0 or 1 by 2^-92 there.
MOST_SCORE = 64.0


class Likelihood(Protocol):
    """Likelihood of rows as a function of their scores, with the labels bound."""

    def __call__(self, scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        """Likelihood of the rows in a block, or of all."""


def label_likelihood(
    labels: LabelArray, likelihood: Callable[[FloatArray, LabelArray], RowLikelihood]
) -> Likelihood:
    """Bind labels of two classes to a likelihood of rows."""

    def bound(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        return likelihood(scores, labels[place])

    return bound


def response_likelihood(
    labels: LabelTable, classes: Callable[[FloatArray, LabelArray], RowLikelihood]
) -> Likelihood:
    """Likelihood of a family's labels; ``classes`` is that of labels of two classes.

    Scores are in the labels' coordinates, and rows count by their weight, 1 on average.
    """
    if labels.kind.has_classes:
        return label_likelihood(labels.values, classes)
    family, response, values = labels.kind, labels.response, labels.values
    offset = None if labels.exposure is None else np.log(labels.exposure)
    weights = None if labels.weights is None else labels.weights / np.mean(labels.weights)
    scale = response.scale

    def bound(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        predictor = response.predictor(scores)
        if offset is not None:
            predictor += offset[place]
        bare = family.likelihood(predictor, values[place])
        # The loss is divided by the square of the scale, and a score counts that many units.
        count = 1.0 if weights is None else weights[place]
        return RowLikelihood(
            bare.value * (count / scale**2), bare.slope * (count / scale), bare.curvature * count
        )

    return bound


def weighted_likelihood(
    scores: FloatArray, labels: LabelArray, class_weight: tuple[float, float] | None
) -> RowLikelihood:
    """Likelihood of true labels; ``class_weight`` has the weights of labels 0 and 1."""
    check_rows(scores, labels)
    rows = FAMILIES[BINOMIAL].likelihood(scores, labels)
    if class_weight is not None:
        weights = np.where(labels, class_weight[1], class_weight[0])
        for part in (rows.value, rows.slope, rows.curvature):
            part *= weights
    return rows


def clip_scores(scores: FloatArray, most: float = MOST_SCORE) -> FloatArray:
    """Scores clipped to ``most`` in size; NaN becomes ``most``.

    Beyond ``MOST_SCORE`` the sigmoid is 0 or 1 to the last digit of a residue. NaN must not raise:
    that Bob stops would tell Alice that there was one.
    """
    return np.fmax(np.fmin(scores, most), -most)
