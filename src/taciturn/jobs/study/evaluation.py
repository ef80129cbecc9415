"""What Bob makes of a study that has ended: how good each model is, and which is best.

All of it depends on labels. So it is computed when the last word has been said and the connection
is closed, as after a single training (``taciturn.jobs.train.evaluation``).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import FileError
from taciturn.jobs.study.plan import StudyModel
from taciturn.jobs.study.result import FoldFigures, StudiedSetting, StudyRun, StudyTable
from taciturn.model.share import ModelShare
from taciturn.numerics.convergence import assess_convergence
from taciturn.numerics.metrics import Metrics, added_auc, evaluate
from taciturn.party.model_file import keep_scores
from taciturn.results.serialise import record_of
from taciturn.rng import KeyedEntropy

if TYPE_CHECKING:
    from taciturn.jobs.study.job import FinishedStudy, StudySide


def evaluated(side: StudySide, finished: FinishedStudy) -> StudyRun:
    """The result with all figures, which go into the models' files too."""
    settings = [_evaluate(side, finished, one) for one in finished.run.study.settings]
    run = replace(finished.run, study=StudyTable.from_settings(side.plan.study, settings))
    return run if run.study.best is None else _compared(side, run, run.study.best)


def _evaluate(side: StudySide, finished: FinishedStudy, one: StudiedSetting) -> StudiedSetting:
    *folds, whole = (model for model in side.plan.models if model.point.number == one.number)
    trained = next(model for model in finished.trained if model.number == whole.number)
    arrived = assess_convergence(trained.losses)
    figures = (_metrics(side, model) for model in folds)
    judged = one.judged(
        tuple(
            FoldFigures(model.scored, math.nan, math.nan, math.nan)
            if metrics is None
            else FoldFigures.from_metrics(metrics)
            for model, metrics in zip(folds, figures, strict=True)
        ),
        _metrics(side, whole),
    )
    judged = replace(judged, converged=arrived.converged, suspected_wraps=trained.wraps)
    _write(side, whole, judged, arrived.diverged)
    return judged


def _metrics(side: StudySide, model: StudyModel) -> Metrics | None:
    scores, labels = side.scores_of(model), side.plan.labels_of(model)
    if scores is None or labels is None:
        return None
    return evaluate(np.nan_to_num(scores), labels.values, model.terms.log_odds_shift)


def _write(side: StudySide, model: StudyModel, one: StudiedSetting, diverged: bool | None) -> None:
    """Add the figures to the model's file, and leave Bob's scores beside it."""
    scores: FloatArray | None = side.scores_of(model)
    threshold = side.threshold_of(side.plan.labels_of(model), scores, model.terms)
    metrics: dict[str, Any] = {"threshold": record_of(threshold)}
    if one.held_out is not None:
        metrics["held_out"] = record_of(one.held_out)
    metrics |= {"converged": one.converged, "diverged": diverged}
    path = side.model_path(one.number)
    # A file that was moved meanwhile is not touched.
    with suppress(FileError):
        share = ModelShare.load(path)
        replace(share, metrics=share.metrics | metrics).save(path)
        keep_scores(path, share.session, side.tables, None, scores, side.log)


def _compared(side: StudySide, run: StudyRun, best: int) -> StudyRun:
    """What Bob's columns alone would have given, and what the partner adds."""
    # Bob alone has labels, and only he loads his programs.
    from taciturn.protocol.bob.baseline import LabelPartyBaseline

    models = side.plan.models
    model = next(one for one in models if one.point.number == best and one.fold is None)
    tables, scores = side.tables, side.scores_of(model)
    labels, truth = tables.labels, tables.held_out_labels
    if tables.held_out is None or labels is None or truth is None or scores is None:
        return run
    entropy, shift = KeyedEntropy.from_system(), model.terms.log_odds_shift
    alone = LabelPartyBaseline.fit(tables.train, labels, model.terms, entropy).scores(
        tables.held_out
    )
    return replace(
        run,
        bob_alone=evaluate(np.nan_to_num(alone), truth.values, shift),
        partner_adds=added_auc(np.nan_to_num(scores), alone, truth.values),
    )
