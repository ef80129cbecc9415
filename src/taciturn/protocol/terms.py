"""Terms that both parties derive from their agreement: schedules, grids, sizes, batches.

From what a person asked for to what both parties share, with defaults.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from taciturn.arrays import FloatArray
from taciturn.crypto.base import Capacity, Scheme
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.logistic import Penalty
from taciturn.numerics.metrics import log_odds_shift
from taciturn.numerics.sgd import LearningRate, batch_count
from taciturn.numerics.subspace import PASSES_PER_PENALTY
from taciturn.numerics.whitening import training_means
from taciturn.privacy.base import Mechanism, Sharing
from taciturn.privacy.registry import (
    mechanism,
)
from taciturn.protocol.batches import BatchPlan
from taciturn.settings.agreement import Agreement
from taciturn.settings.schema import Newton


@dataclass(frozen=True, slots=True)
class SummedLosses:
    """Evaluation of a study's setting by one sum over rows (``protocol.row_sums``), not by scores.

    ``rows`` counts the rows of the sum, over all trainings of the setting. ``held_out`` is true for
    a training whose held-out rows are part of it. ``fold`` is true for a training without the rows
    of a fold, which opens nothing itself.
    """

    rows: int
    held_out: bool
    fold: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """The agreement in use.

    ``summed`` is None where held-out rows are scored after the training. It follows from the study,
    which both sides compare, and is no part of the agreement's text.
    """

    agreement: Agreement
    scheme: Scheme
    summed: SummedLosses | None = None

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism that protects the labels."""
        return mechanism(self.agreement)

    @property
    def conversation(self) -> str:
        """Which pair of programs trains: the mechanism's own, or the one of whole tables."""
        name = self.mechanism.conversation
        return f"{name}-table" if self.whole_table else name

    @property
    def shares_weights(self) -> bool:
        """Whether Alice's weights stay shared to the end of the training."""
        return self.mechanism.sharing > Sharing.NOTHING

    @property
    def shares_scores(self) -> bool:
        """Whether scores stay shared: nobody sees one in the training."""
        return self.mechanism.sharing is Sharing.SCORES

    @property
    def may_withhold_scores(self) -> bool:
        """Whether Alice may open no scores of held-out rows, and says so first.

        Elsewhere the rows that reach a limit first are training rows, whose scores Bob needs.
        """
        return self.shares_scores and self.summed is None

    @property
    def whole_table(self) -> bool:
        """Whether every pass uses all rows."""
        return isinstance(self.agreement.solver, Newton)

    @property
    def rounds(self) -> int:
        """Number of times that each row is used: passes or epochs."""
        return self.agreement.rounds

    def iterations(self, rows: int) -> int:
        """Number of iterations of a whole training."""
        return self.rounds * self.per_epoch(rows)

    @property
    def shares_search(self) -> bool:
        """Whether models that differ in their penalty alone can be found in one search."""
        agreed = self.agreement
        # A model that Alice learns, and held-out scores after each pass, are of one penalty.
        alone = agreed.reveal or agreed.evaluate == "epoch"
        return self.conversation == "sealed-table" and not alone

    def over(self, penalties: Sequence[float]) -> Terms:
        """The terms of one search for several penalties, in ascending order.

        Its passes follow from their number. Its coordinates are those of a penalty three quarters
        of the way up, in logarithms: there the largest costs little precision, and the smallest
        little speed. Square roots are rounded in the same way on all machines, as logarithms are
        not.
        """
        agreed, least, most = self.agreement, penalties[0], penalties[-1]
        passes, models = agreed.rounds, len(penalties)
        shared = {
            "l2": math.sqrt(math.sqrt(least) * math.sqrt(most) * most),
            "penalties": tuple(penalties),
        }
        # No more passes than the models would take one by one.
        rounds = min(passes + PASSES_PER_PENALTY * models, passes * models)
        return replace(self, agreement=agreed.with_rounds(rounds).model_copy(update=shared))

    def with_sum(self, summed: SummedLosses) -> Terms:
        """The terms of a training whose setting is judged by a sum.

        The model of a fold is revealed to nobody.
        """
        hidden = {"reveal": False, "reveal_bob": False} if summed.fold else {}
        return replace(self, agreement=self.agreement.model_copy(update=hidden), summed=summed)

    def of_model(self, number: int) -> Terms:
        """The terms of one of the models."""
        return replace(self, agreement=self.agreement.of_model(number))

    @property
    def centred(self) -> bool:
        """Whether each side centres its columns: an intercept absorbs their means.

        Not where the model is released with noise, whose bounds are those of columns as they are.
        """
        agreed = self.agreement
        return self.whole_table and agreed.intercept and agreed.reveal_epsilon is None

    def means_of(self, values: FloatArray, free: int = 0) -> FloatArray | None:
        """Means that are subtracted from a side's columns; None without centring."""
        return training_means(values, free) if self.centred else None

    @property
    def rate(self) -> LearningRate:
        """The learning rate of each iteration."""
        sgd = self.agreement.sgd
        return LearningRate(sgd.learning_rate, sgd.schedule, sgd.decay)

    @property
    def penalty(self) -> Penalty:
        """The penalty; each party applies it to its own weights."""
        return Penalty(self.agreement.solver.l1, self.agreement.l2)

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
        return self.agreement.sgd.batch_size + self.agreement.sgd.minimum_batch - 1

    @property
    def headroom_bits(self) -> int:
        """By how many bits a hidden batch's residues may exceed 1.

        Bob scales them by ``batch_size / k``, so that Alice divides by the public batch size and
        need not know k, which is at least 1.
        """
        if self.agreement.subset_size is None:
            return 0
        return (self.agreement.sgd.batch_size - 1).bit_length()

    def capacity(self, magnitude_bits: int, rows: int) -> Capacity:
        """Capacity for ``X_A^T r``: residues in [-1, 1], features up to 2^magnitude_bits."""
        return Capacity(
            vector_bits=self.agreement.residue_bits + self.headroom_bits,
            matrix_bits=self.agreement.feature_bits + magnitude_bits,
            terms=min(self.longest_product, rows),
        )

    def plan(self, seed: bytes, rows: int) -> BatchPlan:
        """The batches of the whole training."""
        sgd = self.agreement.sgd
        return BatchPlan(seed, rows, sgd.batch_size, sgd.epochs, sgd.minimum_batch)

    def too_few(self, columns: int) -> int:
        """A hidden batch's response must ask for more rows than this.

        More than Alice has columns, as the paper requires, and no fewer than the agreed minimum.
        """
        return max(columns, self.agreement.sgd.minimum_batch - 1)

    def per_epoch(self, rows: int) -> int:
        """Number of iterations that use all rows once; a pass is one."""
        if self.whole_table:
            return 1
        return batch_count(rows, self.agreement.sgd.batch_size, self.agreement.sgd.minimum_batch)
