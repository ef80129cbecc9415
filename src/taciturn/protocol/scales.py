"""Public scales of shared weights, integers modulo ``t = 2^k``, which both sides compute.

::

    features        2^fx                 X = x 2^fx
    rows' numbers   2^fr                 a
    shared weights  2^(fx + fr)          W,      w = c W / 2^(fx + fr)
    scores          2^(2 fx + fr)        X W,    z = c X W / 2^(2 fx + fr)

c is 1, but where the ring is the range of the scores (``of_shared_table``). Sums of integers are
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
from taciturn.memmap import MEMORY, Scratch, drop_pages, row_blocks
from taciturn.numerics.descent import row_bound
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.privacy.base import given
from taciturn.privacy.events import NoisyModel
from taciturn.privacy.model_release import log_inverse_failure, rounding_error
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement

MODULI = (50, 59)
# A whole table is rounded once: with fewer digits the model would be another table's.
LEAST_OF_TABLE = 10
# The error of a score from the rounding of rows' numbers stays below 2^-10 (``of_table``).
ROW_DIGITS = 11
# Of newton with shared scores: the bits by which weights have more room than scores, and the
# digits of a residue divided by the number of rows.
SHARED_ROOM = 2
SHARED_ROW_DIGITS = 16
# How far the roundings of a step may move whitened weights where the model is released.
_MOST_ROUNDING = 1 / 16
_ROOM, _ROOM_ABOVE_FEATURES = 8, 2


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
        """The digits that newton's shared products have beyond those of a weight."""
        return self.feature_bits - SHARED_ROOM

    @property
    def shared_unit(self) -> float:
        """The unit of a residue in newton's shared products; see ``of_shared_table``."""
        return 2.0 ** (self.weight_bits - SHARED_ROOM) / self.factor

    @classmethod
    def for_table(cls, agreed: Agreement, rows: int, columns: int, magnitude_bits: int) -> Scales:
        """The scales of newton, for a whitened table with no value above 2^magnitude_bits.

        ``residue_bits`` are the digits of a row's number in Bob's vector. Those are rounded at
        random, and each rounding moves a score by an independent error: with ``columns`` whitened
        columns of ``rows`` numbers of size 2 or less on average, ``2 sqrt(rows columns / 12)``
        units in all, which is below 2^-10 with eleven digits more than half of
        ``log2(rows columns)``.

        Where the model is to be released, more of the digits are the rows' (``_of_told_model``).
        """
        if agreed.reveal_epsilon is not None:
            return cls._of_told_model(agreed, rows, columns, magnitude_bits)
        whole = math.ceil(math.log2(max(2, rows * columns)) / 2) + ROW_DIGITS
        room = max(_ROOM, magnitude_bits + _ROOM_ABOVE_FEATURES)
        for bits in MODULI:
            digits = min((bits - 1 - room - whole) // 2, agreed.feature_bits)
            if digits >= min(LEAST_OF_TABLE, agreed.feature_bits):
                return cls(bits, digits, whole)
        raise ConfigError(
            f"{rows:,} rows and {columns:,} columns, one of which reaches 2^{magnitude_bits} in "
            f"units of its own spread, leave fewer than {LEAST_OF_TABLE} bits of a modulus of "
            f"2^{MODULI[-1]}",
            setting="solver",
            hint=Hint("clip the features ({clip})", clip=16),
        )

    @classmethod
    def _of_told_model(
        cls, agreed: Agreement, rows: int, columns: int, magnitude_bits: int
    ) -> Scales:
        """The scales of a descent whose result is released with noise.

        Scores must not wrap, or a label could move them by more than the descent allows: weights
        grow by 1 in a step at most, and by the roundings, and rows are at most ``row_bound`` long.
        Roundings are to move weights by less than an eighth of what a label may; where there is no
        room for that many digits, the noise covers what they move.
        """
        event = NoisyModel(given(agreed, "reveal_epsilon"), given(agreed, "reveal_delta"))
        units = rounding_error(rows, columns, log_inverse_failure(event, agreed.rounds))
        # Half a row of hers: as little as a step moves, whatever Bob has.
        needed = _bits(units / _MOST_ROUNDING)
        wanted = max(needed, _bits(2 * 8 * units * rows / (row_bound(columns) / 2)))
        weights = (agreed.rounds + 1) * (1.0 + _MOST_ROUNDING)
        room = max(_bits(1.001 * row_bound(columns) * weights), magnitude_bits)
        least = min(LEAST_OF_TABLE, agreed.feature_bits)
        for bits in MODULI:
            free = bits - 1 - room
            if free - wanted >= 2 * least:
                return cls(bits, min((free - wanted) // 2, agreed.feature_bits), wanted)
        digits = free - 2 * least
        if digits < needed:
            raise ConfigError(
                f"{rows:,} rows, {columns:,} columns and {agreed.rounds} passes leave too few "
                f"digits of a modulus of 2^{MODULI[-1]} for a model that is released with noise",
                setting="reveal_epsilon",
                hint=Hint("use fewer {passes}, or leave {reveal} and {reveal_epsilon} out"),
            )
        return cls(MODULI[-1], least, digits)

    def directions(
        self, numbers: FloatArray, entropy: Entropy, scratch: Scratch = MEMORY
    ) -> IntArray:
        """The rows' numbers on their grid, each rounded up or down at random to its own mean.

        Never raises for what they are: whatever the numbers, the result is some integers.

        >>> from taciturn.rng import KeyedEntropy
        >>> Scales(50, 12, 3).directions(np.array([0.5]), KeyedEntropy.from_seed(1))
        array([4])
        """
        bound = 2.0 ** (self.modulus_bits - 2)
        whole: IntArray = scratch.unnamed(numbers.shape, np.int64)
        for place, part in row_blocks(numbers):
            scaled = np.clip(np.nan_to_num(part * 2.0**self.residue_bits), -bound, bound)
            scaled += entropy.uniform(part.shape) * (1.0 - 2.0**-32)
            whole[place] = np.floor(scaled, out=scaled)
        drop_pages(whole)
        return whole

    def numbers(self, whole: IntArray, scratch: Scratch = MEMORY) -> FloatArray:
        """Real numbers that the integers of ``directions`` encode."""
        numbers: FloatArray = scratch.unnamed(whole.shape, np.float64)
        for place, part in row_blocks(whole):
            np.multiply(part, 2.0**-self.residue_bits, out=numbers[place], dtype=np.float64)
        drop_pages(numbers)
        return numbers

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


def _bits(value: float) -> int:
    """The least b >= 0 with ``value <= 2^b``."""
    return max(0, math.ceil(math.log2(value)))
