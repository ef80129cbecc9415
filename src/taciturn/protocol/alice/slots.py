"""Alice's half of products number by number: her numbers times Bob's, summed, under a mask of hers.

::

    Alice                                            Bob
      for each block of rows:
                                                <-   Phases, or Segments      <numbers>, several
      ResidueShares, or CarryShares             ->   the sums are his shares
       <sum of table * numbers + masks>
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import EncryptedAnswer, SlotPublicKey, SlotScheme, SlotSum, Wrapping
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.protocol.messages import CarryShares, Phases, ResidueShares, Segments
from taciturn.protocol.mutual import SlotBlock, shares_modulo_power, sized_vector, slot_blocks
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class Answers:
    """Alice's answers under Bob's ``key``, whose scheme is ``slots``; shares live in ``ring``."""

    key: SlotPublicKey
    slots: SlotScheme
    ring: Wrapping
    entropy: Entropy

    def residues(self, number: int, sigmoid: SharedSigmoid, scores: IntArray) -> Program[IntArray]:
        """Her share of the rows' residues, from her table of the sigmoid."""
        shares = np.empty(len(scores), dtype=np.int64)
        for block in slot_blocks(self.slots, len(scores), sigmoid.entries):
            coins = self.entropy.fork(f"waves {number} {block.rows.start}")
            total = self.key.sum_of(block.length)
            for table in block.vectors(sigmoid.table(scores[block.rows], coins.fork("table"))):
                message = yield from receive(Phases)
                require_turn("Phases", message.iteration, number)
                total.add(table, sized_vector(message.phases, block.length))
            answer, shares[block.rows] = self._masked(total, block, coins)
            yield from send(ResidueShares(number, answer))
        return shares

    def carries(self, number: int, table: IntArray) -> Program[IntArray]:
        """Her share of the weights' carries, from what each segment of Bob's would make."""
        shares = np.empty(len(table), dtype=np.int64)
        for block in slot_blocks(self.slots, *table.shape):
            coins = self.entropy.fork(f"segments {number} {block.rows.start}")
            total = self.key.sum_of(block.length)
            for vector in block.vectors(table[block.rows]):
                message = yield from receive(Segments)
                require_turn("Segments", message.iteration, number)
                total.add(vector, sized_vector(message.marks, block.length))
            answer, shares[block.rows] = self._masked(total, block, coins)
            yield from send(CarryShares(number, answer))
        return shares

    def _masked(
        self, total: SlotSum, block: SlotBlock, coins: Entropy
    ) -> tuple[EncryptedAnswer, IntArray]:
        """The masked sum, and her shares of the rows' sums: minus those of the masks."""
        modulus = self.slots.modulus
        masks = coins.fork("masks").integers(modulus, block.length)
        answer = total.masked(masks.view(np.int64), coins)
        taken = np.uint64(modulus) - block.sums(masks, modulus)
        return answer, shares_modulo_power(taken, modulus, self.ring, less=True)
