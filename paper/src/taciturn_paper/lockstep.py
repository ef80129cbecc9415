"""Many trainings with noise side by side: the same rows, batches and unit draws, other noise.

A search over epsilon, b1 and b2 trains the same rows hundreds of times. Here all of them take each
step together, so that reading a batch, drawing its noise and calling NumPy are paid for once. Every
training gives, bit for bit, the weights that ``cleartext.train_with_noise`` gives it alone: each
product is the same call of the same routine, one training after the other. A test compares them.

That all share their unit draws makes their *differences* less noisy; each alone is drawn as it is
in the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np

from taciturn.arrays import ByteLabels, FloatArray, IntArray
from taciturn.errors import ConfigError
from taciturn.numerics.logistic import sigmoid
from taciturn.privacy.additive import Additive
from taciturn.privacy.base import ResidueMechanism
from taciturn.privacy.multiplicative import Bounds, Multiplicative
from taciturn.privacy.noise import LaplaceDraws, Stock, draw
from taciturn.protocol.batches import BatchPlan
from taciturn.protocol.scores import at_scale
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy

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
    """Trains once with each mechanism.

    Args:
        features: Alice's training columns.
        labels: The labels of the same rows.
        plan: The batches.
        terms: What the trainings share: grids and the learning rate; no penalty.
        mechanisms: One for each training, ``add`` or ``mult``.
        bob: Bob's coins.

    Returns:
        One row of weights for each mechanism.

    Raises:
        ConfigError: The terms have a penalty.
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
        (np.array(numbers), _sampler([mechanisms[number] for number in numbers]))
        for numbers in kinds.values()
    ]


def _sampler(alike: list[ResidueMechanism[LaplaceDraws]]) -> Sampler:
    if isinstance(alike[0], Additive):
        added = cast(list[Additive], alike)
        divisors = np.array([[mechanism.divisor] for mechanism in added], dtype=np.uint64)
        return lambda residues, draws: residues + draws.noise(divisors)
    several = cast(list[Multiplicative], alike)
    bounds = Bounds.stacked([mechanism.bounds for mechanism in several])
    return lambda residues, draws: several[0].sample(bounds, residues, draws)
