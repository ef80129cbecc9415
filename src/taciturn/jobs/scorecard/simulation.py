"""The report of a simulated training's model, in which both sides' tables are at hand."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.prepare import NumericRule, Preparation
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.jobs.scorecard.build import (
    HELD_OUT,
    L1_PENALTY,
    NOT_CONVERGED,
    TRAINING,
    ReportRequest,
    joint_coefficients,
    model_report,
)
from taciturn.jobs.scorecard.result import ModelReport
from taciturn.jobs.train import Outcome, joint_scores
from taciturn.model.scores_file import ScoredRows
from taciturn.model.share import ModelShare
from taciturn.model.whole import Part


def simulated_report(outcome: Outcome, request: ReportRequest) -> ModelReport:
    """What a simulated model is worth, with exact standard errors of all columns."""
    data, terms, result = outcome.data, outcome.terms, outcome.result
    labels, tables = data.labels_train.values, (data.bob_train, data.alice_train)
    sets = {TRAINING: ScoredRows(_scores(outcome, *tables), labels)}
    if data.held_out:
        held_out = _scores(outcome, data.bob_test, data.alice_test)
        sets[HELD_OUT] = ScoredRows(held_out, data.labels_test.values)
    parts = (
        _part(outcome, "bob", data.bob_train, outcome.bob_weights),
        _part(outcome, "alice", data.alice_train, outcome.alice_weights),
    )
    scores = sets[TRAINING].scores
    notes = {NOT_CONVERGED: result.converged is False, L1_PENALTY: terms.penalty.l1 > 0}
    return model_report(
        terms,
        request,
        joint_coefficients(terms, parts, tables, scores, labels),
        parts[0].model,
        f"simulation of {result.dataset}",
        sets=sets,
        notes=(note for note, holds in notes.items() if holds),
    )


def _scores(outcome: Outcome, bob: FeatureTable, alice: FeatureTable) -> FloatArray:
    weights, grid = (outcome.alice_weights, outcome.bob_weights), outcome.terms.score_grid
    # What is no number becomes one: a model that diverged is worth what its figures say.
    return np.nan_to_num(joint_scores(alice, bob, *weights, grid, outcome.noise_keys))


def _part(outcome: Outcome, role: str, table: FeatureTable, weights: FloatArray) -> Part:
    columns = tuple(name for name in table.columns if name != INTERCEPT)
    rules = outcome.data.preparation.rules
    own = Preparation(tuple(rule for rule in rules if {*rule.outputs} <= {*columns}))
    if own.columns != columns:
        # The columns of a rule were parted: each stands for itself.
        own = Preparation(tuple(NumericRule(name) for name in columns))
    share = ModelShare(
        role=role,
        columns=table.columns,
        weights=weights,
        preparation=own,
        agreement={},
        session="simulation",
        rows=table.rows,
        data_digest="",
    )
    return Part(share, weights)
