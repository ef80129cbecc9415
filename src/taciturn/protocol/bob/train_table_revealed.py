"""Bob's side of newton in which Alice learns a sum over all rows in every pass.

The chart of messages stands in Alice's file, the search in ``taciturn.protocol.bob.passes``. What
he returns passes through his mechanism and is charged before it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, IntArray
from taciturn.crypto.base import SecretKey, TableSize, wrapping
from taciturn.errors import RemoteProtocolError
from taciturn.privacy.base import GradientMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.opening import greet
from taciturn.protocol.bob.passes import Measured, search
from taciturn.protocol.bob.product import masked_answer
from taciturn.protocol.bob.sealed import Keys
from taciturn.protocol.messages import EncryptedResidues, EpochScores, RevealedGradient
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.scales import Scales
from taciturn.protocol.scores import receive_scores
from taciturn.protocol.steps import Program, receive, require_turn, send
from taciturn.protocol.turn import Turn


def train(inputs: BobInputs[GradientMechanism]) -> Program[BobTrained]:
    """Trains Bob's weights and answers Alice.

    Returns:
        His weights, one per column.
    """
    terms, rows = inputs.terms, inputs.features.rows
    state = inputs.resume or (yield from greet(inputs))
    scales = Scales.of_table(terms.agreement, rows, state.columns, state.magnitude_bits)
    ring = scales.ring(state.magnitude_bits, max(rows, state.columns))
    keys = Keys(terms, ring, None, state.key)
    key = yield from keys.offer(inputs.entropy)
    state = replace(state, key=keys.to_bytes())
    answers = _Answers(inputs, key, TableSize(rows, state.columns))
    searched = yield from search(inputs, state, scales, answers.effect)
    yield from answers.release_sum(terms.agreement.epochs, searched.combination)
    return BobTrained(searched.weights, terms.agreement.epochs)


@dataclass(frozen=True, slots=True)
class _Answers:
    """What Bob asks, and releases, in a pass."""

    inputs: BobInputs[GradientMechanism]
    key: SecretKey
    size: TableSize

    def effect(self, number: int, direction: IntArray) -> Program[Measured]:
        """Releases a direction's sum, and hears what it does to the scores."""
        yield from self.release_sum(number, direction)
        scores = np.empty(self.size.rows)
        for part in self._parts(self.size.rows):
            scores[part] = yield from receive_scores(number, part.stop - part.start)
        return Measured(scores, (yield from self._receive_held_out(number)))

    def release_sum(self, number: int, direction: IntArray) -> Program[None]:
        """One encrypted round trip; what Bob decrypts is charged, released and sent."""
        inputs, size = self.inputs, self.size
        coins = inputs.entropy.fork(f"encryption {number}")
        parts, turn = self._parts(size.rows), Turn(number, inputs.terms.agreement.epochs)
        for done, part in enumerate(parts, 1):
            # Each as soon as it is there: Alice is at work on it while he is at the next.
            vector = self.key.encrypt_rows(direction[part], size, coins, part)
            yield from send(EncryptedResidues(number, vector))
            yield from turn.report(0, done, len(parts))
        answer = yield from masked_answer(number, size.columns)
        masked = self.key.decrypt_columns(answer, size)
        # A mask is uniform modulo t; its classes travel as numbers from 0 on.
        modulus = 1 << wrapping(self.key.public.capacity).modulus_bits
        numbers = tuple(entry % modulus for entry in masked.tolist())
        released = inputs.mechanism.release(numbers, inputs.entropy.fork(f"noise {number}"))
        # Exactly what leaves is what is charged, and before it leaves.
        inputs.ledger.charge(released.event, EVERY_ROW)
        yield from send(RevealedGradient(number, released))

    def _receive_held_out(self, number: int) -> Program[FloatArray]:
        held_out = self.inputs.scored_each_epoch
        if held_out is None:
            return np.empty(0)
        scores = np.empty(held_out.features.rows)
        for part in self._parts(held_out.features.rows):
            message = yield from receive(EpochScores)
            require_turn("EpochScores", message.iteration, number)
            rows = part.stop - part.start
            if len(message.scores) != rows:
                raise RemoteProtocolError(
                    f"the peer scored {len(message.scores)} held-out rows, not {rows}"
                )
            scores[part] = message.scores
        return scores

    def _parts(self, rows: int) -> list[slice]:
        """The parts in which what has an entry for each row of a table travels."""
        return self.inputs.terms.scheme.row_parts(TableSize(rows, self.size.columns))
