"""Parts of a model report that a party and a simulation share: figures of rows, and texts."""

from __future__ import annotations

from taciturn.model.coefficient_tests import Fit
from taciturn.model.scores_file import ScoredRows
from taciturn.numerics.bands import Bands
from taciturn.numerics.calibration_tests import (
    calibration_groups,
    calibration_line,
    hosmer_lemeshow,
    spiegelhalter,
)
from taciturn.numerics.metrics import evaluate, log_odds_shift
from taciturn.numerics.scorecard import Scale
from taciturn.numerics.sorted_scores import (
    Costs,
    SortedScores,
    cheapest,
    cutoffs,
    gains,
    ks_point,
    roc_points,
)
from taciturn.privacy.base import Mechanism
from taciturn.results.model_report import JudgedRows, ScoreScale
from taciturn.settings.agreement import Agreement

TRAINING, HELD_OUT, NEW = "training", "held-out", "new"
# Which part of the rows is called ones.
_CALLED = (0.01, 0.02, 0.05, *(number / 10 for number in range(1, 10)))


def judged_rows(
    name: str, rows: ScoredRows, bands: Bands, shift: float = 0.0, costs: Costs | None = None
) -> JudgedRows:
    """Figures of a set of at least one row.

    ``bands`` are in logits as the training gave them; ``shift`` is by how much class weights have
    moved the logits.
    """
    fitted = name == TRAINING
    ranked, odds = SortedScores.of(rows.scores, rows.labels), rows.scores - shift
    groups = calibration_groups(odds, rows.labels)
    return JudgedRows(
        name=name,
        fitted=fitted,
        metrics=evaluate(rows.scores, rows.labels, shift),
        ks=ks_point(ranked),
        roc=roc_points(ranked),
        gains=gains(ranked),
        groups=groups,
        hosmer_lemeshow=hosmer_lemeshow(groups, fitted=fitted),
        spiegelhalter=spiegelhalter(odds, rows.labels),
        line=calibration_line(odds, rows.labels),
        cutoffs=cutoffs(ranked, _CALLED, shift, costs),
        cheapest=None if costs is None else cheapest(ranked, costs, shift),
        bands=bands.rows(rows.scores, rows.labels, shift),
    )


UNARRIVED = "The training had not converged: Wald's tests assume that it has."
SET_TO_ZERO = "With an L1 penalty standard errors do not hold: it sets weights to 0."


def meaning_of(mechanism: Mechanism, class_weight: tuple[float, float] | None) -> str:
    """Meaning of a predicted probability after such a training."""
    meaning = type(mechanism).meaning
    if class_weight is None:
        return meaning
    if not all(class_weight):
        return f"{meaning}, if both classes had counted: one did not, so it is none"
    return f"{meaning}; it is corrected for the class weights"


def fit_of(mechanism: Mechanism, agreed: Agreement) -> Fit:
    """How a model was fitted, as far as standard errors depend on it."""
    flips, weights = mechanism.label_flips, agreed.class_weight
    return Fit(
        shift=log_odds_shift(weights),
        class_weight=weights,
        flip_epsilon=None if flips is None else flips.epsilon,
    )


def joined_reason(agreed: Agreement, *, exact: bool) -> str:
    """Basis of errors from all sides' rows; ``exact`` if they include all noise."""
    words = ["Exact: from all sides' training rows."]
    if not exact:
        noise = f"without the noise of {agreed.mechanism}."
        words = [f"At least this: from all sides' training rows, {noise}"]
    if agreed.class_weight is not None:
        words.append("With class weights: the sandwich.")
    return " ".join([*words, *_penalty(agreed)])


def bound_reason(agreed: Agreement, *, held_out: bool) -> str:
    """Basis of errors at Bob alone."""
    words = [
        "At least this: Bob alone does not have Alice's columns, only her part of each score. Her "
        "columns one by one can make errors larger, never smaller: these p values are optimistic."
    ]
    if held_out:
        words.append(
            "The bound is estimated on the held-out rows and scaled to the training rows, of which "
            "Bob has no scores."
        )
    return " ".join([*words, *_penalty(agreed)])


def _penalty(agreed: Agreement) -> list[str]:
    if not agreed.l2:
        return []
    return [
        f"Errors are of the likelihood without the penalty (l2 = {agreed.l2:.3g}), at the fitted "
        "weights, which it holds nearer to 0."
    ]


def score_scale(scale: Scale, constant: float | None = None) -> ScoreScale:
    """Scale of points; ``constant`` has the points of a row whose own columns add nothing."""
    return ScoreScale(
        base_score=scale.base_score,
        base_odds=scale.base_odds,
        points_to_double=scale.points_to_double,
        factor=scale.factor,
        offset=scale.offset,
        constant=constant,
    )
