"""Metrics of a trained model and of Bob's columns alone, of a session and of a simulated run."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import SideTables
from taciturn.numerics.label_metrics import (
    Added,
    ModelMetrics,
    added_by_partner,
    evaluate_labels,
)
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def metrics_of(
    scores: FloatArray | None, labels: LabelTable | None, terms: Terms
) -> ModelMetrics | None:
    """Metrics of scores; None without scores or labels."""
    return None if scores is None or labels is None else model_metrics(scores, labels, terms)


def model_metrics(scores: FloatArray, labels: LabelTable, terms: Terms) -> ModelMetrics:
    """Metrics of the scores of some rows."""
    # What is no number becomes one: a model that diverged is worth what its figures say.
    return evaluate_labels(np.nan_to_num(scores), labels, terms.log_odds_shift)


def baseline_of(
    scores: FloatArray | None, tables: SideTables, terms: Terms, entropy: Entropy
) -> tuple[ModelMetrics | None, Added | None]:
    """Metrics of a model of Bob's columns alone on held-out rows, and what the partner adds."""
    # Bob alone has labels, and only he loads his programs.
    from taciturn.protocol.bob.baseline import LabelPartyBaseline

    held_out, labels, truth = tables.held_out, tables.labels, tables.held_out_labels
    if held_out is None or labels is None or truth is None or scores is None:
        return None, None
    alone = LabelPartyBaseline.fit(tables.train, labels, terms, entropy).scores(held_out)
    return metrics_of(alone, truth, terms), added_by_partner(np.nan_to_num(scores), alone, truth)
