"""``OpenedScores``: scores of the same rows that were opened to Bob, and his columns of these rows.

The rows are held-out rows, new rows, or the training rows of a study, each scored by the models of
the fold that held it out. A score is the sum of a linear function of a row of Alice's and of one of
Bob's, with Alice's noise. With shared weights Bob knows neither function.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.privacy.row_noise import SCORE_NOISE_BITS

SCORE_NOISE = 2.0**-SCORE_NOISE_BITS
"""Alice's noise on a score is uniform between this and its negative."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """A second scoring of the same rows by the first model, with other values of Bob's columns."""

    features: FeatureTable
    scores: FloatArray = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class OpenedScores:
    """Scores that were opened to a semi-honest Bob after trainings.

    ``scores`` has a row for each row of his table and a column for each model, and ``columns`` is
    Alice's number of columns. ``bob_weights`` are his part of each model in the order of the
    scores, where he knows it.
    """

    features: FeatureTable
    labels: LabelTable = field(repr=False)
    scores: FloatArray = field(repr=False)
    columns: int
    bob_weights: FloatArray | None = field(default=None, repr=False)
    rescored: Rescored | None = None

    @property
    def models(self) -> int:
        """Number of models that scored these rows."""
        return int(self.scores.shape[1])
