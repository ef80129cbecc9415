"""Bob's side of newton with shared weights: nothing reaches Alice in clear.

The chart of messages stands in Alice's file, the search in ``taciturn.protocol.bob.passes``. Every
answer of the right structure is taken, whatever is inside, and the number, kinds and lengths of his
messages follow from the agreement and the sizes of the tables.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import TableSize
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.opening import greet, with_seed
from taciturn.protocol.bob.passes import Measured, search
from taciturn.protocol.bob.sealed import (
    Keys,
    ask_table_scores,
    release_noisy_share,
    release_share,
    sized,
)
from taciturn.protocol.messages import SealedGradient, SealedResidues
from taciturn.protocol.model_release import model_release_of
from taciturn.protocol.outcome import BobTrained, WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.protocol.turn import Turn
from taciturn.rng import Entropy


def train(inputs: BobInputs[EncryptedMechanism]) -> Program[BobTrained]:
    """Trains Bob's weights, and his share of Alice's; charged only where he reveals that.

    Returns:
        His weights, one per column, his share of Alice's, and how many scores may have wrapped.
    """
    terms, rows = inputs.terms, inputs.features.rows
    state = inputs.resume or (yield from greet(inputs))
    scales = Scales.of_table(terms.agreement, rows, state.columns, state.magnitude_bits)
    ring = scales.ring(state.magnitude_bits, max(rows, state.columns))
    state = yield from with_seed(inputs, state)
    keys = Keys(terms, ring, state.seed, state.key)
    if not keys.single_use:
        yield from keys.offer(inputs.entropy)
    state = replace(state, key=keys.to_bytes())
    held_out = inputs.scored_each_epoch
    ask = _Questions(
        keys,
        scales,
        TableSize(rows, state.columns),
        None if held_out is None else TableSize(held_out.features.rows, state.columns),
        terms.agreement.epochs,
        inputs.entropy,
    )
    searched = yield from search(inputs, state, scales, ask.effect)
    passes = terms.agreement.epochs
    share = yield from ask.masked_sum(passes, searched.combination)
    release = model_release_of(terms.agreement, scales, state.columns, inputs.features)
    if release is not None:
        share = yield from release_noisy_share(inputs, share, release, scales.modulus_bits)
    elif terms.agreement.reveal:
        yield from release_share(inputs, share)
    kept = WeightShare(share, scales)
    return BobTrained(
        searched.weights, passes, share=kept, suspected_wraps=searched.suspected_wraps
    )


class _Questions:
    """What Bob asks in a pass."""

    def __init__(
        self,
        keys: Keys,
        scales: Scales,
        size: TableSize,
        held_out: TableSize | None,
        passes: int,
        entropy: Entropy,
    ) -> None:
        self._keys, self._scales, self._entropy = keys, scales, entropy
        self._size, self._held_out, self._passes = size, held_out, passes

    def effect(self, number: int, direction: IntArray) -> Program[Measured]:
        """What a direction does to the scores."""
        share = yield from self.masked_sum(number, direction)
        exact = yield from self._ask_scores(number, share, self._size, "scores")
        others = np.empty(0, dtype=np.int64)
        if self._held_out is not None:
            others = yield from self._ask_scores(number, share, self._held_out, "held out")
        scales = self._scales
        return Measured(scales.scores(exact, 0), scales.scores(others, 0), scales.suspected(exact))

    def masked_sum(self, number: int, direction: IntArray) -> Program[IntArray]:
        """``X~^T a`` with Alice's mask in it, of which Bob cannot take it off."""
        coins = self._entropy.fork(f"step {number}")
        key = yield from self._keys.offer(coins)
        parts, turn = self._keys.scheme.row_parts(self._size), Turn(number, self._passes)
        for done, part in enumerate(parts, 1):
            # Each as soon as it is there: Alice is at work on it while he is at the next.
            vector = key.encrypt_rows(direction[part], self._size, coins, part)
            yield from send(SealedResidues(number, vector))
            yield from turn.report(0, done, len(parts))
        message = yield from receive(SealedGradient)
        require_turn("SealedGradient", message.iteration, number)
        return key.decrypt_columns(sized(message.answer, self._size.columns), self._size)

    def _ask_scores(
        self, number: int, share: IntArray, size: TableSize, label: str
    ) -> Program[IntArray]:
        coins = self._entropy.fork(f"{label} {number}")
        turn = Turn(number, self._passes if label == "scores" else None)
        return (yield from ask_table_scores(self._keys, share, size, turn, coins))
