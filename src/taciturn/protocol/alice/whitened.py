"""Alice's table as newton's passes use it: centred, whitened, rounded once, ready for products.

That of one of several Alices is divided by a public number instead (``TableShape``).

Whitening needs no label, so she does it alone. The table is rounded once, and to the nearest: the
solver is exact for the rounded table. New roundings in each pass would give her new equations about
the same numbers of Bob's, where she sees products in clear.

A large table is walked over by blocks of rows, on all cores, and its integers lie column by column
in a file: what a ciphertext is multiplied with is then one piece of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.memmap import BLOCK_ROWS, Scratch, over_blocks
from taciturn.numerics.descent import BoundedTable
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.whitening import Whitening, centred
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import TrainingState
from taciturn.protocol.table_scales import table_scales
from taciturn.protocol.table_shape import TableShape
from taciturn.protocol.terms import Terms


@dataclass(frozen=True, slots=True, repr=False)
class WhitenedTable:
    """Her training rows in coordinates in which the loss has equal curvature in all directions.

    ``whole`` has the rounded integers, rows by columns. No whitened value exceeds
    ``2^magnitude_bits``, which Bob learns. ``widest`` is the most columns that one of several
    Alices has; 0 of one.
    """

    whole: IntArray
    whitening: Whitening
    scales: Scales
    magnitude_bits: int
    widest: int = 0

    @classmethod
    def from_inputs(cls, inputs: AliceInputs) -> WhitenedTable:
        """Whitens and rounds Alice's table."""
        features, agreed = inputs.features, inputs.terms.agreement
        if agreed.reveal_epsilon is not None:
            table = cls._bounded(inputs)
        else:
            means = inputs.terms.means_of(features.values)
            whitening = Whitening.fit(features.values, agreed.l2, means=means)
            table = cls._rounded(inputs, whitening)
        size = TableSize(*table.whole.shape)
        inputs.terms.scheme.check_tables(table.ring, size, agreed.rounds + agreed.models)
        return table

    @classmethod
    def among(cls, inputs: AliceInputs, state: TrainingState) -> WhitenedTable:
        """The table of one of several Alices, on the scales of all: divided, and not whitened."""
        features, terms = inputs.features, inputs.terms
        shape, columns = TableShape.from_state(features.rows, state), len(features.columns)
        scales, factor = shape.scales(terms), 2.0 ** -(shape.divisor_bits or 0)
        bits, means = shape.magnitude_bits, terms.means_of(features.values)
        grid = _Grid(None, scales, bits, inputs.scratch, "whitened", factor=factor, means=means)
        whitening = Whitening(np.eye(columns) / factor, means)
        table = cls(grid.rounded(features.values)[0], whitening, scales, bits, shape.widest)
        size, products = shape.size(columns), terms.rounds + terms.agreement.models
        terms.scheme.check_tables(table.ring, size, products)
        return table

    @classmethod
    def _rounded(cls, inputs: AliceInputs, whitening: Whitening) -> WhitenedTable:
        """In one walk, as a rule: the digits follow from the largest value, which is guessed."""
        values = inputs.features.values
        bits = _bits(whitening.apply(values[:BLOCK_ROWS]))
        while True:
            scales = _scales(inputs, bits)
            grid = _Grid(whitening, scales, bits, inputs.scratch, "whitened")
            whole, largest = grid.rounded(values)
            if grid.serves(largest) and _scales(inputs, largest) == scales:
                return cls(whole, whitening, scales, largest)
            bits = largest

    @classmethod
    def _bounded(cls, inputs: AliceInputs) -> WhitenedTable:
        """Within the public bounds for which the noise of a told model is made."""
        bounded = BoundedTable.from_table(
            inputs.features.values, inputs.terms.agreement.l2, scratch=inputs.scratch
        )
        bits = _bits_of(bounded.values)
        scales = _scales(inputs, bits)
        # Rounding must not take the table out of its bounds.
        factor = bounded.shrinking(2.0 ** -(scales.feature_bits + 1))
        grid = _Grid(None, scales, bits, inputs.scratch, "whitened", factor=factor)
        whitening = Whitening(bounded.whitening.factor / factor)
        return cls(grid.rounded(bounded.values)[0], whitening, scales, bits)

    @property
    def ring(self) -> Wrapping:
        """The sizes of its products."""
        return self.scales.ring(self.magnitude_bits, max(*self.whole.shape, self.widest))

    def others(self, features: FeatureTable, scratch: Scratch) -> IntArray:
        """Other rows in the same coordinates; what lies beyond the table's range is cut to it."""
        bits = self.magnitude_bits
        grid = _Grid(self.whitening, self.scales, bits, scratch, "whitened, held out", cut=True)
        return grid.rounded(features.values)[0]

    def weights(self, product: IntArray) -> FloatArray:
        """The weights of the original columns, from their exact integers in these coordinates."""
        coefficients = product.astype(np.float64) * 2.0**-self.scales.weight_bits
        return self.whitening.weights(coefficients)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Puts rows into new coordinates and on the grid of features.

    ``whitening`` is None for rows that are in them, less their ``means``. Values are multiplied
    with ``factor`` and taken to be below ``2^bits``; ``cut`` clips those beyond.
    """

    whitening: Whitening | None
    scales: Scales
    bits: int
    scratch: Scratch
    name: str
    cut: bool = False
    factor: float = 1.0
    means: FloatArray | None = None

    @property
    def kind(self) -> type[np.signedinteger[Any]]:
        return np.int32 if self.scales.feature_bits + self.bits < 31 else np.int64

    def serves(self, bits: int) -> bool:
        return replace(self, bits=bits).kind is self.kind

    def rounded(self, values: FloatArray) -> tuple[IntArray, int]:
        """The integers, rows by columns, and the size of the values (``_bits``)."""
        rows, columns = values.shape
        by_columns = self.scratch.empty(self.name, (columns, rows), self.kind)
        bound = 2.0**self.bits

        def work(place: slice) -> int:
            block = centred(values[place], self.means)
            if self.whitening is not None:
                block = self.whitening.apply(block)
            if self.factor != 1.0:
                block = block * self.factor
            if self.cut:
                block = np.clip(block, -bound, bound)
            by_columns[:, place] = self.scales.feature_grid.rounded(block).T
            return _bits(block)

        return by_columns.T, max(over_blocks(work, rows, values, by_columns), default=0)


def largest_bits(features: FeatureTable, terms: Terms) -> int:
    """The size of Alice's values in the coordinates of the training, which Bob learns."""
    values, l2 = features.values, terms.agreement.l2
    if not terms.whole_table:
        return magnitude_bits(features.largest)
    if terms.agreement.reveal_epsilon is not None:
        return _bits_of(BoundedTable.from_table(values, l2).values)
    return _bits_of(values, Whitening.fit(values, l2, means=terms.means_of(values)))


def _bits_of(values: FloatArray, whitening: Whitening | None = None) -> int:
    def work(place: slice) -> int:
        block = values[place]
        return _bits(block if whitening is None else whitening.apply(block))

    return max(over_blocks(work, len(values), values), default=0)


def _bits(values: FloatArray) -> int:
    """The least b with all values below 2^b, and all rows no longer than 2^(b + 1).

    A direction's weights are at most 2 long, so that its scores lie within ``4 2^b``, for which
    ``table_scales`` has room.
    """
    longest = float(np.sqrt(np.einsum("ij,ij->i", values, values).max(initial=0.0)))
    largest = magnitude_bits(float(np.abs(values).max(initial=0.0)))
    return max(largest, magnitude_bits(longest / 2.0))


def _scales(inputs: AliceInputs, bits: int) -> Scales:
    rows, columns = inputs.features.values.shape
    return table_scales(inputs.terms.agreement, rows, columns, bits)
