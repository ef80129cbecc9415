"""``gaussian``: any number, with the identity link: ridge regression."""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn.families.base import Family, Response, RowLikelihood


class Gaussian(Family):
    """The sum of squares; in the coordinates of ``Response`` its curvature is 1."""

    name = "gaussian"
    link = "identity"
    mean_name = "mean"
    linear_residue = True
    curvature = 1.0
    step_lengths = (1.0, 0.25)
    # In standard deviations of the label: one row can be the square root of the rows away.
    most_score = 2.0**20
    valid = "finite numbers"
    remedy = "replace what is not a number, or drop those rows"

    def likelihood(self, predictor: FloatArray, labels: LabelArray) -> RowLikelihood:
        """Minus half of the squared residue."""
        slope = labels - predictor
        return RowLikelihood(-0.5 * slope * slope, slope, np.ones(len(slope)))

    def deviance(self, labels: LabelArray, means: FloatArray) -> FloatArray:
        """Squared residue."""
        deviances: FloatArray = np.square(labels - means)
        return deviances

    def possible(self, labels: LabelArray) -> BoolArray:
        """All."""
        return np.ones(len(labels), dtype=np.bool_)

    def response(
        self, labels: LabelArray, exposure: FloatArray, weights: FloatArray, *, intercept: bool
    ) -> Response:
        """Labels in standard deviations, from their mean where there is an intercept."""
        location = self.constant(labels, exposure, weights) if intercept else 0.0
        square = float(weights @ np.square(labels - location)) / float(weights.sum())
        return Response(location, math.sqrt(square) or 1.0)
