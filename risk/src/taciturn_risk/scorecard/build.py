"""Puts a model report together from scores, weights and rows, of a party or of a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.prepare import Preparation
from taciturn.data.rules import NumericRule
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.errors import ConfigError
from taciturn.model.scores_file import ScoredRows
from taciturn.model.share import ModelShare
from taciturn.model.whole import ModelPart
from taciturn.numerics.metrics import evaluate
from taciturn.numerics.sorted_scores import SortedScores
from taciturn.numerics.threshold import Threshold
from taciturn.party.applied_model import probability_meaning
from taciturn.protocol.terms import Terms
from taciturn.version import __version__
from taciturn_risk.scorecard.bands import Bands
from taciturn_risk.scorecard.calibration_tests import (
    calibration_groups,
    calibration_line,
    hosmer_lemeshow,
    spiegelhalter,
)
from taciturn_risk.scorecard.card import (
    Fit,
    SideWeights,
    coefficient_tests,
    column_effects,
    constant_points,
    exact_errors,
)
from taciturn_risk.scorecard.gains import Costs, cheapest, cutoffs, gains, ks_point, roc_points
from taciturn_risk.scorecard.points import Scale
from taciturn_risk.scorecard.result import (
    ComparedScores,
    ErrorKind,
    JudgedRows,
    ModelReport,
    ScoreScale,
)
from taciturn_risk.scorecard.stability import stability

if TYPE_CHECKING:
    from taciturn.jobs.train.simulation import Outcome

TRAINING, HELD_OUT, NEW = "training", "held-out", "new"
NOT_CONVERGED = "The training had not converged: Wald's tests assume that it has."
L1_PENALTY = "With an L1 penalty standard errors do not hold: it sets weights to 0."
# Which part of the rows is called ones.
_CALLED = (0.01, 0.02, 0.05, *(number / 10 for number in range(1, 10)))


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Options of a report.

    ``scores`` are those of new rows, as ``taciturn predict`` writes them, ``labels`` a table with
    their labels. ``bands`` is the number of score bands, or the probabilities at which they begin.
    Exact errors need all Alices' models and their raw tables in the same order.
    """

    model: Path | None = None
    scores: Path | None = None
    labels: Path | None = None
    costs: Costs | None = None
    bands: int | tuple[float, ...] = 10
    scale: Scale = field(default_factory=Scale)
    alice_models: tuple[Path, ...] = ()
    alice_rows: tuple[Path, ...] = ()
    alice_id: str | None = None


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The weights that may be shown, and what their standard errors rest on."""

    errors: ErrorKind
    reason: str
    sides: tuple[SideWeights, ...] = ()
    labels: LabelArray | None = None


def model_report(
    terms: Terms,
    request: ReportRequest,
    coefficients: Coefficients,
    share: ModelShare,
    model: str,
    *,
    sets: Mapping[str, ScoredRows],
    new_scores: FloatArray | None = None,
    threshold: Threshold | None = None,
    notes: Iterable[str] = (),
) -> ModelReport:
    """The report of one side's ``share`` of a model on ``sets`` of rows.

    The first set is the reference. ``model`` says where the model is, and ``new_scores`` are of
    rows whose labels may not be known.
    """
    scale, shift = request.scale, terms.log_odds_shift
    scored = {name: rows.scores for name, rows in sets.items()}
    if new_scores is not None:
        scored[NEW] = new_scores
    bands = _bands(request.bands, next(iter(scored.values()), None), shift)
    reference = next((name for name in (TRAINING, HELD_OUT) if name in scored), None)
    base = None if reference is None else bands.counts(scored.pop(reference))
    # Bob's own first: they are there in every report of his.
    sides = sorted(coefficients.sides, key=lambda side: not side.part.model.is_bob)
    constants = [
        constant_points(side.part, scale, shift) for side in sides if side.part.model.is_bob
    ]
    return ModelReport(
        role=share.role,
        model=model,
        session=share.session,
        mechanism=terms.agreement.mechanism,
        meaning=probability_meaning(terms.agreement) if share.is_bob else None,
        log_odds_shift=shift,
        rows=share.rows,
        threshold=threshold,
        judged=tuple(
            judged_rows(name, rows, bands, shift, request.costs) for name, rows in sets.items()
        ),
        compared=tuple(
            ComparedScores(
                reference=str(reference),
                new=name,
                edges=bands.edges,
                stability=stability(base, bands.counts(scores)),
            )
            for name, scores in scored.items()
            if base is not None
        ),
        scale=ScoreScale(
            base_score=scale.base_score,
            base_odds=scale.base_odds,
            points_to_double=scale.points_to_double,
            factor=scale.factor,
            offset=scale.offset,
            constant=next(iter(constants), None),
        ),
        errors=coefficients.errors,
        errors_reason=coefficients.reason,
        coefficients=tuple(
            coefficient for side in sides for coefficient in coefficient_tests(side, scale)
        ),
        effects=tuple(
            effect for side in sides for effect in column_effects(side, scale, coefficients.labels)
        ),
        notes=tuple(notes),
        version=__version__,
    )


def _bands(chosen: int | tuple[float, ...], scores: FloatArray | None, shift: float) -> Bands:
    if isinstance(chosen, tuple):
        if not all(0 < edge < 1 for edge in chosen):
            raise ConfigError(
                "score bands begin at probabilities between 0 and 1",
                hint="use 10 bands, or edges such as 0.02,0.05,0.1",
            )
        edges = np.log(np.array(chosen) / (1 - np.array(chosen))) + shift
        return Bands(tuple(edges.tolist()))
    return Bands(()) if scores is None else Bands.from_quantiles(scores, chosen)


def judged_rows(
    name: str, rows: ScoredRows, bands: Bands, shift: float = 0.0, costs: Costs | None = None
) -> JudgedRows:
    """The figures of a set of at least one row.

    ``bands`` are in logits as the training gave them; ``shift`` is by how much class weights have
    moved the logits.
    """
    fitted = name == TRAINING
    ranked, odds = SortedScores.from_scores(rows.scores, rows.labels), rows.scores - shift
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


# --- standard errors ------------------------------------------------------------------------------


def fit_of(terms: Terms) -> Fit:
    """Facts of a model's fit that standard errors depend on."""
    flips = terms.mechanism.label_flips
    return Fit(
        shift=terms.log_odds_shift,
        class_weight=terms.agreement.class_weight,
        flip_epsilon=None if flips is None else flips.epsilon,
    )


