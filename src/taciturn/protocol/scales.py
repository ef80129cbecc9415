"""Public scales of shared weights, integers modulo ``t = 2^k``, which both sides compute.

::

    features        2^fx                 X = x 2^fx
    rows' numbers   2^fr                 a
    shared weights  2^(fx + fr)          W,      w = c W / 2^(fx + fr)
    scores          2^(2 fx + fr)        X W,    z = c X W / 2^(2 fx + fr)

c is 1, but where the ring is the range of the scores (``for_shared_table``). Sums of integers are
exact; the only roundings are those of features and of the rows' numbers.

Only a score that does not fit wraps: ``|z| < c 2^(k - 1 - 2 fx - fr)`` is the bound that
``score_bound`` states. Weights fit whenever scores do, and shares are uniform and always fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn.crypto.base import Wrapping
from taciturn.errors import ConfigError
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.privacy.base import given
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement

MODULI = (50, 59)
# A whole table is rounded once: with fewer digits the model would be another table's.
LEAST_OF_TABLE = 10
# Of newton with shared scores: the bits by which weights have more room than scores, and the
# digits of a residue divided by the number of rows.
SHARED_ROOM = 2
SHARED_ROW_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of one training: k, fx, fr and c of the module's text, in this order."""

    modulus_bits: int
    feature_bits: int
    residue_bits: int
    factor: float = 1.0

    @classmethod
    def for_shared_table(cls, agreed: Agreement, rows: int) -> Scales:
        """The scales of newton where scores stay shared, and the ring is their range.

        A product with ``X~^T`` and the penalty's matrix has ``shared_shift`` digits more than a
        weight, by which it is scaled down in each pass; that leaves weights four times the room of
        scores. A row's residue divided by their number has ``SHARED_ROW_DIGITS`` digits or more.
        Its rounding is as often up as down, and averages out over the rows.
        """
        reach = half_range(given(agreed, "score_range"), given(agreed, "sigmoid_error"))
        if agreed.kind.linear_residue:
            # Scores are scaled down by a carry, which is exact in half of the ring.
            reach *= 2
        bits = MODULI[-1]
        free = bits - 1 - math.log2(reach)
        spare = free - SHARED_ROOM - SHARED_ROW_DIGITS - math.log2(rows)
        digits = min(math.floor(spare), agreed.feature_bits)
        if digits < LEAST_OF_TABLE:
            raise ConfigError(
                f"{rows:,} rows, scores up to {given(agreed, 'score_range'):g} and feature-bits of "
                f"{agreed.feature_bits} leave fewer than {LEAST_OF_TABLE} bits of a modulus of "
                f"2^{bits} for features",
                setting="solver",
                hint=Hint("train on fewer rows, lower {score_range}, or raise {feature_bits}"),
            )
        whole = math.floor(free - 2 * digits)
        return cls(bits, digits, whole, reach * 2.0 ** (2 * digits + whole + 1 - bits))

    @property
    def shared_shift(self) -> int:
        """Fractional bits by which a product of newton on shares exceeds a weight."""
        return self.feature_bits - SHARED_ROOM

    @property
    def shared_unit(self) -> float:
        """The unit of a residue in newton's shared products; see ``for_shared_table``."""
        return 2.0 ** (self.weight_bits - SHARED_ROOM) / self.factor

    def to_json(self) -> dict[str, int | float]:
        """Scales of a finished training's shares, for a file."""
        return {
            "modulus_bits": self.modulus_bits,
            "feature_bits": self.feature_bits,
            "residue_bits": self.residue_bits,
            "decay": self.factor,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Scales:
        """The scales of a finished training, as ``to_json`` wrote them."""
        return cls(
            values["modulus_bits"],
            values["feature_bits"],
            values["residue_bits"],
            float(values["decay"]),
        )

    @property
    def feature_grid(self) -> FixedPoint:
        """The public scale of features."""
        return FixedPoint(self.feature_bits)

    @property
    def weight_bits(self) -> int:
        """The digits of a shared weight."""
        return self.feature_bits + self.residue_bits

    @property
    def score_bits(self) -> int:
        """The digits of a score."""
        return 2 * self.feature_bits + self.residue_bits

    @property
    def score_bound(self) -> float:
        """Scores of Alice's columns below this in size do not wrap."""
        return self.factor * 2.0 ** (self.modulus_bits - 1 - self.score_bits)

    def ring(self, magnitude_bits: int, terms: int) -> Wrapping:
        """The products of features up to 2^magnitude_bits, in sums of ``terms`` of them."""
        return Wrapping.with_modulus(self.modulus_bits, self.feature_bits + magnitude_bits, terms)

    @property
    def score_unit(self) -> float:
        """The step of the grid of scores, in log-odds."""
        return self.factor * 2.0**-self.score_bits

    def scores(self, products: IntArray) -> FloatArray:
        """Scores that decrypted products encode."""
        return np.multiply(products, self.score_unit, dtype=np.float64)

    def doubtful(self, products: IntArray) -> BoolArray:
        """Which of them lie in the outer half of the range, so that they may have wrapped."""
        outer: BoolArray = np.abs(products) >= 1 << (self.modulus_bits - 2)
        return outer

    def suspected(self, products: IntArray) -> int:
        """Number of values in the outer half of the range."""
        return int(np.count_nonzero(self.doubtful(products)))

    def weights(self, whole: IntArray) -> FloatArray:
        """The weights that the sum of two shares is."""
        whole = self.ring(1, 1).centred(whole)
        return np.multiply(whole, self.factor * 2.0**-self.weight_bits, dtype=np.float64)
