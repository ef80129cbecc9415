"""What both parties derive from their agreement: schedules, grids, sizes, batches."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.config import Agreement
from tacit.crypto.base import Capacity, Scheme
from tacit.numerics.fixedpoint import FixedPoint
from tacit.numerics.logistic import Penalty
from tacit.numerics.schedule import LearningRate
from tacit.protocol.batches import BatchPlan


@dataclass(frozen=True, slots=True)
class Terms:
    """The agreement in use.

    Args:
        agreement: The settings both sides share.
        scheme: The encryption named in it.
    """

    agreement: Agreement
    scheme: Scheme

    @property
    def rate(self) -> LearningRate:
        """The learning rate of each iteration."""
        return LearningRate(
            self.agreement.learning_rate, self.agreement.schedule, self.agreement.decay
        )

    @property
    def penalty(self) -> Penalty:
        """The penalty; each party applies it to its own weights."""
        return Penalty(self.agreement.l1, self.agreement.l2)

    @property
    def feature_grid(self) -> FixedPoint:
        """The public scale of features."""
        return FixedPoint(self.agreement.feature_bits)

    @property
    def residue_grid(self) -> FixedPoint:
        """The public scale of residues."""
        return FixedPoint(self.agreement.residue_bits)

    @property
    def product_grid(self) -> FixedPoint:
        """The scale of their products."""
        return FixedPoint(self.agreement.feature_bits + self.agreement.residue_bits)

    def capacity(self, magnitude_bits: int, rows: int) -> Capacity:
        """What ``X_A^T r`` needs: residues in [-1, 1], features up to 2^magnitude_bits."""
        return Capacity(
            vector_bits=self.agreement.residue_bits,
            matrix_bits=self.agreement.feature_bits + magnitude_bits,
            terms=min(self.agreement.batch_size, rows),
        )

    def plan(self, seed: bytes, rows: int) -> BatchPlan:
        """The batches of the whole training."""
        return BatchPlan(seed, rows, self.agreement.batch_size, self.agreement.epochs)
