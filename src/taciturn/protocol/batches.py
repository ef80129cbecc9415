"""Which rows each iteration looks at: a function of one public seed.

Every row is used once per epoch. The last batch of an epoch may be short; one below the agreed
minimum joins the batch before it. Both parties derive the same batches from the joint seed
(``joint_seed``), so none is ever sent, and labels have no influence on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from taciturn.arrays import IndexArray
from taciturn.numerics.sgd import batch_count, batches
from taciturn.rng import KeyedEntropy


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one iteration."""

    iteration: int
    epoch: int
    rows: IndexArray = field(repr=False)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """All batches of a training.

    >>> plan = BatchPlan(seed=bytes(32), rows=5, batch_size=2, epochs=2)
    >>> [len(batch.rows) for batch in plan]
    [2, 2, 1, 2, 2, 1]
    """

    seed: bytes = field(repr=False)
    rows: int
    batch_size: int
    epochs: int
    minimum: int = 1

    @property
    def iterations(self) -> int:
        """Number of batches in all."""
        return self.epochs * batch_count(self.rows, self.batch_size, self.minimum)

    def ends_epoch(self, batch: Batch) -> bool:
        """Whether every row has had its turn in this epoch."""
        per_epoch = batch_count(self.rows, self.batch_size, self.minimum)
        return (batch.iteration + 1) % per_epoch == 0

    def __iter__(self) -> Iterator[Batch]:
        return self.since(0)

    def since(self, first: int) -> Iterator[Batch]:
        """The batches from this iteration on."""
        per_epoch = batch_count(self.rows, self.batch_size, self.minimum)
        for epoch in range(first // per_epoch, self.epochs):
            order = _epoch_order(self.seed, epoch, self.rows)
            parts = enumerate(batches(order, self.batch_size, self.minimum), epoch * per_epoch)
            for iteration, rows in parts:
                if iteration >= first:
                    yield Batch(iteration, epoch, rows)


@lru_cache(maxsize=1)
def _epoch_order(seed: bytes, epoch: int, rows: int) -> IndexArray:
    """The rows in one epoch's order; kept once, for the other party in the same process."""
    order = KeyedEntropy(seed).fork(f"epoch {epoch}").permutation(rows)
    order.setflags(write=False)
    return order
