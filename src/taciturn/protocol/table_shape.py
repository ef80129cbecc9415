"""The shape of whole tables in newton, as both sides know it after the greetings.

One Alice's table is whitened (``taciturn.numerics.whitening``). Those of several are not: each
would be whitened by itself, and products of sums over all of them would show how the columns are
divided. They are all divided by one public power of two instead, so that the weights of a direction
are no longer than 2, as whitened ones are::

    |X^T a|^2 <= |a|^2 sum of squares of X = S^2,  |a|^2 = 1/n,  S^2 = sum of squares / n

S follows from what each Alice says of her columns together (``spread_bits``), to the next power of
two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.memmap import over_blocks
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.whitening import centred
from taciturn.privacy.model_release import ModelRelease
from taciturn.privacy.sealed import noisy_release
from taciturn.protocol.messages import MAX_MAGNITUDE_BITS
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import TrainingState
from taciturn.protocol.table_scales import table_scales
from taciturn.protocol.terms import Terms
from taciturn.settings.agreement import Agreement


def table_sizes(values: FloatArray, means: FloatArray | None = None) -> tuple[int, int]:
    """Sizes of an Alice's table in bits: of its longest row, and of its columns together.

    Both of columns less their means, where they are centred.

    >>> table_sizes(np.array([[3.0, 4.0], [0.0, 0.0]]))
    (3, 2)
    """

    def squares(place: slice) -> tuple[float, float]:
        block = centred(values[place], means)
        lengths = np.einsum("ij,ij->i", block, block)
        return float(lengths.max(initial=0.0)), float(lengths.sum())

    parts = list(over_blocks(squares, len(values), values))
    longest, total = max(part[0] for part in parts), sum(part[1] for part in parts)
    return magnitude_bits(math.sqrt(longest)), _exponent(total / len(values), -MAX_MAGNITUDE_BITS)


def _exponent(square: float, least: int) -> int:
    """The least e, and no less than this, with a square of at most 4^e."""
    return max(least, math.ceil(math.log2(square) / 2)) if square > 0.0 else least


@dataclass(frozen=True, slots=True)
class TableShape:
    """One Alice's table, or several Alices' that receive the same requests.

    No value, as it is multiplied, exceeds ``2^magnitude_bits``. Several Alices' tables are divided
    by ``2^divisor_bits``; None of one, whose table is whitened.
    """

    rows: int
    widths: tuple[int, ...]
    magnitude_bits: int
    divisor_bits: int | None = None

    @classmethod
    def from_state(cls, rows: int, state: TrainingState) -> TableShape:
        """That of a training, after the greetings."""
        if not state.widths:
            return cls(rows, (state.columns,), state.magnitude_bits)
        lengths, spreads = zip(*state.sizes, strict=True)
        divisor = _exponent(sum(4.0**bits for bits in spreads), -MAX_MAGNITUDE_BITS) - 1
        longest = _exponent(sum(4.0**bits for bits in lengths), 0)
        return cls(rows, state.widths, max(0, longest - divisor), divisor)

    @property
    def widest(self) -> int:
        """The most columns that one Alice has."""
        return max(self.widths)

    def price(self, l2: float) -> float | None:
        """Penalty coefficient in these coordinates; None for whitened ones."""
        return None if self.divisor_bits is None else l2 * 4.0**-self.divisor_bits

    def size(self, columns: int) -> TableSize:
        """That of an Alice's table."""
        return TableSize(self.rows, columns)

    def scales(self, terms: Terms) -> Scales:
        """The public scales."""
        columns = sum(self.widths)
        return table_scales(terms.agreement, self.rows, columns, self.magnitude_bits)

    def ring(self, scales: Scales) -> Wrapping:
        """The sizes of their products."""
        return scales.ring(self.magnitude_bits, max(self.rows, *self.widths))


def model_release_of(
    agreed: Agreement, scales: Scales, alice_columns: int, bob: FeatureTable
) -> ModelRelease | None:
    """The release at the end; None where nothing is released with noise."""
    event = noisy_release(agreed)
    if event is None:
        return None
    return ModelRelease(
        event,
        rows=bob.rows,
        columns=alice_columns,
        bob_columns=len(bob.columns),
        bob_free=bob.free,
        passes=agreed.rounds,
        row_bits=scales.residue_bits,
        weight_bits=scales.weight_bits,
    )
