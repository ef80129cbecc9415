"""The public scales of shared weights: integers modulo ``t = 2^k``, chosen by both sides alike.

::

    features        2^fx                 X = x 2^fx, rounded at random
    residues        2^fr                 r' = round((rate / |B|) r 2^fr / c_(i+1))
    shared weights  2^(fx + fr)          W = sum of all X^T r',   w = c_i W / 2^(fx + fr)
    scores          2^(2 fx + fr)        X W,                     z = c_i X W / 2^(2 fx + fr)

``c_i = prod (1 - rate l2)`` over the iterations before i is the L2 penalty: shares hold ``w / c``,
so that a step of the penalty is a change of the public c. Sums of integers are exact; the only
roundings are those of features and residues. A batch's features are rounded up or down at random
(``Scales.rounded``), anew in each epoch.

Only a score that does not fit wraps: ``|z| < c_T 2^(k - 1 - 2 fx - fr)`` is the bound that
``score_bound`` states. Weights fit whenever scores do, and shares are uniform and always fit.

The digits: ``(rate / |B|) 2^fr`` is at least ``2^10``, and fx as large as leaves room for scores of
``2^max(8, b + 2)``, b the bits of the largest feature. The smaller modulus serves where it gives
features ``LEAST`` digits, the larger one, which costs half as much again, where it does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IntArray
from taciturn.crypto.base import Wrapping
from taciturn.errors import ConfigError
from taciturn.faces import Hint
from taciturn.mapped import MEMORY, Scratch, forget, row_blocks
from taciturn.numerics.batches import batch_count
from taciturn.numerics.descent import row_bound
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.numerics.periodic_sigmoid import half_range
from taciturn.numerics.schedule import LearningRate
from taciturn.privacy.base import given
from taciturn.privacy.events import NoisyModel
from taciturn.privacy.model_release import log_inverse_failure, rounding_error
from taciturn.rng import Entropy
from taciturn.settings.agreement import Agreement

MODULI = (50, 59)
# A whole table is rounded once: with fewer digits the model would be another table's.
LEAST_OF_TABLE = 10
# The error of a score from the rounding of rows' numbers stays below 2^-10 (``of_table``).
ROW_DIGITS = 11
RESIDUE_DIGITS = 10
SHARED_RESIDUE_DIGITS = 21
LEAST = 8
# Of newton with shared scores: the bits by which weights have more room than scores, and the
# digits of a residue divided by the number of rows.
SHARED_ROOM = 2
SHARED_ROW_DIGITS = 16
# How far the roundings of a step may move whitened weights where the model is told.
_MOST_ROUNDING = 1 / 16
_ROOM, _ROOM_ABOVE_FEATURES = 8, 2


@dataclass(frozen=True, slots=True)
class Scales:
    """The scales of one training.

    Args:
        modulus_bits: k: shares live modulo 2^k.
        feature_bits: fx.
        residue_bits: fr.
        decay: c of each iteration, and of the end.
    """

    modulus_bits: int
    feature_bits: int
    residue_bits: int
    decay: FloatArray = field(repr=False, compare=False)

    @classmethod
    def of(cls, agreed: Agreement, rows: int, magnitude_bits: int) -> Scales:
        """The scales for a table in which no value of Alice's exceeds 2^magnitude_bits.

        Raises:
            ConfigError: No modulus gives enough digits.
        """
        per_epoch = batch_count(rows, agreed.batch_size, agreed.minimum_batch)
        rate = LearningRate(agreed.learning_rate, agreed.schedule, agreed.decay)
        decay = _decay(rate, agreed.l2, agreed.epochs * per_epoch)
        # The longest batch has the smallest steps, and a last short one may have joined it.
        longest = min(agreed.batch_size + agreed.minimum_batch - 1, rows)
        spread = _bits(longest / rate.at(agreed.epochs * per_epoch - 1))
        room = max(_ROOM, magnitude_bits + _ROOM_ABOVE_FEATURES) + _bits(1 / max(decay[-1], 1e-300))
        # The smaller modulus first: the larger one costs half as much again.
        for bits in MODULI:
            free = bits - 1 - room
            digits = min((free - spread - RESIDUE_DIGITS) // 2, agreed.feature_bits)
            if digits >= min(LEAST, agreed.feature_bits):
                whole = min(free - 2 * digits, spread + agreed.residue_bits)
                return cls(bits, digits, whole, decay)
        raise ConfigError(
            f"features up to 2^{magnitude_bits}, a step of 2^-{spread} per row and an L2 penalty "
            f"that shrinks weights to 2^-{_bits(1 / max(decay[-1], 1e-300))} leave fewer than "
            f"{LEAST} bits of a modulus of 2^{MODULI[-1]}",
            setting="mechanism",
            value="sealed",
            hint=Hint(
                "clip the features ({clip}), use smaller batches, a larger {learning_rate}, or a "
                "smaller {l2}",
                clip=16,
            ),
        )

    @classmethod
    def of_shared_scores(cls, agreed: Agreement, rows: int) -> Scales:
        """The scales of a training in which scores stay shared, and the ring is their range.

        ``score_bound`` after the last iteration is exactly what the agreed range needs
        (``periodic_sigmoid.half_range``): c is divided by what the powers of two leave over. A step
        has ``SHARED_RESIDUE_DIGITS`` digits, since both tables of the sigmoid are rounded to them
        together, and features the rest.

        Raises:
            ConfigError: The modulus has no room for it.
        """
        per_epoch = batch_count(rows, agreed.batch_size, agreed.minimum_batch)
        rate = LearningRate(agreed.learning_rate, agreed.schedule, agreed.decay)
        decay = _decay(rate, agreed.l2, agreed.epochs * per_epoch)
        longest = min(agreed.batch_size + agreed.minimum_batch - 1, rows)
        spread = _bits(longest / rate.at(agreed.epochs * per_epoch - 1))
        reach = half_range(given(agreed, "score_range"), given(agreed, "sigmoid_error"))
        bits, last = MODULI[-1], max(decay[-1], 1e-300)
        free = bits - 1 - math.log2(reach / last)
        digits = min(math.floor(free - spread - SHARED_RESIDUE_DIGITS) // 2, agreed.feature_bits)
        if digits < min(LEAST, agreed.feature_bits):
            raise ConfigError(
                f"scores up to {given(agreed, 'score_range'):g}, a step of 2^-{spread} per row and "
                f"an L2 penalty that shrinks weights to 2^-{_bits(1 / last)} leave fewer than "
                f"{LEAST} bits of a modulus of 2^{bits} for features",
                setting="mechanism",
                value="mutual",
                hint=Hint(
                    "use smaller batches, a larger {learning_rate}, or a smaller {l2} or "
                    "{score_range}",
                    score_range=16,
                ),
            )
        whole = math.floor(free - 2 * digits)
        exact = reach / last * 2.0 ** (2 * digits + whole + 1 - bits)
        return cls(bits, digits, whole, decay * exact)

    @classmethod
    def of_shared_table(cls, agreed: Agreement, rows: int) -> Scales:
        """The scales of newton where scores stay shared, and the ring is their range.

        A product with ``X~^T`` and the penalty's matrix has ``shared_shift`` digits more than a
        weight, by which it is scaled down in each pass; that leaves weights four times the room of
        scores. A row's residue divided by their number has ``SHARED_ROW_DIGITS`` digits or more.
        Its rounding is as often up as down, and averages out over the rows.

        Raises:
            ConfigError: The modulus has no room for it.
        """
        reach = half_range(given(agreed, "score_range"), given(agreed, "sigmoid_error"))
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
                hint=Hint(
                    "lower {score_range}, raise {feature_bits}, or use {solver}", solver="sgd"
                ),
            )
        whole = math.floor(free - 2 * digits)
        return cls(bits, digits, whole, np.array([reach * 2.0 ** (2 * digits + whole + 1 - bits)]))

    @property
    def shared_shift(self) -> int:
        """The digits that newton's shared products have beyond those of a weight."""
        return self.feature_bits - SHARED_ROOM

    @property
    def shared_unit(self) -> float:
        """The unit of a residue in newton's shared products; see ``of_shared_table``."""
        return 2.0 ** (self.weight_bits - SHARED_ROOM) / float(self.decay[-1])

    @classmethod
    def of_table(cls, agreed: Agreement, rows: int, columns: int, magnitude_bits: int) -> Scales:
        """The scales of newton, for a whitened table with no value above 2^magnitude_bits.

        ``residue_bits`` are the digits of a row's number in Bob's vector. Those are rounded at
        random, and each rounding moves a score by an independent error: with ``columns`` whitened
        columns of ``rows`` numbers of size 2 or less on average, ``2 sqrt(rows columns / 12)``
        units in all, which is below 2^-10 with eleven digits more than half of
        ``log2(rows columns)``.

        Where the model is to be told, more of the digits are the rows' (``_of_told_model``).

        Raises:
            ConfigError: The modulus has no room for it.
        """
        if agreed.reveal_epsilon is not None:
            return cls._of_told_model(agreed, rows, columns, magnitude_bits)
        whole = math.ceil(math.log2(max(2, rows * columns)) / 2) + ROW_DIGITS
        room = max(_ROOM, magnitude_bits + _ROOM_ABOVE_FEATURES)
        for bits in MODULI:
            digits = min((bits - 1 - room - whole) // 2, agreed.feature_bits)
            if digits >= min(LEAST_OF_TABLE, agreed.feature_bits):
                return cls(bits, digits, whole, np.ones(1))
        raise ConfigError(
            f"{rows:,} rows and {columns:,} columns, one of which reaches 2^{magnitude_bits} in "
            f"units of its own spread, leave fewer than {LEAST_OF_TABLE} bits of a modulus of "
            f"2^{MODULI[-1]}",
            setting="solver",
            hint=Hint("clip the features ({clip}), or use {solver}", clip=16, solver="sgd"),
        )

    @classmethod
    def _of_told_model(
        cls, agreed: Agreement, rows: int, columns: int, magnitude_bits: int
    ) -> Scales:
        """The scales of a descent whose result is told with noise.

        Scores must not wrap, or a label could move them by more than the descent allows: weights
        grow by 1 in a step at most, and by the roundings, and rows are at most ``row_bound`` long.
        Roundings are to move weights by less than an eighth of what a label may; where there is no
        room for that many digits, the noise covers what they move.
        """
        event = NoisyModel(given(agreed, "reveal_epsilon"), given(agreed, "reveal_delta"))
        units = rounding_error(rows, columns, log_inverse_failure(event, agreed.epochs))
        # Half a row of hers: as little as a step moves, whatever Bob has.
        needed = _bits(units / _MOST_ROUNDING)
        wanted = max(needed, _bits(2 * 8 * units * rows / (row_bound(columns) / 2)))
        weights = (agreed.epochs + 1) * (1.0 + _MOST_ROUNDING)
        room = max(_bits(1.001 * row_bound(columns) * weights), magnitude_bits)
        least = min(LEAST_OF_TABLE, agreed.feature_bits)
        for bits in MODULI:
            free = bits - 1 - room
            if free - wanted >= 2 * least:
                return cls(bits, min((free - wanted) // 2, agreed.feature_bits), wanted, np.ones(1))
        digits = free - 2 * least
        if digits < needed:
            raise ConfigError(
                f"{rows:,} rows, {columns:,} columns and {agreed.epochs} passes leave too few "
                f"digits of a modulus of 2^{MODULI[-1]} for a model that is told with noise",
                setting="reveal_epsilon",
                hint=Hint("use fewer {passes}, or leave {reveal} and {reveal_epsilon} out"),
            )
        return cls(MODULI[-1], least, digits, np.ones(1))

    def directions(
        self, numbers: FloatArray, entropy: Entropy, scratch: Scratch = MEMORY
    ) -> IntArray:
        """The rows' numbers on their grid, each rounded up or down at random to its own mean.

        Never raises for what they are: whatever the numbers, the result is some integers.

        Args:
            numbers: One for each row.
            entropy: The coins, of which as many are used as there are rows.
            scratch: Where the result lies.

        >>> from taciturn.rng import KeyedEntropy
        >>> Scales(50, 12, 3, np.ones(1)).directions(np.array([0.5]), KeyedEntropy.from_seed(1))
        array([4])
        """
        bound = 2.0 ** (self.modulus_bits - 2)
        whole: IntArray = scratch.unnamed(numbers.shape, np.int64)
        for place, part in row_blocks(numbers):
            scaled = np.clip(np.nan_to_num(part * 2.0**self.residue_bits), -bound, bound)
            scaled += entropy.uniform(part.shape) * (1.0 - 2.0**-32)
            whole[place] = np.floor(scaled, out=scaled)
        forget(whole)
        return whole

    def numbers(self, whole: IntArray, scratch: Scratch = MEMORY) -> FloatArray:
        """What the integers of ``directions`` mean."""
        numbers: FloatArray = scratch.unnamed(whole.shape, np.float64)
        for place, part in row_blocks(whole):
            np.multiply(part, 2.0**-self.residue_bits, out=numbers[place], dtype=np.float64)
        forget(numbers)
        return numbers

    def to_json(self) -> dict[str, int | float]:
        """What a finished training's shares mean, for a file."""
        return {
            "modulus_bits": self.modulus_bits,
            "feature_bits": self.feature_bits,
            "residue_bits": self.residue_bits,
            "decay": float(self.decay[-1]),
        }

    @classmethod
    def of_json(cls, values: dict[str, Any]) -> Scales:
        """The scales of a finished training, as ``to_json`` wrote them."""
        return cls(
            values["modulus_bits"],
            values["feature_bits"],
            values["residue_bits"],
            np.array([values["decay"]], dtype=np.float64),
        )

    @property
    def feature_grid(self) -> FixedPoint:
        """The public scale of features."""
        return FixedPoint(self.feature_bits)

    def rounded(self, rows: FloatArray, entropy: Entropy) -> FloatArray:
        """A batch's features as whole numbers, each rounded up or down at random to its own mean.

        Rounding to the nearest would be the same in every epoch, and its errors would add up;
        these average out.

        >>> from taciturn.rng import KeyedEntropy
        >>> scales = Scales(50, 1, 19, np.ones(1))
        >>> set(scales.rounded(np.full((40, 1), 0.25), KeyedEntropy.from_seed(1)).ravel().tolist())
        {0.0, 1.0}
        """
        scaled = rows * 2.0**self.feature_bits
        # A hair below 1 at most: a whole number must not be carried to the next by rounding.
        scaled += entropy.uniform(rows.shape) * (1.0 - 2.0**-32)
        return np.floor(scaled, out=scaled)

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
        return float(self.decay[-1]) * 2.0 ** (self.modulus_bits - 1 - self.score_bits)

    def ring(self, magnitude_bits: int, terms: int) -> Wrapping:
        """The products of features up to 2^magnitude_bits, in sums of ``terms`` of them."""
        return Wrapping.of(self.modulus_bits, self.feature_bits + magnitude_bits, terms)

    def score_unit(self, iteration: int) -> float:
        """The step of the grid of scores, in log-odds, with the weights of this iteration."""
        return float(self.decay[iteration]) * 2.0**-self.score_bits

    def scores(self, products: IntArray, iteration: int) -> FloatArray:
        """What decrypted products mean, with the weights of this iteration."""
        return np.multiply(products, self.score_unit(iteration), dtype=np.float64)

    def doubtful(self, products: IntArray) -> BoolArray:
        """Which of them lie in the outer half of the range, so that they may have wrapped."""
        outer: BoolArray = np.abs(products) >= 1 << (self.modulus_bits - 2)
        return outer

    def suspected(self, products: IntArray) -> int:
        """How many of them lie in the outer half of the range."""
        return int(np.count_nonzero(self.doubtful(products)))

    def steps(self, residues: FloatArray, rate: float, iteration: int) -> IntArray:
        """A batch's residues on their grid, with the step and the penalty in them.

        Never raises: whatever the residues are, the result is some integers.
        """
        factor = rate / len(residues) / float(self.decay[iteration + 1]) * 2.0**self.residue_bits
        bound = 2.0 ** (self.modulus_bits - 1) - 1
        # An error here would tell Alice about residues, of which she must learn nothing.
        whole: IntArray = np.rint(np.clip(np.nan_to_num(residues * factor), -bound, bound)).astype(
            np.int64
        )
        return whole

    def weights(self, whole: IntArray) -> FloatArray:
        """The weights that the sum of two shares is after the last iteration."""
        whole = self.ring(1, 1).centred(whole)
        factor = float(self.decay[-1]) * 2.0**-self.weight_bits
        return np.multiply(whole, factor, dtype=np.float64)


def _decay(rate: LearningRate, l2: float, iterations: int) -> FloatArray:
    factors = np.ones(iterations + 1)
    if l2:
        factors[1:] = [1.0 - rate.at(number) * l2 for number in range(iterations)]
    return np.cumprod(factors, dtype=np.float64)


def _bits(value: float) -> int:
    """The least b >= 0 with ``value <= 2^b``."""
    return max(0, math.ceil(math.log2(value)))
