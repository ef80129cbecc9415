"""Alice's half of products number by number: her numbers times Bob's, summed, under her masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import WordArray
from taciturn.crypto.base import EncryptedAnswer, SlotPublicKey, SlotScheme, SlotSum
from taciturn.protocol.messages import CarryShares, Segments
from taciturn.protocol.mutual import Numbers
from taciturn.protocol.slot_blocks import SlotBlock, slot_blocks
from taciturn.protocol.steps import (
    Program,
    receive_at,
    require_entries,
    send,
)
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class ProductResponder:
    """Answers under one key of Bob's."""

    slots: SlotScheme
    key: SlotPublicKey
    entropy: Entropy

    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """Her shares, modulo the prime, of each row's sum of products of her numbers with Bob's.

        ``shape`` has the rows and the numbers of each. ``purpose`` is one of its kind in a pass.
        """
        shares, (rows, entries) = np.empty(shape[0], dtype=np.uint64), shape
        for block in slot_blocks(self.slots, rows, entries):
            entropy = self.entropy.fork(f"{purpose} {number} {block.rows.start}")
            total = self.key.sum_of(block.length)
            for vector in block.vectors(numbers(block.rows)):
                marks = (yield from receive_at(Segments, number)).marks
                require_entries("vector", marks.length, block.length)
                total.add(vector, marks)
            answer, shares[block.rows] = masked(total, block, self.slots, entropy)
            yield from send(CarryShares(number, answer))
        return shares


def masked(
    total: SlotSum, block: SlotBlock, slots: SlotScheme, entropy: Entropy
) -> tuple[EncryptedAnswer, WordArray]:
    """The masked sum, and her shares of the rows' sums: minus those of the masks."""
    masks = entropy.fork("masks").integers(slots.modulus, block.length)
    answer = total.masked(masks.view(np.int64), entropy)
    return answer, np.uint64(slots.modulus) - block.sums(masks, slots.modulus)
