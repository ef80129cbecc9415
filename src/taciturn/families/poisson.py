"""``poisson``: counts, with the log link: claims, visits, purchases."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray
from taciturn.families.base import Family, RowLikelihood


class Poisson(Family):
    """Mean and variance of a count are the same; means per exposure are of any size."""

    name = "poisson"
    link = "log"
    mean_name = "expected"
    exact_labels = True
    valid = "0 or more"
    remedy = "a count is never negative: correct these rows, or use {family}"

    def likelihood(self, predictor: FloatArray, labels: LabelArray) -> RowLikelihood:
        """``y eta - mu`` less its largest value, ``y log y - y``."""
        mean = self.mean(predictor)
        return RowLikelihood(labels * predictor - mean - _most(labels), labels - mean, mean)

    def deviance(self, labels: LabelArray, means: FloatArray) -> FloatArray:
        """``2 (y log(y/mu) - y + mu)``, and 2 mu where the count is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithm = np.where(labels > 0, labels * np.log(means), 0.0)
        deviances: FloatArray = 2.0 * (_most(labels) - logarithm + means)
        return deviances

    def possible(self, labels: LabelArray) -> BoolArray:
        """0 or more; a rate per exposure need not be a whole number."""
        return labels >= 0


def _most(labels: LabelArray) -> FloatArray:
    """``y log y - y``, 0 where the count is 0."""
    counts = np.asarray(labels, dtype=np.float64)
    most: FloatArray = counts * np.log(np.where(counts > 0, counts, 1.0)) - counts
    return most
