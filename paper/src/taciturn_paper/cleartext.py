"""Trainings in clear that give, bit for bit, the weights of the protocol: for searches.

All columns are Alice's, as in the paper's experiments. The two programs, their messages and the
codec are left out; the arithmetic, the batches and the noise are theirs, drawn from the same
entropy. A test compares the weights with the protocol's on each dataset.

``train_side_by_side`` takes many trainings through the same rows, batches and unit draws with other
noise. A search over epsilon, b1 and b2 trains the same rows hundreds of times; here all of them
take each step together, so that reading a batch, drawing its noise and calling NumPy are paid for
once. Each product is the same call of the same routine, one training after the other, so that every
training gives the weights that it gives alone. Shared unit draws make their *differences* less
noisy; each alone is drawn as it is in the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np

from taciturn.arrays import ByteLabels, FloatArray, IntArray
from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.numerics.logistic import gradient
from taciturn.privacy.additive import Additive
from taciturn.privacy.base import GradientMechanism, ResidueMechanism
from taciturn.privacy.multiplicative import Bounds, Multiplicative
from taciturn.privacy.noise import LaplaceDraws, Stock, draw
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
    """Alice's weights after the conversation ``residues`` with discrete noise."""
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
    """Alice's weights after the conversation ``revealed``.

    ``labels`` are those that Bob's program gets: flipped, where the mechanism flips. Products of
    whole numbers run in reals, which is exact below 2^53: the paper's shapes stay below 2^50.
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


Kind = TypeVar("Kind", Additive, Multiplicative)
Sampler = Callable[[IntArray, LaplaceDraws], IntArray]


def train_side_by_side(
    features: FloatArray,
    labels: ByteLabels,
    plan: BatchPlan,
    terms: Terms,
    mechanisms: Sequence[ResidueMechanism[LaplaceDraws]],
    bob: Entropy,
) -> FloatArray:
    """One row of Alice's weights for each mechanism, ``add`` or ``mult``.

    ``terms`` are what the trainings share: grids and the learning rate, and no penalty.
    """
    if terms.penalty.l1 or terms.penalty.l2:
        raise ConfigError("trainings side by side have no penalty", setting="l2")
    grid, rate = terms.residue_grid, terms.rate
    stock = Stock(draw, bob.fork("noise"), terms.longest_batch)
    integers = labels.astype(np.int64) << grid.bits
    groups = _groups(mechanisms)
    weights = np.zeros((len(mechanisms), features.shape[1]))
    released = np.empty((len(mechanisms), terms.longest_batch), dtype=np.int64)
    for batch in plan:
        count = len(batch.rows)
        rows = features.take(batch.rows, axis=0)
        scores = at_scale(np.matmul(rows, weights[:, :, np.newaxis])[:, :, 0], terms.score_grid)
        secret = integers[batch.rows] - grid.rounded(sigmoid(scores))
        draws = stock.take(batch.iteration, count)
        for part, sampler in groups:
            released[part, :count] = sampler(secret[part], draws)
        product = np.matmul(grid.decode(released[:, np.newaxis, :count]), rows)[:, 0]
        product /= -count
        weights -= rate.at(batch.iteration) * product
    return weights


def _groups(mechanisms: Sequence[ResidueMechanism[LaplaceDraws]]) -> list[tuple[IntArray, Sampler]]:
    """The mechanisms by their formula: which trainings, and what is done to their residues."""
    kinds: dict[type, list[int]] = {}
    for number, mechanism in enumerate(mechanisms):
        kinds.setdefault(type(mechanism), []).append(number)
    return [
        (np.array(numbers), _group_sampler([mechanisms[number] for number in numbers]))
        for numbers in kinds.values()
    ]


def _group_sampler(alike: list[ResidueMechanism[LaplaceDraws]]) -> Sampler:
    if isinstance(alike[0], Additive):
        added = cast(list[Additive], alike)
        divisors = np.array([[mechanism.divisor] for mechanism in added], dtype=np.uint64)
        return lambda residues, draws: residues + draws.noise(divisors)
    several = cast(list[Multiplicative], alike)
    bounds = Bounds.stacked([mechanism.bounds for mechanism in several])
    return lambda residues, draws: several[0].sample(bounds, residues, draws)
