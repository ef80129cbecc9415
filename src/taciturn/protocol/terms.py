"""What both parties derive from their agreement: schedules, grids, sizes, batches."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.arrays import FloatArray
from taciturn.crypto.base import Capacity, Scheme
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import Penalty
from taciturn.numerics.metrics import log_odds_shift
from taciturn.numerics.sgd import LearningRate, batch_count
from taciturn.numerics.whitening import training_means
from taciturn.privacy.base import Mechanism
from taciturn.privacy.registry import mechanism
from taciturn.protocol.batches import BatchPlan
from taciturn.settings.agreement import Agreement


@dataclass(frozen=True, slots=True)
class Terms:
    """The agreement in use."""

    agreement: Agreement
    scheme: Scheme

    @property
    def mechanism(self) -> Mechanism:
        """What protects the labels."""
        return mechanism(self.agreement)

    @property
    def conversation(self) -> str:
        """Which pair of programs trains: the mechanism's own, or the one of whole tables."""
        own = self.mechanism.conversation
        return f"{own}-table" if self.whole_table else own

    @property
    def whole_table(self) -> bool:
        """Whether every pass uses all rows."""
        return self.agreement.solver == "newton"

    @property
    def centred(self) -> bool:
        """Whether each side centres its columns: an intercept absorbs their means.

        Not where the model is told with noise, whose bounds are those of columns as they are.
        """
        agreed = self.agreement
        return self.whole_table and agreed.intercept and agreed.reveal_epsilon is None

    def means_of(self, values: FloatArray, free: int = 0) -> FloatArray | None:
        """What is subtracted from a side's columns; None where they stay as they are."""
        return training_means(values, free) if self.centred else None

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
    def log_odds_shift(self) -> float:
        """By how much class weights move the scores away from the log-odds of a label."""
        return log_odds_shift(self.agreement.class_weight)

    @property
    def feature_grid(self) -> FixedPoint:
        """The public scale of features."""
        return FixedPoint(self.agreement.feature_bits)

    @property
    def residue_grid(self) -> FixedPoint:
        """The public scale of residues."""
        return FixedPoint(self.agreement.residue_bits)

    @property
    def score_grid(self) -> FixedPoint:
        """The public scale of scores that travel in clear: that of the residues made from them."""
        return self.residue_grid

    @property
    def direction_grid(self) -> FixedPoint:
        """The public scale of a direction's scores: late ones are small, and Bob enlarges them."""
        return FixedPoint(self.agreement.residue_bits + 10)

    @property
    def product_grid(self) -> FixedPoint:
        """The scale of their products."""
        return FixedPoint(self.agreement.feature_bits + self.agreement.residue_bits)

    @property
    def longest_product(self) -> int:
        """The most rows that one encrypted vector speaks of: a batch, or a hidden one's subset."""
        return self.agreement.subset_size or self.longest_batch

    @property
    def longest_batch(self) -> int:
        """A batch with a short last one that was joined to it."""
        return self.agreement.batch_size + self.agreement.minimum_batch - 1

    @property
    def headroom_bits(self) -> int:
        """By how many bits a hidden batch's residues may exceed 1.

        Bob scales them by ``batch_size / k``, so that Alice divides by the public batch size and
        need not know k, which is at least 1.
        """
        if self.agreement.subset_size is None:
            return 0
        return (self.agreement.batch_size - 1).bit_length()

    def capacity(self, magnitude_bits: int, rows: int) -> Capacity:
        """What ``X_A^T r`` needs: residues in [-1, 1], features up to 2^magnitude_bits."""
        return Capacity(
            vector_bits=self.agreement.residue_bits + self.headroom_bits,
            matrix_bits=self.agreement.feature_bits + magnitude_bits,
            terms=min(self.longest_product, rows),
        )

    def plan(self, seed: bytes, rows: int) -> BatchPlan:
        """The batches of the whole training."""
        agreed = self.agreement
        return BatchPlan(seed, rows, agreed.batch_size, agreed.epochs, agreed.minimum_batch)

    def too_few(self, columns: int) -> int:
        """A hidden batch's response must ask for more rows than this.

        More than Alice has columns, as the paper requires, and no fewer than the agreed minimum.
        """
        return max(columns, self.agreement.minimum_batch - 1)

    def per_epoch(self, rows: int) -> int:
        """How many iterations make an epoch."""
        return batch_count(rows, self.agreement.batch_size, self.agreement.minimum_batch)
