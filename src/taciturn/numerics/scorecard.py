"""Scorecard points: log-odds on the scale that credit people use.

Points rise as the risk of a label 1 falls. With the base score ``S0``, the odds ``O0`` of a label 0
to a label 1 at that score, and ``PDO``, the points that double the odds [Siddiqi06]::

    factor = PDO / ln 2       offset = S0 - factor ln O0
    points = offset - factor z                        z = ln(odds of a label 1)

``z`` is the score less the shift of class weights, so that the odds are those of the rows. A
column's part of the score, ``c``, is worth ``-factor c`` points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from taciturn.arrays import FloatArray
from taciturn.errors import ConfigError


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
