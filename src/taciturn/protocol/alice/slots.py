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
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.protocol.messages import CarryShares, Phases, ResidueShares, Segments
from taciturn.protocol.mutual import cut, shares_modulo_power, sized_vector
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
        for rows in cut(self.slots, len(scores), sigmoid.entries):
            coins = self.entropy.fork(f"waves {number} {rows.start}")
            table = sigmoid.table(scores[rows], coins.fork("table"))
            message = yield from receive(Phases)
            require_turn("Phases", message.iteration, number)
            answer, shares[rows] = self._masked(table, message.phases, coins)
            yield from send(ResidueShares(number, answer))
        return shares

    def carries(self, number: int, table: IntArray) -> Program[IntArray]:
        """Her share of the weights' carries, from what each segment of Bob's would make."""
        shares = np.empty(len(table), dtype=np.int64)
        for rows in cut(self.slots, *table.shape):
            message = yield from receive(Segments)
            require_turn("Segments", message.iteration, number)
            coins = self.entropy.fork(f"segments {number} {rows.start}")
            answer, shares[rows] = self._masked(table[rows], message.marks, coins)
            yield from send(CarryShares(number, answer))
        return shares

    def _masked(
        self, table: IntArray, vector: EncryptedVector, coins: Entropy
    ) -> tuple[EncryptedAnswer, IntArray]:
        """The masked products, and her shares of their sums: minus those of the masks."""
        modulus = self.slots.modulus
        masks = coins.fork("masks").integers(modulus, table.size)
        sized = sized_vector(vector, table.size)
        answer = self.key.product(table.ravel(), sized, masks.view(np.int64), coins)
        taken = np.uint64(modulus) - block_sums(masks.reshape(table.shape), modulus)
        return answer, shares_modulo_power(taken, modulus, self.ring, less=True)
