"""Evaluation of a study at Bob: how good each model is, and which is best.

All of it depends on labels. So it is computed when the last message has been sent and the
connection is closed, as after a single training (``taciturn.jobs.train.evaluation``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from taciturn.arrays import FloatArray
from taciturn.jobs.study.plan import StudyModel, StudyPlan
from taciturn.jobs.study.result import FoldFigures, StudiedSetting, StudyRun, StudyTable
from taciturn.jobs.study.sums import judged_by_sum
from taciturn.jobs.train.evaluation import (
    LoadScores,
    add_to_file,
    convergence_of,
    threshold_of,
)
from taciturn.jobs.train.finished import FinishedTraining
from taciturn.jobs.train.model_quality import baseline_of, metrics_of
from taciturn.numerics.label_metrics import ModelMetrics
from taciturn.party.log import Log
from taciturn.protocol.row_sums import OpenedLoss
from taciturn.results.serialise import record_of
from taciturn.rng import Entropy


def study_run(
    plan: StudyPlan, finished: FinishedTraining, settings: Sequence[StudiedSetting] = ()
) -> StudyRun:
    """One side's result of a study; ``settings`` are Bob's with all metrics."""
    tests = [model.symmetry for model in finished.trained if model.symmetry is not None]
    return StudyRun(
        identity=plan.identity(),
        study=StudyTable.from_settings(plan.study, settings or _settings(plan)),
        settings=plan.config.where,
        scores_per_row=plan.scores.per_row,
        ledger=finished.ledger,
        symmetry=max(tests, key=lambda test: test.largest, default=None),
        run=finished.figures,
    )


def _settings(plan: StudyPlan) -> list[StudiedSetting]:
    return [
        StudiedSetting(
            number=point.number,
            values=point.values,
            model=str(plan.model_path(point.number)),
            columns=len(plan.tables.train.columns),
        )
        for point in plan.study.points
    ]


def assessed_study(
    plan: StudyPlan, finished: FinishedTraining, load: LoadScores, entropy: Entropy, log: Log
) -> StudyRun:
    """Bob's result of a study, with all metrics, which the models' files have too."""
    study = _Evaluation(plan, finished, load, log)
    run = study_run(plan, finished, [study.judged(setting) for setting in _settings(plan)])
    if run.study.best is None:
        return run
    best = study.models_at(run.study.best)[-1]
    alone, added = baseline_of(study.scores(best), plan.tables, best.terms, entropy)
    return replace(run, bob_alone=alone, partner_adds=added)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    plan: StudyPlan
    finished: FinishedTraining
    load: LoadScores
    log: Log

    def models_at(self, number: int) -> list[StudyModel]:
        """The models of a combination, that of all training rows last."""
        return [model for model in self.plan.models if model.point.number == number]

    def scores(self, model: StudyModel) -> FloatArray | None:
        """Bob's scores of the rows that judge a model; None where there are none."""
        trained = next(one for one in self.finished.trained if one.number == model.number)
        return self.load(trained.held_out_scores)

    def judged(self, setting: StudiedSetting) -> StudiedSetting:
        """A combination with its metrics."""
        plan, finished = self.plan, self.finished
        *folds, whole = self.models_at(setting.number)
        judging = plan.judging_labels
        if finished.sums and judging is not None:
            opened = OpenedLoss(finished.sums[setting.number - 1], finished.noise_rows)
            judged = judged_by_sum(setting, opened, judging)
        else:
            figures = tuple(_fold_figures(model, self._metrics(model)) for model in folds)
            judged = setting.judged(figures, self._metrics(whole))
        trained = next(one for one in finished.trained if one.number == whole.number)
        scores = self.scores(whole)
        arrived = convergence_of(trained, scores, plan.tables, whole.terms)
        judged = replace(
            judged, converged=arrived.converged, suspected_wraps=trained.suspected_wraps
        )
        threshold = threshold_of(plan.config, plan.labels_of(whole), scores, whole.terms)
        metrics: dict[str, Any] = {} if threshold is None else {"threshold": record_of(threshold)}
        if judged.held_out is not None:
            metrics["held_out"] = record_of(judged.held_out)
        if trained.symmetry is not None:
            metrics["symmetry"] = record_of(trained.symmetry)
        diverged = arrived.diverged or judged.diverged
        metrics |= {"converged": judged.converged, "diverged": diverged}
        path = plan.model_path(setting.number)
        add_to_file(path, trained, metrics, plan.tables, (None, scores), self.log)
        return judged

    def _metrics(self, model: StudyModel) -> ModelMetrics | None:
        return metrics_of(self.scores(model), self.plan.labels_of(model), model.terms)


def _fold_figures(model: StudyModel, metrics: ModelMetrics | None) -> FoldFigures:
    if metrics is None:
        return FoldFigures(model.scored, math.nan, math.nan, math.nan)
    return FoldFigures.from_metrics(metrics)
