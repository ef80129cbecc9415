"""The report of a simulated training's model, in which both sides' tables are at hand."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.prepare import NumericRule, Preparation
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.model.coefficient_tests import (
    SideRows,
    coefficient_tests,
    column_effects,
    constant_points,
    exact_errors,
)
from taciturn.model.report import (
    HELD_OUT,
    SET_TO_ZERO,
    TRAINING,
    UNARRIVED,
    fit_of,
    joined_reason,
    judged_rows,
    meaning_of,
    score_scale,
)
from taciturn.model.scores_file import ScoredRows
from taciturn.model.share import ModelShare
from taciturn.model.whole import Part
from taciturn.numerics.bands import Bands, stability
from taciturn.numerics.scorecard import Scale
from taciturn.numerics.sorted_scores import Costs
from taciturn.results.model_report import ComparedScores, ModelReport
from taciturn.simulation.outcome import Outcome
from taciturn.simulation.run import joint_scores
from taciturn.version import __version__


def simulated_report(
    outcome: Outcome, *, costs: Costs | None = None, bands: int = 10, scale: Scale | None = None
) -> ModelReport:
    """What a simulated model is worth, with exact standard errors of all columns."""
    points, data, terms = scale or Scale(), outcome.data, outcome.terms
    agreed, mechanism, shift = terms.agreement, terms.mechanism, terms.log_odds_shift
    labels = data.labels_train.values
    train = ScoredRows(_scores(outcome, data.alice_train, data.bob_train), labels)
    sets = {TRAINING: train}
    if data.held_out:
        held_out = _scores(outcome, data.alice_test, data.bob_test)
        sets[HELD_OUT] = ScoredRows(held_out, data.labels_test.values)
    edges = Bands.of_quantiles(train.scores, bands)
    parts = {
        "bob": (_part(outcome, "bob", data.bob_train, outcome.bob_weights), data.bob_train),
        "alice": (
            _part(outcome, "alice", data.alice_train, outcome.alice_weights),
            data.alice_train,
        ),
    }
    columns = [table.values for _, table in parts.values()]
    fit = fit_of(mechanism, agreed)
    errors = np.split(exact_errors(columns, train.scores, labels, fit), [columns[0].shape[1]])
    tested = list(zip(parts.values(), errors, strict=True))
    exact = mechanism.lossless or fit.flip_epsilon is not None
    result = outcome.result
    return ModelReport(
        role="bob",
        model=f"simulation of {result.dataset}",
        session="simulation",
        mechanism=agreed.mechanism,
        meaning=meaning_of(mechanism, agreed.class_weight),
        log_odds_shift=shift,
        rows=data.labels_train.rows,
        threshold=None,
        judged=tuple(judged_rows(name, rows, edges, shift, costs) for name, rows in sets.items()),
        compared=tuple(
            ComparedScores(
                reference=TRAINING,
                new=name,
                edges=edges.edges,
                stability=stability(edges.counts(train.scores), edges.counts(rows.scores)),
            )
            for name, rows in sets.items()
            if name != TRAINING
        ),
        scale=score_scale(points, constant_points(parts["bob"][0], points, shift)),
        errors="exact" if exact else "at-least",
        errors_reason=joined_reason(agreed, exact=exact),
        coefficients=tuple(
            one for (part, _), known in tested for one in coefficient_tests(part, known, points)
        ),
        effects=tuple(
            effect
            for (part, table), known in tested
            for effect in column_effects(part, known, points, SideRows(table.values, labels))
        ),
        notes=tuple(
            note
            for note, holds in (
                (UNARRIVED, result.converged is False),
                (SET_TO_ZERO, agreed.l1 > 0),
            )
            if holds
        ),
        version=__version__,
    )


def _scores(outcome: Outcome, hers: FeatureTable, his: FeatureTable) -> FloatArray:
    weights, grid = (outcome.alice_weights, outcome.bob_weights), outcome.terms.score_grid
    # What is no number becomes one: a model that diverged is worth what its figures say.
    return np.nan_to_num(joint_scores(hers, his, *weights, grid, outcome.noise_keys))


def _part(outcome: Outcome, role: str, table: FeatureTable, weights: FloatArray) -> Part:
    columns = tuple(name for name in table.columns if name != INTERCEPT)
    share = ModelShare(
        role=role,
        columns=table.columns,
        weights=weights,
        preparation=_rules_of(outcome.data.preparation, columns),
        agreement={},
        session="",
        rows=table.rows,
        data_digest="",
    )
    return Part(share, weights)


def _rules_of(preparation: Preparation, columns: tuple[str, ...]) -> Preparation:
    """The rules that make these columns; where a rule's columns were parted, as they are."""
    rules = tuple(rule for rule in preparation.rules if {*rule.outputs} <= {*columns})
    own = Preparation(rules)
    if own.columns == columns:
        return own
    return Preparation(tuple(NumericRule(name) for name in columns))
