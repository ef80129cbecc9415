"""Alice's table as newton's passes use it: whitened, rounded once, ready for encrypted products.

Whitening needs no label, so she does it alone. The table is rounded once, and to the nearest: the
solver is exact for the rounded table. New roundings in each pass would give her new equations about
the same numbers of Bob's, where she sees products in clear.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.whitening import Whitening
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms


@dataclass(frozen=True, slots=True, repr=False)
class WhitenedTable:
    """Her training rows in coordinates in which the loss curves alike in all directions.

    Args:
        whole: The rounded integers, rows by columns.
        whitening: What made them.
        scales: The public scales.
        magnitude_bits: No whitened value exceeds two to this; Bob is told it.
    """

    whole: IntArray
    whitening: Whitening
    scales: Scales
    magnitude_bits: int

    @classmethod
    def of(cls, inputs: AliceInputs) -> WhitenedTable:
        """Whitens and rounds.

        Raises:
            ConfigError: The table cannot be whitened, or does not fit the modulus.
        """
        features, agreed = inputs.features, inputs.terms.agreement
        whitening = Whitening.of(features.values, agreed.l2)
        values = whitening.apply(features.values)
        bits = magnitude_bits(float(np.abs(values).max(initial=0.0)))
        scales = Scales.of_table(agreed, features.rows, len(features.columns), bits)
        table = cls(scales.feature_grid.rounded(values), whitening, scales, bits)
        size = TableSize(*table.whole.shape)
        inputs.terms.scheme.check_tables(table.ring, size, agreed.epochs + 1)
        return table

    @property
    def ring(self) -> Wrapping:
        """The sizes of its products."""
        return self.scales.ring(self.magnitude_bits, max(self.whole.shape))

    def others(self, features: FeatureTable) -> IntArray:
        """Other rows in the same coordinates; what lies beyond the table's range is cut to it."""
        bound = 2.0**self.magnitude_bits
        values = self.whitening.apply(features.values)
        return self.scales.feature_grid.rounded(np.clip(values, -bound, bound))

    def weights(self, product: IntArray) -> FloatArray:
        """The weights of the original columns, from their exact integers in these coordinates."""
        own = product.astype(np.float64) * 2.0**-self.scales.weight_bits
        return self.whitening.weights(own)


def largest_bits(features: FeatureTable, terms: Terms) -> int:
    """The size of Alice's values, in the coordinates of the training: what Bob is told of them."""
    if not terms.whole_table:
        return magnitude_bits(features.largest)
    whitening = Whitening.of(features.values, terms.agreement.l2)
    return magnitude_bits(float(np.abs(whitening.apply(features.values)).max(initial=0.0)))


def whitened_rows(features: FeatureTable, whitening: Whitening) -> FeatureTable:
    """Other rows as a table of whitened columns."""
    return replace(features, values=whitening.apply(features.values))
