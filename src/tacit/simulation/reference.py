"""What a simulated run is compared with: noiseless SGD on the same batches, in one place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import FloatArray
from tacit.config import Agreement
from tacit.data.split import VerticalData
from tacit.data.tables import FeatureTable
from tacit.numerics.logistic import Penalty
from tacit.numerics.metrics import Metrics, evaluate
from tacit.numerics.schedule import LearningRate
from tacit.numerics.sgd import train_centralised
from tacit.protocol.batches import BatchPlan


@dataclass(frozen=True, slots=True)
class Comparison:
    """The centralised model beside the joint one.

    ``weight_bound`` is how far fixed-point rounding alone can have moved a weight.
    """

    centralised: Metrics
    max_weight_difference: float
    weight_bound: float


def compare(
    data: VerticalData, agreement: Agreement, plan: BatchPlan, weights: FloatArray
) -> Comparison:
    """Trains centrally on the same batches with the true labels, and compares."""
    reference = train_centralised(
        _joined(data.alice_train.values, data.bob_train.values),
        data.labels_train.values,
        (batch.rows for batch in plan),
        LearningRate(agreement.learning_rate, agreement.schedule, agreement.decay),
        Penalty(agreement.l1, agreement.l2),
        int(data.intercept),
    )
    scores = _joined(data.alice_test.values, data.bob_test.values) @ reference
    return Comparison(
        centralised=evaluate(scores, data.labels_test.values),
        max_weight_difference=float(np.max(np.abs(weights - reference))),
        weight_bound=fixed_point_bound(agreement, data.alice_train, plan.iterations),
    )


def fixed_point_bound(agreement: Agreement, features: FeatureTable, iterations: int) -> float:
    """How far rounding can move a weight from the centralised trainer's.

    Rounding changes the gradient of a batch by at most ``2^-(feature_bits+1)`` per column for the
    features (residues are below 1) and ``2^-(residue_bits+1) max|x|`` for the residues. A gradient
    step on the logistic loss does not expand distances as long as the learning rate is below 2/L,
    L the largest eigenvalue of the batch's ``X^T X / (4 |B|)``. Under that condition the changes
    add up: the sum of the rates times ``sqrt(d)`` times that much bounds the Euclidean distance,
    and so the difference of each weight.
    """
    rate = LearningRate(agreement.learning_rate, agreement.schedule, agreement.decay)
    per_column = 2.0 ** -(agreement.feature_bits + 1)
    per_column += 2.0 ** -(agreement.residue_bits + 1) * (features.largest + per_column)
    steps = sum(rate.at(number) for number in range(iterations))
    return steps * per_column * float(np.sqrt(len(features.columns)))


def _joined(alice: FloatArray, bob: FloatArray) -> FloatArray:
    return np.hstack([alice, bob]) if bob.shape[1] else alice
