"""Mini-batch SGD in clear: batches, learning rates, and the centralised trainer.

The trainer is the reference that joint runs are compared with, in weights and speed. It starts from
zero and sees all columns at once::

    w <- w - lr_t (-(1/|B|) X_B^T (y_B - sigma(X_B w)) + penalty'(w))

A learning rate is a public function of the iteration t, and never one of labels::

    constant       initial
    inverse        initial / (1 + decay t)
    inverse-sqrt   initial / sqrt(1 + decay t)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, LabelArray
from taciturn.errors import ConfigError, ShapeError, nearest
from taciturn.numerics.logistic import Penalty, gradient, weighted_residue


def batches(order: IndexArray, size: int, minimum: int = 1) -> Iterator[IndexArray]:
    """Cut an order of rows into batches (views); a last one below ``minimum`` joins another."""
    if order.ndim != 1:
        raise ShapeError(f"an order of rows has one dimension, not the shape {order.shape}")
    count = batch_count(len(order), size, minimum)
    # A generator function would raise only at the first batch, far from the mistake.
    return (
        order[number * size : (number + 1) * size if number < count - 1 else len(order)]
        for number in range(count)
    )


def batch_count(rows: int, size: int, minimum: int = 1) -> int:
    """Number of batches that ``batches`` makes."""
    if size < 1:
        raise ConfigError(f"the batch size is {size}", setting="batch_size", hint="use 1 or more")
    if minimum > min(size, max(rows, 1)):
        raise ConfigError(
            f"batches of {min(size, rows)} rows are below the agreed minimum of {minimum}",
            setting="minimum_batch",
            hint="use larger batches, or agree on a lower minimum",
        )
    whole, rest = divmod(rows, size)
    return whole + int(rest >= max(minimum, 1))


Schedule: TypeAlias = Literal["constant", "inverse", "inverse-sqrt"]
SCHEDULES: tuple[str, ...] = get_args(Schedule)


@dataclass(frozen=True, slots=True)
class LearningRate:
    """A learning rate, constant or decaying."""

    initial: float
    schedule: Schedule = "constant"
    decay: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.initial) and self.initial > 0):
            raise ConfigError(
                f"the learning rate is {self.initial}",
                setting="learning_rate",
                hint="use a number above 0",
            )
        if self.schedule not in SCHEDULES:
            raise ConfigError(
                f"no learning-rate schedule is called {self.schedule!r}",
                setting="schedule",
                hint=nearest(str(self.schedule), SCHEDULES),
            )
        if not (math.isfinite(self.decay) and self.decay >= 0):
            raise ConfigError(f"the decay is {self.decay}", setting="decay", hint="use 0 or more")

    def at(self, iteration: int) -> float:
        """Learning rate of one iteration, counted from 0 over the whole run."""
        if iteration < 0:
            raise ValueError("iterations count from 0")
        if self.schedule == "constant":
            return self.initial
        slowdown = 1.0 + self.decay * iteration
        return self.initial / (slowdown if self.schedule == "inverse" else math.sqrt(slowdown))


def train_centralised(
    features: FloatArray,
    labels: LabelArray,
    batches: Iterable[IndexArray],
    rate: LearningRate,
    penalty: Penalty,
    free: int = 0,
    class_weight: tuple[float, float] | None = None,
) -> FloatArray:
    """Train on the given batches, in their order.

    An intercept is a last column of ones; the last ``free`` weights carry no penalty. An empty
    batch costs its penalty alone. ``class_weight`` is the weight of a row of label 0 and of label
    1.
    """
    if features.ndim != 2 or labels.shape != features.shape[:1]:
        raise ShapeError(f"features of shape {features.shape}, labels of {labels.shape}")
    weights = np.zeros(features.shape[1])
    for iteration, rows in enumerate(batches):
        # On whole rows, take is about twice as fast as indexing.
        slope = penalty.gradient(weights, free)
        if len(rows):
            batch = features.take(rows, axis=0)
            truth = labels.take(rows)
            slope += gradient(batch, weighted_residue(batch @ weights, truth, class_weight))
        slope *= rate.at(iteration)
        weights -= slope
    return weights
