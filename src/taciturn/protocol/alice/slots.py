"""Alice's half of products number by number: her numbers times Bob's, summed, under a mask of hers.

::

    Alice                                            Bob
      for each block of rows:
                                                <-   Phases, or Segments      <numbers>, several
      ResidueShares, or CarryShares             ->   the sums are his shares
       <sum of table * numbers + masks>
      LossShares           the same of          ->   (to Phases, where the pass's loss is opened)
       another table
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from taciturn.arrays import IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, SlotPublicKey, SlotScheme, SlotSum, Wrapping
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.protocol.messages import CarryShares, LossShares, Phases, ResidueShares, Segments
from taciturn.protocol.mutual import (
    Numbers,
    SlotBlock,
    shares_modulo_power,
    sized_vector,
    slot_blocks,
)
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.rng import Entropy

_NONE = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class SigmoidResponder:
    """Alice's answers under Bob's ``key``, whose scheme is ``slots``; shares live in ``ring``."""

    key: SlotPublicKey
    slots: SlotScheme
    ring: Wrapping
    entropy: Entropy

    def residues(
        self, number: int, sigmoid: SharedSigmoid, scores: IntArray, loss_unit: float | None
    ) -> Program[tuple[IntArray, WordArray]]:
        """Her share of the rows' residues, from her table of the sigmoid.

        With ``loss_unit``, the loss of a row of 1, also her shares of the sums of losses of each
        block, modulo the prime: the same ciphertexts times another table.
        """
        shares, losses = np.empty(len(scores), dtype=np.int64), list[WordArray]()
        for block in slot_blocks(self.slots, len(scores), sigmoid.entries):
            entropy = self.entropy.fork(f"waves {number} {block.rows.start}")
            of_loss = entropy.fork("loss")
            tables = [sigmoid.table(scores[block.rows], entropy.fork("table"))]
            if loss_unit is not None:
                of_table = of_loss.fork("table")
                tables.append(sigmoid.loss_table(scores[block.rows], loss_unit, of_table))
            totals = [self.key.sum_of(block.length) for _ in tables]
            for parts in zip(*map(block.vectors, tables), strict=True):
                message = yield from receive(Phases)
                require_turn("Phases", message.iteration, number)
                phases = sized_vector(message.phases, block.length)
                for total, part in zip(totals, parts, strict=True):
                    total.add(part, phases)
            answer, taken = self._masked(totals[0], block, entropy)
            shares[block.rows] = self._whole(taken)
            yield from send(ResidueShares(number, answer))
            if loss_unit is not None:
                answer, taken = self._masked(totals[1], block, of_loss)
                losses.append(taken)
                yield from send(LossShares(number, answer))
        return shares, np.concatenate([*losses, _NONE])

    def carries(self, number: int, table: IntArray) -> Program[IntArray]:
        """Her share of the weights' carries, from what each segment of Bob's would make."""
        taken = yield from self.shared_products(
            "segments", number, table.shape, lambda rows: table[rows]
        )
        return self._whole(taken)

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
                message = yield from receive(Segments)
                require_turn("Segments", message.iteration, number)
                total.add(vector, sized_vector(message.marks, block.length))
            answer, shares[block.rows] = self._masked(total, block, entropy)
            yield from send(CarryShares(number, answer))
        return shares

    def _masked(
        self, total: SlotSum, block: SlotBlock, entropy: Entropy
    ) -> tuple[EncryptedAnswer, WordArray]:
        """The masked sum, and her shares of the rows' sums: minus those of the masks."""
        modulus = self.slots.modulus
        masks = entropy.fork("masks").integers(modulus, block.length)
        answer = total.masked(masks.view(np.int64), entropy)
        return answer, np.uint64(modulus) - block.sums(masks, modulus)

    def _whole(self, taken: WordArray) -> IntArray:
        return shares_modulo_power(taken, self.slots.modulus, self.ring, less=True)
