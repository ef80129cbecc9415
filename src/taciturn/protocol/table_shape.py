"""The shape of whole tables in newton, as both sides know it after the greetings."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.crypto.base import TableSize, Wrapping
from taciturn.numerics.penalty_rows import MeasuredPenalty, gain_bits
from taciturn.protocol.scales import Scales
from taciturn.protocol.terms import Terms


@dataclass(frozen=True, slots=True)
class TableShape:
    """One Alice's table, or several Alices' that are asked alike.

    Args:
        rows: The training rows.
        widths: How many columns each Alice has.
        magnitude_bits: No whitened value of any of them exceeds two to this.
    """

    rows: int
    widths: tuple[int, ...]
    magnitude_bits: int

    @property
    def columns(self) -> int:
        """Those of all Alices."""
        return sum(self.widths)

    @property
    def carried(self) -> int:
        """How many rows carry the penalty of several (``taciturn.numerics.penalty_rows``)."""
        return self.columns if len(self.widths) > 1 else 0

    @property
    def height(self) -> int:
        """How many rows a table has in all."""
        return self.rows + self.carried

    @property
    def gain(self) -> int:
        """By how many bits those are enlarged."""
        return gain_bits(self.rows, self.magnitude_bits)

    @property
    def penalty(self) -> MeasuredPenalty | None:
        """What Bob has of them before the first pass."""
        return MeasuredPenalty.empty(self.carried, self.rows, self.gain) if self.carried else None

    def size(self, columns: int) -> TableSize:
        """That of an Alice's table."""
        return TableSize(self.height, columns)

    def scales(self, terms: Terms) -> Scales:
        """The public scales.

        Raises:
            ConfigError: The modulus has no room for them.
        """
        # Each Alice's scores of a direction are within what the scales have room for, and add up.
        sums = (len(self.widths) - 1).bit_length()
        size = self.size(self.columns)
        return Scales.of_table(terms.agreement, size.rows, size.columns, self.magnitude_bits + sums)

    def ring(self, scales: Scales) -> Wrapping:
        """The sizes of their products."""
        return scales.ring(self.magnitude_bits, max(self.height, *self.widths))
