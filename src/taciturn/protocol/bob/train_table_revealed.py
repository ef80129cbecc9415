"""Bob's side of newton in which Alice learns a sum over all rows in every pass.

The chart of messages stands in Alice's file, the search in
``taciturn.protocol.bob.subspace_search``. What he returns passes through his mechanism and is
charged before it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, IntArray
from taciturn.crypto.base import SecretKey, TableSize, wrapping
from taciturn.privacy.base import GradientMechanism, MaskedProduct
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.opening import greet
from taciturn.protocol.bob.partners import Partner, Partners, receive_all_scores
from taciturn.protocol.bob.products import masked_answer, release_products
from taciturn.protocol.bob.sealed import Keys
from taciturn.protocol.bob.subspace_search import DirectionScores, search
from taciturn.protocol.messages import EncryptedResidues
from taciturn.protocol.outcome import BobTrained
from taciturn.protocol.steps import Program, StepProgress, send
from taciturn.protocol.table_shape import TableShape
from taciturn.rng import Entropy


def train(inputs: BobInputs[GradientMechanism]) -> Program[BobTrained]:
    """Trains Bob's weights, one per column, and answers Alice."""
    terms, rows = inputs.terms, inputs.features.rows
    state = inputs.resume or (yield from greet(inputs))
    partners = Partners.for_training(inputs.partners, state)
    shape = TableShape.from_state(rows, state)
    scales = shape.scales(terms)
    keys = Keys(terms, shape.ring(scales), None, state.key)
    key = yield from keys.offer(inputs.entropy, inputs.partners)
    state = replace(state, key=keys.to_bytes())
    answers = _Answers(inputs, key, partners, shape)
    price = shape.price(terms.agreement.l2)
    searched = yield from search(inputs, state, scales, answers.effect, price)
    (solution,) = searched.solutions
    yield from answers.release_sum(terms.rounds, solution.combination)
    return BobTrained.from_state(state, solution.weights, terms.rounds)


@dataclass(frozen=True, slots=True)
class _Answers:
    inputs: BobInputs[GradientMechanism]
    key: SecretKey
    partners: Partners
    shape: TableShape

    def effect(self, number: int, direction: IntArray) -> Program[DirectionScores]:
        yield from self.release_sum(number, direction)
        scores = yield from self._receive_scores(number, self.shape.rows)
        held_out = self.inputs.scored_each_epoch
        if held_out is None:
            return DirectionScores(scores)
        rows = held_out.features.rows
        return DirectionScores(scores, (yield from self._receive_scores(number, rows)))

    def release_sum(self, number: int, direction: IntArray) -> Program[None]:
        entropy = self.inputs.entropy.fork(f"encryption {number}")
        products = yield from self.partners.ask(
            lambda partner: self._ask_sum(partner, number, direction, partner.entropy(entropy))
        )
        yield from release_products(self.inputs, self.partners, products, EVERY_ROW, number)

    def _ask_sum(
        self, partner: Partner, number: int, direction: IntArray, entropy: Entropy
    ) -> Program[MaskedProduct]:
        size = self.shape.size(partner.columns)
        parts = self.inputs.terms.scheme.row_parts(size)
        # The progress of one Alice stands for that of all.
        passes = None if partner.place.start else self.inputs.terms.rounds
        turn = StepProgress(number, passes)
        for done, part in enumerate(parts, 1):
            # Sent one by one, so that Alice works on one while he makes the next.
            vector = self.key.encrypt_rows(direction[part], size, entropy, part)
            yield from send(EncryptedResidues(number, vector))
            yield from turn.report(0, done, len(parts))
        answer = yield from masked_answer(number, size.columns)
        masked = self.key.decrypt_columns(answer, size)
        # A mask is uniform modulo t; its classes travel as numbers from 0 on.
        modulus = 1 << wrapping(self.key.public.capacity).modulus_bits
        return tuple(entry % modulus for entry in masked.tolist())

    def _receive_scores(self, number: int, rows: int) -> Program[FloatArray]:
        scores, terms = np.empty(rows), self.inputs.terms
        # Several Alices send theirs in the same parts, those of the widest table.
        for part in terms.scheme.row_parts(TableSize(rows, self.partners.widest)):
            entries = part.stop - part.start
            scores[part] = yield from receive_all_scores(
                self.partners.names, number, entries, terms.direction_grid
            )
        return scores
