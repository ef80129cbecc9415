"""What a family of generalised linear models is: a link, a likelihood, a deviance, a label check.

With the linear predictor ``eta`` of a row, its offset included::

    mean       the inverse of the link, of eta
    deviance   unit deviance: twice the log-likelihood gap to the saturated model
    value      minus half of the deviance         slope, curvature: its derivatives in eta

**Coordinates** (``Response``). A score is ``z`` with ``eta = location + scale z + offset``. At
``z = 0`` the model is a constant, the best one where there is an intercept, whatever the unit of
the labels: Newton's method starts there, and the range of scores is that of a logistic regression.
Only Bob knows location and scale. They change no model: a penalty on ``w`` with the loss divided by
``scale^2`` is the same penalty on ``scale w``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, LabelArray

Link = Literal["logit", "identity", "log"]


@dataclass(frozen=True, slots=True)
class RowLikelihood:
    """Log likelihood, slope and curvature of each row, times the weight of the row."""

    value: FloatArray = field(repr=False)
    slope: FloatArray = field(repr=False)
    curvature: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """Coordinates of scores: ``eta = location + scale z``, without a row's offset."""

    location: float = 0.0
    scale: float = 1.0

    def predictor(self, scores: FloatArray) -> FloatArray:
        """Linear predictor without offset, from scores."""
        predictor: FloatArray = self.location + self.scale * scores
        return predictor


UNCHANGED = Response()
"""Coordinates in which a score is the linear predictor without offset."""


class Family(ABC):
    """A distribution of labels and its link.

    Facts:
        name: In settings, records and errors.
        link: Name of the link function.
        mean_name: What a predicted mean is, in tables and files.
        has_classes: Whether labels are the two classes 0 and 1, and not numbers.
        exact_labels: Whether labels of the family can be guessed exactly, as classes and counts.
        linear_residue: Whether the slope of a row is its label less its score.
        two_labels: Two labels that are possible, for made-up ones.
        curvature: Largest curvature of a row of weight 1; None where there is no bound.
        step_lengths: Lengths that a search tries of each Newton step. Without a bound a whole step
            can overshoot by any factor, so that short ones are tried too.
        most_score: Scores are clipped to this size.
        valid: Which labels are possible, in words.
        remedy: What to do about others.
    """

    name: ClassVar[str]
    link: ClassVar[Link]
    mean_name: ClassVar[str]
    has_classes: ClassVar[bool] = False
    exact_labels: ClassVar[bool] = False
    linear_residue: ClassVar[bool] = False
    two_labels: ClassVar[tuple[int, int]] = (1, 2)
    curvature: ClassVar[float | None] = None
    step_lengths: ClassVar[tuple[float, ...]] = (1.0, 0.5, 0.25, 0.0625, 0.015625)
    most_score: ClassVar[float] = 64.0
    valid: ClassVar[str]
    remedy: ClassVar[str]

    @property
    def takes_exposure(self) -> bool:
        """Whether a logarithm of an exposure can be added to the linear predictor."""
        return self.link == "log"

    def mean(self, predictor: FloatArray) -> FloatArray:
        """Means of linear predictors."""
        if self.link == "log":
            with np.errstate(over="ignore"):
                return np.exp(predictor)
        return np.asarray(predictor, dtype=np.float64)

    @abstractmethod
    def likelihood(self, predictor: FloatArray, labels: LabelArray) -> RowLikelihood:
        """Minus half of the deviance of each row, with its derivatives in the predictor."""

    @abstractmethod
    def deviance(self, labels: LabelArray, means: FloatArray) -> FloatArray:
        """Deviance of each row."""

    @abstractmethod
    def possible(self, labels: LabelArray) -> BoolArray:
        """Which finite labels the family can have."""

    def response(
        self, labels: LabelArray, exposure: FloatArray, weights: FloatArray, *, intercept: bool
    ) -> Response:
        """Coordinates of scores: that of the best constant is 0, where there is an intercept."""
        return Response(self.constant(labels, exposure, weights) if intercept else 0.0)

    def constant(self, labels: LabelArray, exposure: FloatArray, weights: FloatArray) -> float:
        """Linear predictor, without offset, of the best constant model."""
        total, expected = float(weights @ labels), float(weights @ exposure)
        if self.link != "log":
            return total / float(weights.sum())
        # Half a unit of the label more, where there is none: a mean of 0 has no logarithm.
        return float(np.log(max(total, 0.5) / expected))
