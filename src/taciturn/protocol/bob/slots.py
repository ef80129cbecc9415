"""Bob's half of products number by number. The chart stands in Alice's file of this name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, SlotScheme, SlotSecretKey, Wrapping
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.protocol.messages import (
    CarryShares,
    KeyOffer,
    LossShares,
    Phases,
    PublicBytes,
    ResidueShares,
    Segments,
)
from taciturn.protocol.mutual import (
    Numbers,
    SlotBlock,
    shares_modulo_power,
    sized_answer,
    slot_blocks,
)
from taciturn.protocol.steps import Program, persist, receive, require_turn, send
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class SigmoidRequester:
    """Bob's questions under his ``key``, whose scheme is ``slots``; shares live in ``ring``."""

    key: SlotSecretKey
    slots: SlotScheme
    ring: Wrapping
    entropy: Entropy

    def residues(
        self,
        number: int,
        sigmoid: SharedSigmoid,
        scores: IntArray,
        halves: FloatArray,
        *,
        with_loss: bool,
    ) -> Program[tuple[IntArray, WordArray]]:
        """His share of the rows' residues: what Alice's table makes of his numbers, and the label.

        ``halves`` are the residues of scores of zero: half the weight of a row's class, with the
        label's sign. ``with_loss`` also his shares of the rows' losses, modulo the prime.
        """
        sums = np.empty(len(scores), dtype=np.uint64)
        losses = np.empty(len(scores) if with_loss else 0, dtype=np.uint64)
        for sent, answered in _turns(slot_blocks(self.slots, len(scores), sigmoid.entries)):
            if sent is not None:
                # Minus: a residue is y - sigma(z).
                phases = sigmoid.phases(scores[sent.rows], -2.0 * np.abs(halves[sent.rows]))
                entropy = self.entropy.fork(f"waves {number} {sent.rows.start}")
                for at, vector in enumerate(sent.vectors(phases)):
                    encrypted = self.key.encrypt(vector, entropy.fork(f"{at}"))
                    yield from send(Phases(number, encrypted))
            if answered is not None:
                message = yield from receive(ResidueShares)
                require_turn("ResidueShares", message.iteration, number)
                sums[answered.rows] = self._sums(message.answer, answered)
                if with_loss:
                    of_loss = yield from receive(LossShares)
                    require_turn("LossShares", of_loss.iteration, number)
                    losses[answered.rows] = self._sums(of_loss.answer, answered)
        labels = np.rint(halves * sigmoid.step).astype(np.int64)
        return self.ring.centred(self._whole(sums) + labels), losses

    def carries(self, number: int, marks: IntArray) -> Program[IntArray]:
        """His share of the weights' carries, from the segments of his shares."""
        sums = yield from self.shared_products(
            "segments", number, marks.shape, lambda rows: marks[rows]
        )
        return self._whole(sums)

    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """His shares, modulo the prime, of each row's sum of products of his numbers with Alice's.

        ``shape`` has the rows and the numbers of each. ``purpose`` is one of its kind in a pass.
        """
        sums, (rows, entries) = np.empty(shape[0], dtype=np.uint64), shape
        for sent, answered in _turns(slot_blocks(self.slots, rows, entries)):
            if sent is not None:
                entropy = self.entropy.fork(f"{purpose} {number} {sent.rows.start}")
                for at, vector in enumerate(sent.vectors(numbers(sent.rows))):
                    encrypted = self.key.encrypt(vector, entropy.fork(f"{at}"))
                    yield from send(Segments(number, encrypted))
            if answered is not None:
                message = yield from receive(CarryShares)
                require_turn("CarryShares", message.iteration, number)
                sums[answered.rows] = self._sums(message.answer, answered)
        return sums

    def _whole(self, sums: WordArray) -> IntArray:
        return shares_modulo_power(sums, self.slots.modulus, self.ring, less=False)

    def _sums(self, answer: EncryptedAnswer, block: SlotBlock) -> WordArray:
        slots = self.key.decrypt(sized_answer(answer, block.length))
        return block.sums(slots, self.slots.modulus)


def _turns(blocks: list[SlotBlock]) -> Iterator[tuple[SlotBlock | None, SlotBlock | None]]:
    """Which block is sent next, and the answer to which is read then."""
    # The next block is on its way before an answer is read, so that both sides are at work.
    for at in range(len(blocks) + 1):
        yield blocks[at] if at < len(blocks) else None, blocks[at - 1] if at else None


def offer_slot_key(
    slots: SlotScheme, bits: int, entropy: Entropy, seed: bytes
) -> Program[SlotSecretKey]:
    """A new key for products number by number, sent to Alice; ``seed`` makes its uniform half."""
    key = slots.generate(bits, entropy.fork("waves key"), seed)
    # Whatever a scheme draws its keys from: after a stop it is this one.
    kept = yield from persist(key.to_bytes())
    if kept != key.to_bytes():
        key = slots.read_secret(kept, bits)
    yield from send(KeyOffer(PublicBytes(key.public.to_bytes())))
    return key
