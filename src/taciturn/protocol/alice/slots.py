"""Alice's half of products number by number: her numbers times Bob's, each under a mask of hers.

::

    Alice                                            Bob
                                                <-   Phases, or Segments      <numbers>
      ResidueShares, or CarryShares             ->   their sums are his shares
       <table * numbers + masks>
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import (
    EncryptedAnswer,
    EncryptedVector,
    SlotPublicKey,
    SlotScheme,
    Wrapping,
)
from taciturn.crypto.bfv.modular import block_sums
from taciturn.protocol.messages import CarryShares, Phases, ResidueShares, Segments
from taciturn.protocol.mutual import cut, shares_modulo_power, sized_vector
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class Answers:
    """What all of her answers have in common.

    Args:
        key: Bob's, for products number by number.
        slots: The scheme of that key.
        ring: Where shares live.
        entropy: Her coins.
    """

    key: SlotPublicKey
    slots: SlotScheme
    ring: Wrapping
    entropy: Entropy

    def residues(self, number: int, table: IntArray) -> Program[IntArray]:
        """Her share of the rows' residues, from her table of the sigmoid, a row each."""
        masks = self._masks(table, self.entropy.fork(f"residues {number}"))
        for rows in cut(self.slots, *table.shape):
            message = yield from receive(Phases)
            require_turn("Phases", message.iteration, number)
            coins = self.entropy.fork(f"waves {number} {rows.start}")
            answer = self._answer(table[rows], message.phases, masks[rows], coins)
            yield from send(ResidueShares(number, answer))
        return self._shares(masks)

    def carries(self, number: int, table: IntArray) -> Program[IntArray]:
        """Her share of the weights' carries, from what each segment of Bob's would make."""
        masks = self._masks(table, self.entropy.fork(f"carries {number}"))
        for rows in cut(self.slots, *table.shape):
            message = yield from receive(Segments)
            require_turn("Segments", message.iteration, number)
            coins = self.entropy.fork(f"segments {number} {rows.start}")
            answer = self._answer(table[rows], message.marks, masks[rows], coins)
            yield from send(CarryShares(number, answer))
        return self._shares(masks)

    def _masks(self, table: IntArray, entropy: Entropy) -> IntArray:
        drawn = entropy.integers(self.slots.modulus, table.size)
        return drawn.reshape(table.shape).view(np.int64)

    def _answer(
        self, table: IntArray, vector: EncryptedVector, masks: IntArray, coins: Entropy
    ) -> EncryptedAnswer:
        sized = sized_vector(vector, table.size)
        return self.key.product(table.ravel(), sized, masks.ravel(), coins)

    def _shares(self, masks: IntArray) -> IntArray:
        """Minus the sums of the masks, from 0 to the modulus, as shares."""
        modulus = self.slots.modulus
        taken = np.uint64(modulus) - block_sums(masks.view(np.uint64), modulus)
        return shares_modulo_power(taken, modulus, self.ring, less=True)
