"""Evaluation of trained models at Bob: metrics, what the partner adds, convergence, one table.

All of it depends on labels, or is for Bob's eyes only. It is computed when the last message has
been sent and the connection is closed: nothing that the peer can see, not even a time, depends on
it. Only the test of symmetry is made when a training ends (``TrainedModel``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, LabelArray
from taciturn.data.label_table import LabelTable
from taciturn.errors import FileError
from taciturn.families.binomial import sigmoid
from taciturn.files import write_private
from taciturn.jobs.train.finished import FinishedTraining, TrainedModel, training_run
from taciturn.jobs.train.model_quality import baseline_of, metrics_of
from taciturn.jobs.train.plan import TrainingPlan
from taciturn.jobs.train.result import PartyMetrics, PartyRun
from taciturn.model.share import add_metrics
from taciturn.numerics.convergence import (
    FEW_ROWS,
    MOST_LOSS,
    Convergence,
    Opened,
    assess_convergence,
)
from taciturn.numerics.label_metrics import fits_worse_than_base_rate, most_loss
from taciturn.numerics.threshold import Threshold, chosen, even_odds, threshold_at
from taciturn.party.config import PartyConfig
from taciturn.party.log import Log
from taciturn.party.model_file import keep_scores
from taciturn.party.tables import PartyTables
from taciturn.protocol.terms import Terms
from taciturn.results.serialise import record_of
from taciturn.rng import Entropy

LoadScores: TypeAlias = Callable[[object], FloatArray | None]
# What a model's file says beside the figures themselves.
_VERDICT = (
    *("bob_alone", "partner_adds", "converged", "converged_reason", "diverged", "last_change"),
    *("last_row_change", "told_quality", "symmetry", "opened_change", "scores_beyond_range"),
)


def assessed_training(
    plan: TrainingPlan, finished: FinishedTraining, load: LoadScores, entropy: Entropy, log: Log
) -> PartyRun:
    """Bob's result of one training, with all metrics, which his model's file has too."""
    run, config, terms, tables = training_run(plan, finished), plan.config, plan.terms, plan.tables
    (trained,), labels, truth = finished.trained, tables.labels, tables.held_out_labels
    path = Path(run.model)
    train, held_out = load(trained.train_scores), load(trained.held_out_scores)
    metrics = PartyMetrics(
        metrics_of(train, labels, terms),
        metrics_of(held_out, truth, terms),
        run.metrics.curve,
        threshold_of(config, truth, held_out, terms),
    )
    alone, added = baseline_of(held_out, tables, terms, entropy)
    run = replace(
        run,
        metrics=metrics,
        convergence=convergence_of(trained, held_out, tables, terms),
        bob_alone=alone,
        partner_adds=added,
    )
    _write_held_out(config, tables, held_out, terms, log)
    record = record_of(run)
    verdict = {name: record[name] for name in _VERDICT if name in record}
    add_to_file(path, trained, record["metrics"] | verdict, tables, (train, held_out), log)
    if run.convergence.diverged:
        log("warning", about="the training diverged: the model is worthless")
    return run


def convergence_of(
    trained: TrainedModel, held_out: FloatArray | None, tables: PartyTables, terms: Terms
) -> Convergence:
    """Whether the training of Bob's ``tables`` has converged or diverged."""
    labels, truth = tables.labels, tables.held_out_labels
    judged, opened = None, None
    if terms.shares_scores:
        # Where no training loss is opened, that of held-out rows stands in for it.
        judged = metrics_of(held_out, truth, terms)
        columns = len(tables.train.columns) + trained.peer_columns
        worse = False
        if truth is not None and held_out is not None and truth.rows > 1:
            worse = fits_worse_than_base_rate(held_out - terms.log_odds_shift, truth)
        few_rows = tables.train.rows < FEW_ROWS * columns
        opened = Opened(trained.opened_change, trained.scores_beyond_range, worse, few_rows)
    return assess_convergence(
        trained.losses,
        end=None if judged is None else judged.loss,
        row_changes=trained.row_changes,
        most_loss=MOST_LOSS if labels is None else most_loss(labels),
        opened=opened,
        objectives=trained.objectives,
    )


def threshold_of(
    config: PartyConfig, held_out: LabelTable | None, scores: FloatArray | None, terms: Terms
) -> Threshold | None:
    """Decision threshold for new rows: from Bob's file, or from the held-out rows.

    None where labels have no classes.
    """
    if not terms.agreement.kind.has_classes:
        return None
    output, shift = config.output, terms.log_odds_shift
    if output.threshold is not None:
        return threshold_at(output.threshold, shift)
    if held_out is None or scores is None:
        return even_odds(shift)
    return chosen(scores, held_out.values, output.false_negative_cost, shift)


def add_to_file(
    path: Path,
    trained: TrainedModel,
    metrics: Mapping[str, Any],
    tables: PartyTables,
    scores: tuple[FloatArray | None, FloatArray | None],
    log: Log,
) -> None:
    """Add the metrics to the model's file, and write Bob's scores next to it."""
    # A file that was moved meanwhile, or is another session's, is not touched.
    with suppress(FileError):
        if add_metrics(path, trained.session, metrics):
            keep_scores(path, trained.session, tables, *scores, log)


def _write_held_out(
    config: PartyConfig, tables: PartyTables, scores: FloatArray | None, terms: Terms, log: Log
) -> None:
    """Write Bob's held-out rows with their scores, where he asks for them."""
    name, labels = config.output.held_out_scores, tables.held_out_labels
    if name is None or scores is None or labels is None:
        return
    columns = {"id": tables.held_out_ids.series, **_score_columns(scores, labels, terms)}
    write_private(config.path(name), pl.DataFrame(columns).write_csv())
    log("held-out scores written", file=name, rows=len(scores))


def _score_columns(scores: FloatArray, labels: LabelTable, terms: Terms) -> dict[str, LabelArray]:
    if labels.kind.has_classes:
        chances = sigmoid(scores - terms.log_odds_shift)
        return {"score": scores, "probability": chances, "label": labels.values}
    predictor = labels.response.predictor(scores)
    if labels.exposure is not None:
        predictor = predictor + np.log(labels.exposure)
    return {"score": predictor, "mean": labels.kind.mean(predictor), "label": labels.values}
