"""Result of ``taciturn model report``: figures on rows, and coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from taciturn.numerics.metrics import Metrics
from taciturn.numerics.regression_metrics import RegressionMetrics
from taciturn.numerics.threshold import Threshold
from taciturn.results.serialise import OMITTED, Result
from taciturn_risk.scorecard.bands import BandRow
from taciturn_risk.scorecard.calibration_tests import (
    CalibrationGroup,
    CalibrationLine,
    HosmerLemeshow,
    Spiegelhalter,
)
from taciturn_risk.scorecard.gains import Cutoff, GainsRow, KsPoint, RocPoint
from taciturn_risk.scorecard.stability import Stability

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page

ErrorKind = Literal["exact", "at-least", "estimated", "none"]
"""How standard errors are to be taken: a bound from below may itself be estimated on other rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRows:
    """A model's figures on one set of rows.

    ``name`` is training, held-out or new; ``fitted`` says whether the model was fitted to these
    rows. ``gains`` (by tenths) and ``bands`` begin with the riskiest rows; ``line`` is how the
    log-odds would have to be moved. ``ks`` is None where a class is absent, ``cheapest`` without
    costs.
    """

    name: str
    fitted: bool
    metrics: Metrics
    ks: KsPoint | None
    roc: tuple[RocPoint, ...] = field(repr=False)
    gains: tuple[GainsRow, ...] = field(repr=False)
    groups: tuple[CalibrationGroup, ...] = field(repr=False)
    hosmer_lemeshow: HosmerLemeshow
    spiegelhalter: Spiegelhalter
    line: CalibrationLine
    cutoffs: tuple[Cutoff, ...] = field(repr=False)
    cheapest: Cutoff | None
    bands: tuple[BandRow, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMeans:
    """A model's figures on one set of rows, of other families than ``binomial``."""

    name: str
    fitted: bool
    metrics: RegressionMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedScores:
    """Whether the scores of one set of rows are spread like another's."""

    reference: str
    new: str
    edges: tuple[float, ...]
    stability: Stability


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreScale:
    """The scale of points; ``constant`` are those of a row whose own columns add nothing.

    It is None where a side may not see the intercept.
    """

    base_score: float
    base_odds: float
    points_to_double: float
    factor: float
    offset: float
    constant: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoefficientTest:
    """A column's coefficient with Wald's test; what is not known is NaN.

    ``prepared`` is the weight of the prepared column, and ``error``, ``low`` and ``high`` (its 95 %
    interval) are of it; ``original`` and ``points`` are for one unit of the raw column, None where
    it has none. ``clipped``: the prepared value is held within bounds. ``p_value`` is two-sided.
    """

    side: str
    column: str
    prepared: float
    original: float | None
    clipped: bool
    error: float
    z: float
    p_value: float
    low: float
    high: float
    points: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectLevel:
    """A bin or a category: its rows, and what it does to the score.

    ``reference``: it has no column, and the others are compared with it. ``effect`` is what it adds
    to the log-odds beside the reference, ``points`` the same in scorecard points. ``rows`` are
    training rows; None, like the ``rate`` of ones, where not known.
    """

    level: str
    reference: bool
    rows: int | None
    rate: float | None
    effect: float
    error: float
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEffect:
    """A column that was cut into bins, or has categories."""

    side: str
    column: str
    levels: tuple[EffectLevel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport(Result):
    """Report of one side on a model.

    ``meaning`` is what a probability is the probability of. ``log_odds_shift`` is by how much class
    weights moved the scores; probabilities are corrected. ``judged`` is empty at Alice. ``errors``
    says whether standard errors are exact, bounds from below, or absent. ``coefficients`` are those
    that this side may see, the intercept last; ``html`` is where the page was written.
    Of other families than ``binomial`` the figures are in ``means``, and there is no ``scale``.
    """

    kind: ClassVar[str] = "model-report"
    known_by: ClassVar[str] = "judged"

    role: str
    model: str
    session: str
    mechanism: str
    family: str | None = field(default=None, metadata=OMITTED)
    meaning: str | None
    log_odds_shift: float
    rows: int
    threshold: Threshold | None
    judged: tuple[JudgedRows, ...]
    means: tuple[JudgedMeans, ...] = ()
    compared: tuple[ComparedScores, ...]
    scale: ScoreScale | None
    errors: ErrorKind
    errors_reason: str
    coefficients: tuple[CoefficientTest, ...]
    effects: tuple[ColumnEffect, ...]
    notes: tuple[str, ...]
    version: str
    html: str | None = field(default=None, metadata=OMITTED)

    @property
    def score_scale(self) -> ScoreScale:
        """The scale of points; TypeError where labels have no classes."""
        if self.scale is None:
            raise TypeError(f"{self.family} has no points")
        return self.scale

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        if self.family is not None:
            from taciturn_risk.scorecard.means import means_blocks

            return means_blocks(self)
        from taciturn_risk.scorecard.report import report_blocks

        return report_blocks(self)

    def page(self, made: str = "") -> Page:
        """The HTML report; ``made`` is in ISO 8601."""
        if self.family is not None:
            from taciturn_risk.scorecard.means import means_page

            return means_page(self, made)
        from taciturn_risk.scorecard.page import model_page

        return model_page(self, made)
