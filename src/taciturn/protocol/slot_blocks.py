"""Blocks of rows whose numbers share the slots of ciphertexts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import (
    SlotScheme,
)
from taciturn.crypto.bfv.modular import block_sums


@dataclass(frozen=True, slots=True)
class SlotBlock:
    """Rows whose numbers share the slots of some ciphertexts.

    A ciphertext holds ``groups`` numbers of each row, one group after the other, so that the
    products of several ciphertexts are summed slot by slot and answered once.
    """

    rows: slice
    groups: int
    ciphertexts: int

    @property
    def length(self) -> int:
        """Numbers in a ciphertext."""
        start, stop = self.rows.start, self.rows.stop
        return self.groups * int(stop - start)

    def vectors(self, numbers: IntArray) -> IntArray:
        """The numbers of each row in the slots of each ciphertext, padded with zeros."""
        rows, entries = numbers.shape
        slots = np.zeros((self.ciphertexts * self.groups, rows), dtype=np.int64)
        slots[:entries] = numbers.T
        return slots.reshape(self.ciphertexts, self.length)

    def sums(self, slots: WordArray, modulus: int) -> WordArray:
        """The sum of each row's slots, modulo a prime."""
        return block_sums(slots.reshape(self.groups, -1).T, modulus)


def slot_blocks(slots: SlotScheme, rows: int, entries: int) -> list[SlotBlock]:
    """Split rows with ``entries`` numbers each into blocks of ciphertexts.

    >>> from taciturn.crypto.bfv.slots import BfvSlots
    >>> for block in slot_blocks(BfvSlots(), 9000, 42):
    ...     print(block.rows.start, block.rows.stop, block.groups, block.ciphertexts)
    0 8192 1 42
    8192 9000 9 5
    """
    most, blocks = slots.slots, []
    rest = _few_ciphertexts(rows % most, entries, most) if rows % most else []
    start = 0
    for count in [most] * (rows // most) + rest:
        ciphertexts = _ciphertexts(count, entries, most)
        place = slice(start, start + count)
        blocks.append(SlotBlock(place, -(-entries // ciphertexts), ciphertexts))
        start += count
    return blocks


def _ciphertexts(rows: int, entries: int, most: int) -> int:
    return -(-entries // min(most // rows, entries))


def _few_ciphertexts(rows: int, entries: int, most: int) -> list[int]:
    """Block sizes with the fewest ciphertexts, answers included.

    Either one block for all rows, or one that fills its slots and further blocks for the rest.
    """

    def cost(sizes: list[int]) -> int:
        return sum(_ciphertexts(size, entries, most) + 1 for size in sizes)

    groups = most // rows
    if groups >= entries:
        return [rows]
    first = most // (groups + 1)
    return min([rows], [first, *_few_ciphertexts(rows - first, entries, most)], key=cost)
