"""Bob's half of products number by number. The chart stands in Alice's files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import WordArray
from taciturn.crypto.base import EncryptedAnswer, SlotScheme, SlotSecretKey
from taciturn.protocol.messages import CarryShares, KeyOffer, PublicBytes, Segments
from taciturn.protocol.mutual import Numbers
from taciturn.protocol.slot_blocks import SlotBlock, slot_blocks
from taciturn.protocol.steps import (
    Program,
    persist,
    receive_at,
    require_entries,
    send,
)
from taciturn.rng import Entropy


@dataclass(frozen=True, slots=True)
class ProductRequester:
    """Questions under one key of his."""

    slots: SlotScheme
    key: SlotSecretKey
    entropy: Entropy

    def shared_products(
        self, purpose: str, number: int, shape: tuple[int, ...], numbers: Numbers
    ) -> Program[WordArray]:
        """His shares, modulo the prime, of each row's sum of products of his numbers with Alice's.

        ``shape`` has the rows and the numbers of each. ``purpose`` is one of its kind in a pass.
        """
        sums, (rows, entries) = np.empty(shape[0], dtype=np.uint64), shape
        for sent, answered in turns(slot_blocks(self.slots, rows, entries)):
            if sent is not None:
                entropy = self.entropy.fork(f"{purpose} {number} {sent.rows.start}")
                for at, vector in enumerate(sent.vectors(numbers(sent.rows))):
                    encrypted = self.key.encrypt(vector, entropy.fork(f"{at}"))
                    yield from send(Segments(number, encrypted))
            if answered is not None:
                message = yield from receive_at(CarryShares, number)
                sums[answered.rows] = decrypted_sums(self.key, self.slots, message.answer, answered)
        return sums


def decrypted_sums(
    key: SlotSecretKey, slots: SlotScheme, answer: EncryptedAnswer, block: SlotBlock
) -> WordArray:
    """His share of each row's sum of products."""
    require_entries("answer", answer.length, block.length)
    return block.sums(key.decrypt(answer), slots.modulus)


def turns(blocks: list[SlotBlock]) -> Iterator[tuple[SlotBlock | None, SlotBlock | None]]:
    """Which block is sent next, and the answer to which is read then."""
    # The next block is on its way before an answer is read, so that both sides are at work.
    for at in range(len(blocks) + 1):
        yield blocks[at] if at < len(blocks) else None, blocks[at - 1] if at else None


def offer_slot_key(
    slots: SlotScheme, bits: int, entropy: Entropy, seed: bytes
) -> Program[SlotSecretKey]:
    """A new key for products number by number, sent to Alice; ``seed`` makes its uniform half."""
    key = slots.generate(bits, entropy, seed)
    # Whatever a scheme draws its keys from: after a stop it is this one.
    kept = yield from persist(key.to_bytes())
    if kept != key.to_bytes():
        key = slots.read_secret(kept, bits)
    yield from send(KeyOffer(PublicBytes(key.public.to_bytes())))
    return key