def joint_coefficients(
    terms: Terms,
    parts: Iterable[ModelPart],
    tables: Sequence[FeatureTable],
    scores: FloatArray,
    labels: LabelArray,
) -> Coefficients:
    """All sides' weights with their standard errors, which need all sides' training rows."""
    agreed, fit = terms.agreement, fit_of(terms)
    columns = [table.values for table in tables]
    errors = exact_errors(columns, scores, labels, fit)
    ends = np.cumsum([values.shape[1] for values in columns])[:-1]
    sides = tuple(map(SideWeights, parts, np.split(errors, ends), tables))
    exact = terms.mechanism.lossless or fit.flip_epsilon is not None
    reason = "Exact: from all sides' training rows."
    if not exact:
        noise = f"without the noise of {agreed.mechanism}."
        reason = f"At least this: from all sides' training rows, {noise}"
    if agreed.class_weight is not None:
        reason += " With class weights: the sandwich."
    kind: ErrorKind = "exact" if exact else "at-least"
    return Coefficients(kind, reason + penalty_reason(terms), sides, labels)


def penalty_reason(terms: Terms) -> str:
    """Effect of an L2 penalty on standard errors; empty without one."""
    if not terms.agreement.l2:
        return ""
    return (
        f" Errors are of the likelihood without the penalty (l2 = {terms.agreement.l2:.3g}), at "
        "the fitted weights, which it holds nearer to 0."
    )


def simulated_report(outcome: Outcome, request: ReportRequest) -> ModelReport:
    """Report of a simulated model, with exact standard errors of all columns."""
    data, terms, result = outcome.data, outcome.terms, outcome.result
    labels, tables = data.labels_train.values, (data.bob_train, data.alice_train)
    sets = {TRAINING: ScoredRows.from_labels(_scores(outcome, *tables), data.labels_train)}
    if data.held_out:
        held_out = _scores(outcome, data.bob_test, data.alice_test)
        sets[HELD_OUT] = ScoredRows.from_labels(held_out, data.labels_test)
    parts = (
        _part(outcome, "bob", data.bob_train, outcome.bob_weights),
        _part(outcome, "alice", data.alice_train, outcome.alice_weights),
    )
    if not terms.agreement.kind.has_classes:
        from taciturn_risk.scorecard.means import means_report

        named, sides = f"simulation of {result.data.dataset}", map(SideWeights, parts)
        return means_report(terms, sides, parts[0].model, named, sets=sets)
    scores = sets[TRAINING].scores
    notes = {NOT_CONVERGED: result.convergence.converged is False, L1_PENALTY: terms.penalty.l1 > 0}
    return model_report(
        terms,
        request,
        joint_coefficients(terms, parts, tables, scores, labels),
        parts[0].model,
        f"simulation of {result.data.dataset}",
        sets=sets,
        notes=(note for note, holds in notes.items() if holds),
    )


def _scores(outcome: Outcome, bob: FeatureTable, alice: FeatureTable) -> FloatArray:
    # Imported here: the report of a party needs no simulation.
    from taciturn.jobs.train.simulation import joint_scores

    weights, grid = (outcome.alice_weights, outcome.bob_weights), outcome.terms.score_grid
    # What is no number becomes one: a model that diverged is worth what its figures say.
    return np.nan_to_num(joint_scores(alice, bob, *weights, grid, outcome.noise_keys))


def _part(outcome: Outcome, role: str, table: FeatureTable, weights: FloatArray) -> ModelPart:
    columns = tuple(name for name in table.columns if name != INTERCEPT)
    rules = outcome.data.preparation.rules
    prepared = Preparation(tuple(rule for rule in rules if {*rule.outputs} <= {*columns}))
    if prepared.columns != columns:
        # The columns of a rule were parted: each stands for itself.
        prepared = Preparation(tuple(NumericRule(name) for name in columns))
    response = outcome.data.labels_train.response
    weights = response.scale * weights
    if table.free:
        weights[-1] += response.location
    share = ModelShare(
        role=role,
        columns=table.columns,
        weights=weights,
        preparation=prepared,
        agreement=outcome.terms.agreement.model_dump(),
        response=asdict(response),
        session="simulation",
        rows=table.rows,
        data_digest="",
    )
    return ModelPart(share, weights)
