"""The first pass of whole-table training, as Alice sees it: ``p = T^T a``, and what a can be.

``a_i`` is ``2^g/n`` times the slope of row i, rounded up or down at random. Slopes are
``mechanism.residue(score, label)``, positive for label 1 and negative for label 0 whatever the
score, divided by their root mean square: Bob sends directions at a fixed, public length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
from scipy.optimize import brentq

from taciturn.arrays import BoolArray, FloatArray
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.observations import MomentsSeen
from taciturn_audit.views.alice_view import AliceView

# Directions of the table below this share of the largest are floating-point noise.
_NEGLIGIBLE = 1e-12
# A score beyond which no intercept lies.
_FAR = 40.0


@dataclass(frozen=True, slots=True)
class Slopes:
    """Public facts about slopes, in units of their root mean square.

    With one column at Bob it may be an intercept.
    """

    mechanism: EncryptedMechanism
    bob_columns: int

    @classmethod
    def of(cls, view: AliceView) -> Slopes:
        """The slopes of a view."""
        return cls(cast(EncryptedMechanism, view.mechanism), view.peer.columns)

    @property
    def exact(self) -> bool:
        """Whether a slope is 1 or -1: no score but zero, and no class that counts more."""
        zero, one = self._at(0.0)
        return self.bob_columns == 0 and bool(np.isclose(zero, -one, rtol=1e-12))

    @property
    def sizes(self) -> tuple[tuple[float, float], tuple[float, float]] | None:
        """The least and the largest size of a slope of label 0, and of label 1.

        None where Bob's columns make it anything. Where classes count differently, the root mean
        square lies between their slopes, wherever the labels are.
        """
        if self.bob_columns:
            return None
        zero, one = (abs(slope) for slope in self._at(0.0))
        least, largest = min(zero, one), max(zero, one)
        return (zero / largest, zero / least), (one / largest, one / least)

    def laws(self, rows: int) -> Iterator[tuple[float, float]]:
        """The pairs of slopes, of label 0 and 1, that there can be: none where Bob has columns."""
        if self.exact:
            yield -1.0, 1.0
        elif self.bob_columns <= 1:
            yield from (law for ones in range(1, rows) if (law := self.law(ones, rows)) is not None)

    def law(self, ones: int, rows: int) -> tuple[float, float] | None:
        """The slopes of label 0 and 1 with ``ones`` rows of label 1; None where there are none.

        An intercept that is fitted alone makes all slopes together zero.
        """
        if self.exact:
            return -1.0, 1.0

        def total(score: float) -> float:
            zero, one = self._at(score)
            return ones * one + (rows - ones) * zero

        fitted = 0.0
        if self.bob_columns:
            # The likelihood of flipped labels may be best at an end, where all slopes vanish.
            if not total(-_FAR) > 0 > total(_FAR):
                return None
            fitted = float(brentq(total, -_FAR, _FAR, xtol=1e-13))
        zero, one = self._at(fitted)
        size = np.sqrt((ones * one**2 + (rows - ones) * zero**2) / rows)
        return zero / size, one / size

    def _at(self, score: float) -> tuple[float, float]:
        scores, ones = np.array([score]), np.ones(1, dtype=np.int8)
        zero, one = (self.mechanism.residue(scores, labels) for labels in (1 - ones, ones))
        return float(zero[0]), float(one[0])


@dataclass(frozen=True)
class FirstPass:
    """The table T and its first product ``T^T a``, in the integers' scale.

    ``rows`` counts all rows of the training, of which some may be out of the table. ``unit`` is
    ``2^g/n``, the steps of a's grid in a slope of 1.
    """

    table: FloatArray = field(repr=False)
    product: FloatArray = field(repr=False)
    rows: int
    unit: float
    slopes: Slopes

    @classmethod
    def of(cls, seen: MomentsSeen, slopes: Slopes) -> FirstPass:
        """The first pass that Alice saw."""
        rows = len(seen.table)
        table, product = seen.table.astype(np.float64), seen.product.astype(np.float64)
        return cls(table, product, rows, 2.0**seen.vector_bits / rows, slopes)

    @cached_property
    def factor(self) -> FloatArray:
        """F with ``F F^T = (T^T T)^+``: columns by independent sums."""
        if self.table.shape[0] < self.table.shape[1]:
            _, singular, rows = np.linalg.svd(self.table, full_matrices=False)
            values, vectors = singular**2, rows.T
        else:
            values, vectors = np.linalg.eigh(self.table.T @ self.table)
        kept: BoolArray = values > _NEGLIGIBLE * values.max(initial=0.0)
        scaled: FloatArray = vectors[:, kept] / np.sqrt(values[kept])
        return scaled

    @cached_property
    def span(self) -> FloatArray:
        """U, the table's columns made orthonormal: ``U U^T`` projects on what the sums see."""
        return self.table @ self.factor

    @property
    def rank(self) -> int:
        """How many independent sums there are."""
        return len(self.factor.T)

    @cached_property
    def leverage(self) -> FloatArray:
        """For each row how much of it the sums see: 1 is all, 0 is nothing."""
        seen: FloatArray = np.clip(np.einsum("ij,ij->i", self.span, self.span), 0.0, 1.0)
        return seen

    def projected(self, numbers: FloatArray) -> FloatArray:
        """What the sums see of numbers, one for each row."""
        seen: FloatArray = self.span @ (numbers @ self.span)
        return seen

    @cached_property
    def least_norm(self) -> FloatArray:
        """The least-norm slopes with these sums: each row's, as far as they see it."""
        slopes: FloatArray = self.span @ (self.product @ self.factor) / self.unit
        return slopes
