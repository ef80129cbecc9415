"""Metrics, losses and baselines of scores, for labels of any family.

Labels of two classes have ``metrics``; those of other families ``regression_metrics``. The **loss**
of a training is half of the deviance in the labels' coordinates: of ``gaussian`` that of labels in
standard deviations; of two classes it is the log loss.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TypeAlias

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.label_table import LabelTable
from taciturn.memmap import over_blocks
from taciturn.numerics.convergence import MOST_LOSS
from taciturn.numerics.intervals import mean_interval
from taciturn.numerics.likelihood import response_likelihood, weighted_likelihood
from taciturn.numerics.logistic import training_loss
from taciturn.numerics.metrics import AddedAuc, Metrics, added_auc, evaluate
from taciturn.numerics.predicted_rows import PredictedRows
from taciturn.numerics.regression_metrics import (
    AddedDeviance,
    RegressionMetrics,
    regression_metrics,
)

ModelMetrics: TypeAlias = Metrics | RegressionMetrics
Added: TypeAlias = AddedAuc | AddedDeviance


def class_metrics(metrics: ModelMetrics | None) -> Metrics:
    """Metrics of labels of two classes; TypeError where they are of another family."""
    if not isinstance(metrics, Metrics):
        raise TypeError(f"{metrics} are not metrics of two classes")
    return metrics


def evaluate_labels(scores: FloatArray, labels: LabelTable, shift: float = 0.0) -> ModelMetrics:
    """All metrics of scores, those of the labels' family."""
    if labels.kind.has_classes:
        return evaluate(scores, labels.values, shift)
    return regression_metrics(PredictedRows(scores, labels), labels_loss(scores, labels))


def added_by_partner(scores: FloatArray, alone: FloatArray, labels: LabelTable) -> Added:
    """What a model adds to another on the same rows: AUC, or deviance explained."""
    if labels.kind.has_classes:
        return added_auc(scores, alone, labels.values)
    joint, other = PredictedRows(scores, labels), PredictedRows(alone, labels)
    null = joint.null_deviance
    gains = (other.deviances - joint.deviances) * joint.weights / joint.weights.mean() / null
    difference = float(gains.mean())
    return AddedDeviance(difference, *mean_interval(difference, float(gains.std()), labels.rows))


def labels_loss(
    scores: FloatArray,
    labels: LabelTable,
    class_weight: tuple[float, float] | None = None,
    rows: IndexArray | None = None,
) -> float:
    """Mean training loss of some rows, or of all."""
    if labels.kind.has_classes:
        values = labels.values if rows is None else labels.values[rows]
        return training_loss(scores, values, class_weight)
    chosen = labels if rows is None else labels.take(rows)
    likelihood = response_likelihood(chosen, partial(weighted_likelihood, class_weight=None))

    def value(place: slice) -> float:
        return float(np.sum(likelihood(scores[place], place).value))

    with np.errstate(over="ignore", invalid="ignore"):
        return -sum(over_blocks(value, chosen.rows, scores)) / chosen.rows


def fits_worse_than_base_rate(scores: FloatArray, labels: LabelTable) -> bool:
    """Whether a constant fits the rows better than the scores do, by more than chance would have.

    By more than two standard errors of the mean difference of a row's deviances.
    """
    model, constant = (
        PredictedRows(np.nan_to_num(one), labels)
        for one in (scores, np.full(labels.rows, null_score(labels)))
    )
    excess = (model.deviances - constant.deviances) * model.weights / model.weights.mean()
    if not np.isfinite(excess).all():
        return True
    return bool(excess.mean() > 2.0 * excess.std() / math.sqrt(labels.rows))


def null_score(labels: LabelTable) -> float:
    """Score of the best constant model."""
    ones, response = np.ones(labels.rows), labels.response
    exposure, weights = (
        ones if given is None else given for given in (labels.exposure, labels.weights)
    )
    constant = labels.kind.constant(labels.values, exposure, weights)
    return (constant - response.location) / response.scale


def most_loss(labels: LabelTable) -> float:
    """Training loss beyond which a training has diverged: twice that of no model at all.

    That is the score 0, which with an intercept is the best constant.
    """
    if labels.kind.has_classes:
        return MOST_LOSS
    return 2.0 * labels_loss(np.zeros(labels.rows), labels)
