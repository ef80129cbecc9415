"""Scales of newton on whitened tables whose scores Bob sees, and the grid of his directions."""

from __future__ import annotations

import math

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.errors import ConfigError
from taciturn.memmap import MEMORY, Scratch, drop_pages, row_blocks
from taciturn.numerics.descent import row_bound
from taciturn.privacy.base import given
from taciturn.privacy.events import NoisyModel
from taciturn.privacy.model_release import log_inverse_failure, rounding_error
from taciturn.protocol.scales import LEAST_OF_TABLE, MODULI, Scales
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import Agreement

# The error of a score from the rounding of rows' numbers stays below 2^-10 (``table_scales``).
ROW_DIGITS = 11
# How far the roundings of a step may move whitened weights where the model is released.
_MOST_ROUNDING = 1 / 16
_ROOM, _ROOM_ABOVE_FEATURES = 8, 2


def table_scales(agreed: Agreement, rows: int, columns: int, magnitude_bits: int) -> Scales:
    """The scales of newton, for a whitened table with no value above 2^magnitude_bits.

    ``residue_bits`` are the digits of a row's number in Bob's vector. Those are rounded at
    random, and each rounding moves a score by an independent error: with ``columns`` whitened
    columns of ``rows`` numbers of size 2 or less on average, ``2 sqrt(rows columns / 12)``
    units in all, which is below 2^-10 with eleven digits more than half of
    ``log2(rows columns)``.

    Where the model is to be released, more of the digits are the rows' (``_scales_of_told_model``).
    """
    if agreed.reveal_epsilon is not None:
        return _scales_of_told_model(agreed, rows, columns, magnitude_bits)
    whole = math.ceil(math.log2(max(2, rows * columns)) / 2) + ROW_DIGITS
    room = max(_ROOM, magnitude_bits + _ROOM_ABOVE_FEATURES)
    for bits in MODULI:
        digits = min((bits - 1 - room - whole) // 2, agreed.feature_bits)
        if digits >= min(LEAST_OF_TABLE, agreed.feature_bits):
            return Scales(bits, digits, whole)
    raise ConfigError(
        f"{rows:,} rows and {columns:,} columns, one of which reaches 2^{magnitude_bits} in "
        f"units of its own spread, leave fewer than {LEAST_OF_TABLE} bits of a modulus of "
        f"2^{MODULI[-1]}",
        setting="solver",
        hint=Hint("clip the features ({clip})", clip=16),
    )


def _scales_of_told_model(
    agreed: Agreement, rows: int, columns: int, magnitude_bits: int
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
            return Scales(bits, min((free - wanted) // 2, agreed.feature_bits), wanted)
    digits = free - 2 * least
    if digits < needed:
        raise ConfigError(
            f"{rows:,} rows, {columns:,} columns and {agreed.rounds} passes leave too few "
            f"digits of a modulus of 2^{MODULI[-1]} for a model that is released with noise",
            setting="reveal_epsilon",
            hint=Hint("use fewer {passes}, or leave {reveal} and {reveal_epsilon} out"),
        )
    return Scales(MODULI[-1], least, digits)


def directions(
    scales: Scales, numbers: FloatArray, entropy: Entropy, scratch: Scratch = MEMORY
) -> IntArray:
    """The rows' numbers on their grid, each rounded up or down at random to its own mean.

    Never raises for what they are: whatever the numbers, the result is some integers.

    >>> from taciturn.rng import KeyedEntropy
    >>> directions(Scales(50, 12, 3), np.array([0.5]), KeyedEntropy.from_seed(1))
    array([4])
    """
    bound = 2.0 ** (scales.modulus_bits - 2)
    whole: IntArray = scratch.unnamed(numbers.shape, np.int64)
    for place, part in row_blocks(numbers):
        scaled = np.clip(np.nan_to_num(part * 2.0**scales.residue_bits), -bound, bound)
        scaled += entropy.uniform(part.shape) * (1.0 - 2.0**-32)
        whole[place] = np.floor(scaled, out=scaled)
    drop_pages(whole)
    return whole


def direction_numbers(scales: Scales, whole: IntArray, scratch: Scratch = MEMORY) -> FloatArray:
    """Real numbers that the integers of ``directions`` encode."""
    numbers: FloatArray = scratch.unnamed(whole.shape, np.float64)
    for place, part in row_blocks(whole):
        np.multiply(part, 2.0**-scales.residue_bits, out=numbers[place], dtype=np.float64)
    drop_pages(numbers)
    return numbers


def _bits(value: float) -> int:
    """The least b >= 0 with ``value <= 2^b``."""
    return max(0, math.ceil(math.log2(value)))
