"""Alice's table as newton's passes use it: whitened, rounded once, ready for encrypted products.

Whitening needs no label, so she does it alone. The table is rounded once, and to the nearest: the
solver is exact for the rounded table. New roundings in each pass would give her new equations about
the same numbers of Bob's, where she sees products in clear.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import TableSize, Wrapping
from taciturn.data.tables import FeatureTable
from taciturn.numerics.descent import BoundedTable
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.numerics.whitening import Whitening
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms
from taciturn.settings.agreement import Agreement


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
        values, whitening, bounded = _whitened(features, agreed)
        bits = _bits(values)
        scales = Scales.of_table(agreed, features.rows, len(features.columns), bits)
        if bounded is not None:
            # Rounding must not take the table out of the bounds that the noise is made for.
            bounded = bounded.shrunk(2.0 ** -(scales.feature_bits + 1))
            values, whitening = bounded.values, bounded.whitening
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
    values, _, _ = _whitened(features, terms.agreement)
    return _bits(values)


def _bits(values: FloatArray) -> int:
    """The least b with all values below 2^b, and all rows no longer than 2^(b + 1).

    A direction's weights are at most 2 long, so that its scores lie within ``4 2^b``, for which
    ``Scales.of_table`` has room.
    """
    longest = float(np.sqrt(np.einsum("ij,ij->i", values, values).max(initial=0.0)))
    largest = magnitude_bits(float(np.abs(values).max(initial=0.0)))
    return max(largest, magnitude_bits(longest / 2.0))


def _whitened(
    features: FeatureTable, agreed: Agreement
) -> tuple[FloatArray, Whitening, BoundedTable | None]:
    """Her columns in their new coordinates; within public bounds where the model is to be told."""
    if agreed.reveal_epsilon is not None:
        bounded = BoundedTable.of(features.values, agreed.l2)
        return bounded.values, bounded.whitening, bounded
    whitening = Whitening.of(features.values, agreed.l2)
    return whitening.apply(features.values), whitening, None
