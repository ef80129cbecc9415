"""What ``taciturn model report`` says of a model: its figures on rows, and its coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from taciturn.numerics.bands import BandRow
from taciturn.numerics.calibration_tests import (
    CalibrationGroup,
    CalibrationLine,
    HosmerLemeshow,
    Spiegelhalter,
)
from taciturn.numerics.cutoffs import Cutoff
from taciturn.numerics.gains import GainsRow
from taciturn.numerics.metrics import Metrics
from taciturn.numerics.roc import KsPoint, RocPoint
from taciturn.numerics.stability import Stability
from taciturn.numerics.threshold import Threshold
from taciturn.results.serialise import OMITTED, Result

ErrorKind = Literal["exact", "at-least", "estimated", "none"]
"""How standard errors are to be taken: a bound from below may itself be estimated on other rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRows:
    """A model's figures on one set of rows.

    Args:
        name: training, held-out or new.
        fitted: Whether the model was fitted to these rows.
        metrics: AUC, KS, Brier score and the like, with intervals.
        ks: Where KS is reached; None where a class is absent.
        roc: The curve.
        gains: By tenths of the rows, the riskiest first.
        groups: Observed rates beside probabilities, by tenths of the rows.
        hosmer_lemeshow: The test of calibration by groups.
        spiegelhalter: The test of calibration without groups.
        line: How the log-odds would have to be moved.
        cutoffs: What happens at thresholds.
        cheapest: The threshold that costs least on these rows; None without costs.
        bands: The score bands, the riskiest first.
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

    Args:
        side: Whose column it is.
        column: The prepared column.
        prepared: The weight of the prepared column.
        original: The same for one unit of the raw column; None where it has none.
        clipped: Whether the prepared value is held within bounds.
        error: The standard error of the prepared weight.
        z: The weight over its error.
        p_value: Wald's, on both sides.
        low: The lower end of the weight's 95 % interval.
        high: The upper end.
        points: What one unit of the raw column is worth, in scorecard points.
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

    Args:
        level: Its name.
        reference: Whether it is the one that has no column, and the others are compared with.
        rows: How many training rows it has; None where that is not known.
        rate: The rate of ones among them; None likewise.
        effect: What it adds to the log-odds, beside the reference.
        error: The standard error of that.
        points: The same in scorecard points.
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
    """Everything that one side may say of how a model works.

    Args:
        role: Whose it is.
        model: The model's file.
        session: The training's.
        mechanism: What protected the labels.
        meaning: What a probability is the probability of.
        log_odds_shift: By how much class weights moved the scores; probabilities are corrected.
        rows: How many rows it was trained on.
        threshold: Above which score the model's file calls a row a one.
        judged: Its figures, for each set of rows with scores; none at Alice.
        compared: The stability of scores.
        scale: The scale of points.
        errors: Whether standard errors are exact, bounds from below, or not there.
        errors_reason: Why, and what they rest on.
        coefficients: Those that this side may see; the intercept last.
        effects: Bins and categories of the same columns.
        notes: What is worth knowing.
        html: Where the page was written.
    """

    role: str
    model: str
    session: str
    mechanism: str
    meaning: str | None
    log_odds_shift: float
    rows: int
    threshold: Threshold | None
    judged: tuple[JudgedRows, ...]
    compared: tuple[ComparedScores, ...]
    scale: ScoreScale
    errors: ErrorKind
    errors_reason: str
    coefficients: tuple[CoefficientTest, ...]
    effects: tuple[ColumnEffect, ...]
    notes: tuple[str, ...]
    version: str
    html: str | None = field(default=None, metadata=OMITTED)
