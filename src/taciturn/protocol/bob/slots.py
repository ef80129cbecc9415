"""Bob's half of products number by number. The chart stands in Alice's file of this name."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import FloatArray, IntArray, WordArray
from taciturn.crypto.base import EncryptedAnswer, SlotScheme, SlotSecretKey, Wrapping
from taciturn.crypto.bfv.modular import block_sums
from taciturn.numerics.periodic_sigmoid import SharedSigmoid
from taciturn.protocol.messages import (
    CarryShares,
    KeyOffer,
    Phases,
    PublicBytes,
    ResidueShares,
    Segments,
)
from taciturn.protocol.mutual import cut, shares_modulo_power, sized_answer
from taciturn.protocol.steps import Program, keep, receive, require_turn, send
from taciturn.rng import Entropy

# How many ciphertexts are under way before the first answer is read: enough to keep both at work.
AHEAD = 4


@dataclass(frozen=True, slots=True)
class Questions:
    """Bob's questions under his ``key``, whose scheme is ``slots``; shares live in ``ring``."""

    key: SlotSecretKey
    slots: SlotScheme
    ring: Wrapping
    entropy: Entropy

    def residues(
        self, number: int, sigmoid: SharedSigmoid, scores: IntArray, halves: FloatArray
    ) -> Program[IntArray]:
        """His share of the rows' residues: what Alice's table makes of his numbers, and the label.

        ``halves`` are the residues of scores of zero: half the weight of a row's class, with the
        label's sign.
        """
        sums = np.empty(len(scores), dtype=np.uint64)
        for sent, answered in _turns(list(cut(self.slots, len(scores), sigmoid.entries))):
            if sent is not None:
                # Minus: a residue is y - sigma(z).
                phases = sigmoid.phases(scores[sent], -2.0 * np.abs(halves[sent]))
                coins = self.entropy.fork(f"waves {number} {sent.start}")
                yield from send(Phases(number, self.key.encrypt(phases.ravel(), coins)))
            if answered is not None:
                message = yield from receive(ResidueShares)
                require_turn("ResidueShares", message.iteration, number)
                rows = answered.stop - answered.start
                sums[answered] = self._sums(message.answer, (rows, sigmoid.entries))
        shares = shares_modulo_power(sums, self.slots.modulus, self.ring, less=False)
        return self.ring.centred(shares + np.rint(halves * sigmoid.step).astype(np.int64))

    def carries(self, number: int, marks: IntArray) -> Program[IntArray]:
        """His share of the weights' carries, from the segments of his shares."""
        sums = np.empty(len(marks), dtype=np.uint64)
        for sent, answered in _turns(list(cut(self.slots, *marks.shape))):
            if sent is not None:
                coins = self.entropy.fork(f"segments {number} {sent.start}")
                yield from send(Segments(number, self.key.encrypt(marks[sent].ravel(), coins)))
            if answered is not None:
                message = yield from receive(CarryShares)
                require_turn("CarryShares", message.iteration, number)
                sums[answered] = self._sums(message.answer, marks[answered].shape)
        return shares_modulo_power(sums, self.slots.modulus, self.ring, less=False)

    def _sums(self, answer: EncryptedAnswer, shape: tuple[int, ...]) -> WordArray:
        products = self.key.decrypt(sized_answer(answer, math.prod(shape)))
        return block_sums(products.reshape(shape), self.slots.modulus)


def _turns(parts: list[slice]) -> Iterator[tuple[slice | None, slice | None]]:
    """Which part is sent next, and the answer to which is read then.

    >>> for sent, answered in _turns([slice(0, 2), slice(2, 4)]):
    ...     print(sent, answered)
    slice(0, 2, None) None
    slice(2, 4, None) None
    None slice(0, 2, None)
    None slice(2, 4, None)
    """
    late = min(AHEAD, len(parts))
    for at in range(len(parts) + late):
        yield parts[at] if at < len(parts) else None, parts[at - late] if at >= late else None


def offer_slot_key(
    slots: SlotScheme, bits: int, entropy: Entropy, seed: bytes
) -> Program[SlotSecretKey]:
    """A new key for products number by number, sent to Alice; ``seed`` makes its uniform half."""
    key = slots.generate(bits, entropy.fork("waves key"), seed)
    # Whatever a scheme draws its keys from: after a stop it is this one.
    kept = yield from keep(key.to_bytes())
    if kept != key.to_bytes():
        key = slots.read_secret(kept, bits)
    yield from send(KeyOffer(PublicBytes(key.public.to_bytes())))
    return key
