"""What Bob makes of a study that has ended: how good each model is, and which is best.

All of it depends on labels. So it is computed when the last word has been said and the way to the
peer is closed, as after a single training (``taciturn.jobs.train.evaluation``).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.engine.study import StudyModel
from taciturn.errors import FileError
from taciturn.jobs.study.ending import StudyEnded
from taciturn.model.share import ModelShare
from taciturn.numerics.convergence import assess_convergence
from taciturn.numerics.metrics import added_auc, evaluate
from taciturn.party.model_file import keep_scores
from taciturn.results.serialise import record_of
from taciturn.results.study import (
    FoldFigures,
    StudiedSetting,
    StudyRun,
    best_of,
    mean_of,
    ranked,
)
from taciturn.rng import KeyedEntropy

if TYPE_CHECKING:
    from taciturn.jobs.study.job import StudySide


@dataclass(frozen=True, slots=True)
class Assessment:
    """What Bob makes of the models once the way to Alice is closed."""

    side: StudySide
    ended: StudyEnded

    def run(self) -> StudyRun:
        """The result with all figures, which go into the models' files too."""
        study = self.side.study
        settings = [self._setting(one) for one in self.ended.run.study.settings]
        rated = ranked(settings, study.rank_by)
        best = best_of(rated, study.rank_by)
        table = replace(
            self.ended.run.study, settings=rated, best=None if best is None else best.number
        )
        run = replace(self.ended.run, study=table)
        return run if best is None else self._beside(run, best)

    def _setting(self, one: StudiedSetting) -> StudiedSetting:
        side = self.side
        models = [model for model in side.plan.models if model.point.number == one.number]
        folds = tuple(self._fold(model) for model in models if model.fold is not None)
        whole = models[-1]
        trained = next(entry for entry in self.ended.trained if entry.number == whole.number)
        held_out, labels = side.scores_of(whole), side.plan.labels_of(whole)
        metrics = None
        if held_out is not None and labels is not None:
            shift = whole.terms.log_odds_shift
            metrics = evaluate(np.nan_to_num(held_out), labels.values, shift)
        judged = folds or (() if metrics is None else (FoldFigures.of(metrics),))
        arrived = assess_convergence(trained.losses)
        rated = replace(
            one,
            folds=folds or None,
            held_out=metrics,
            converged=arrived.converged,
            suspected_wraps=trained.wraps,
            loss=mean_of(judged, "loss"),
            auc=mean_of(judged, "auc"),
            accuracy=mean_of(judged, "accuracy"),
        )
        self._note(rated, whole, held_out, arrived.diverged)
        return rated

    def _fold(self, model: StudyModel) -> FoldFigures:
        scores, labels = self.side.scores_of(model), self.side.plan.labels_of(model)
        if scores is None or labels is None:
            return FoldFigures(model.scored, math.nan, math.nan, math.nan)
        shift = model.terms.log_odds_shift
        return FoldFigures.of(evaluate(np.nan_to_num(scores), labels.values, shift))

    def _note(
        self,
        rated: StudiedSetting,
        model: StudyModel,
        held_out: FloatArray | None,
        diverged: bool | None,
    ) -> None:
        threshold = self.side.threshold_of(self.side.plan.labels_of(model), held_out, model.terms)
        metrics: dict[str, Any] = {"threshold": record_of(threshold)}
        if rated.held_out is not None:
            metrics["held_out"] = record_of(rated.held_out)
        metrics |= {"converged": rated.converged, "diverged": diverged}
        path = self.side.model_path(model)
        # A file that was moved meanwhile is not touched.
        with suppress(FileError):
            share = ModelShare.load(path)
            replace(share, metrics=share.metrics | metrics).save(path)
            tables = self.side.tables
            keep_scores(path, share.session, tables, None, held_out, self.side.log)

    def _beside(self, run: StudyRun, best: StudiedSetting) -> StudyRun:
        """What Bob's columns alone would have given, and what the partner adds."""
        # Bob alone has labels, and only he loads his programs.
        from taciturn.protocol.bob.alone import AloneModel

        side = self.side
        model = next(
            one for one in side.plan.models if one.point.number == best.number and one.fold is None
        )
        tables, scores = side.tables, side.scores_of(model)
        labels, truth = tables.labels, tables.held_out_labels
        if tables.held_out is None or labels is None or truth is None or scores is None:
            return run
        coins, shift = KeyedEntropy.from_system(), model.terms.log_odds_shift
        alone = AloneModel.fit(tables.train, labels, model.terms, coins).scores(tables.held_out)
        return replace(
            run,
            bob_alone=evaluate(np.nan_to_num(alone), truth.values, shift),
            partner_adds=added_auc(np.nan_to_num(scores), alone, truth.values),
        )
