"""A training in the open that gives, bit for bit, the weights of the protocol: for searches.

All columns are Alice's, as in the paper's experiments. The two programs, their messages and the
codec are left out; the arithmetic, the batches and the noise are theirs, drawn from the same coins.
A test compares the weights with the protocol's on each dataset.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import ByteLabels, FloatArray
from taciturn.numerics.logistic import gradient, sigmoid
from taciturn.privacy.base import GradientMechanism, ResidueMechanism
from taciturn.privacy.noise import LaplaceDraws, Stock
from taciturn.protocol.batches import BatchPlan
from taciturn.protocol.scores import at_scale
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def train_with_noise(
    features: FloatArray,
    labels: ByteLabels,
    plan: BatchPlan,
    terms: Terms,
    mechanism: ResidueMechanism[LaplaceDraws],
    bob: Entropy,
) -> FloatArray:
    """Trains as the conversation ``residues`` does with discrete noise.

    Args:
        features: Alice's training columns.
        labels: The labels of the same rows.
        plan: The batches.
        terms: The agreement in use.
        mechanism: What is done to residues.
        bob: Bob's coins.

    Returns:
        Alice's weights.
    """
    grid, rate, penalty = terms.residue_grid, terms.rate, terms.penalty
    stock = Stock(mechanism.draw, bob.fork("noise"), terms.longest_batch)
    weights = np.zeros(features.shape[1])
    integers = labels.astype(np.int64) << grid.bits
    for batch in plan:
        rows = features.take(batch.rows, axis=0)
        secret = integers[batch.rows] - grid.rounded(
            sigmoid(at_scale(rows @ weights, terms.score_grid))
        )
        released = mechanism.release(secret, stock.take(batch.iteration, len(secret)))
        step = gradient(rows, grid.decode(released.value)) + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
    return weights


def train_with_gradients(
    features: FloatArray,
    labels: ByteLabels,
    plan: BatchPlan,
    terms: Terms,
    mechanism: GradientMechanism,
) -> FloatArray:
    """Trains as the conversation ``revealed`` does.

    Products of whole numbers run in reals, which is exact below 2^53: the paper's shapes stay
    below 2^50.

    Args:
        features: Alice's training columns.
        labels: The labels as Bob's program gets them: flipped, where the mechanism flips.
        plan: The batches.
        terms: The agreement in use.
        mechanism: Whose residues enter the gradient.

    Returns:
        Alice's weights.
    """
    grid, rate, penalty = terms.residue_grid, terms.rate, terms.penalty
    whole, unit = terms.feature_grid.nearest(features), 2.0**-terms.product_grid.bits
    weights = np.zeros(features.shape[1])
    for batch in plan:
        rows = features.take(batch.rows, axis=0)
        scores = at_scale(rows @ weights, terms.score_grid)
        residues = grid.nearest(mechanism.residue(scores, labels[batch.rows]))
        total = residues @ whole.take(batch.rows, axis=0)
        step = total * unit / -len(batch.rows) + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
    return weights
