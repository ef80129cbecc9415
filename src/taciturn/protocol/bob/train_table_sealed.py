"""Bob's side of newton with shared weights: nothing reaches Alice in clear.

The chart of messages stands in Alice's file, the search in
``taciturn.protocol.bob.subspace_search``. Every answer of the right structure is taken, whatever is
inside, and the number, kinds and lengths of his messages follow from the agreement and the sizes of
the tables.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import TableSize
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.opening import greet, with_seed
from taciturn.protocol.bob.partners import Partner, Partners
from taciturn.protocol.bob.sealed import (
    Keys,
    ask_table_scores,
    release_noisy_share,
    release_share,
)
from taciturn.protocol.bob.subspace_search import DirectionScores, search
from taciturn.protocol.messages import SealedGradient, SealedResidues
from taciturn.protocol.outcome import BobTrained, WeightShare
from taciturn.protocol.scales import Scales
from taciturn.protocol.steps import (
    Program,
    StepProgress,
    receive_at,
    require_entries,
    send,
)
from taciturn.protocol.table_shape import TableShape, model_release_of
from taciturn.rng import Entropy


def train(inputs: BobInputs[EncryptedMechanism]) -> Program[BobTrained]:
    """Trains Bob's weights, and his share of Alice's; charged only where he reveals that."""
    terms, rows = inputs.terms, inputs.features.rows
    state = inputs.resume or (yield from greet(inputs))
    partners = Partners.for_training(inputs.partners, state)
    shape = TableShape.from_state(rows, state)
    scales = shape.scales(terms)
    state = yield from with_seed(inputs, state)
    keys = Keys(terms, shape.ring(scales), state.seed, state.key)
    yield from keys.open(inputs.entropy, inputs.partners)
    state = replace(state, key=keys.to_bytes())
    ask = _Questions(inputs, keys, scales, partners, shape)
    searched = yield from search(inputs, state, scales, ask.effect, shape.price(terms.agreement.l2))
    passes, models = terms.rounds, []
    for number, solution in enumerate(searched.solutions):
        share = yield from ask.masked_sum(passes + number, solution.combination)
        models.append(
            BobTrained(
                solution.weights,
                passes,
                share=WeightShare(share, scales),
                group_shape=state.group_shape.of_model(number),
                suspected_wraps=searched.suspected_wraps,
                opened=searched.opened,
                losses=solution.losses,
            )
        )
    if len(models) > 1:
        # Models of a study: none of them is revealed.
        return replace(models[0], further=tuple(models[1:]))
    release = model_release_of(terms.agreement, scales, state.columns, inputs.features)
    if release is not None:
        share = yield from release_noisy_share(inputs, share, release, scales.modulus_bits)
    elif terms.agreement.reveal:
        yield from release_share(inputs, share, partners)
    return replace(models[0], share=WeightShare(share, scales))


@dataclass(frozen=True, slots=True, repr=False)
class _Questions:
    inputs: BobInputs[EncryptedMechanism]
    keys: Keys
    scales: Scales
    partners: Partners
    shape: TableShape

    def effect(self, number: int, direction: IntArray) -> Program[DirectionScores]:
        share, scales = (yield from self.masked_sum(number, direction)), self.scales
        exact = yield from self._ask_scores(number, share, self.shape.rows, "scores")
        held_out, held_out_scores = self.inputs.scored_each_epoch, np.empty(0, dtype=np.int64)
        if held_out is not None:
            rows = held_out.features.rows
            held_out_scores = yield from self._ask_scores(number, share, rows, "held out")
        return DirectionScores(
            scales.scores(exact), scales.scores(held_out_scores), scales.suspected(exact), exact
        )

    def masked_sum(self, number: int, direction: IntArray) -> Program[IntArray]:
        """``X~^T a`` with Alice's mask in it, of which Bob cannot take it off."""
        entropy = self.inputs.entropy.fork(f"step {number}")
        sums = yield from self.partners.ask(
            lambda partner: self._ask_sum(partner, number, direction, partner.entropy(entropy))
        )
        return np.concatenate(sums)

    def _ask_sum(
        self, partner: Partner, number: int, direction: IntArray, entropy: Entropy
    ) -> Program[IntArray]:
        key, size = (yield from self.keys.offer(entropy)), self.shape.size(partner.columns)
        parts, turn = self.keys.scheme.row_parts(size), self._turn(partner, number)
        for done, part in enumerate(parts, 1):
            # Sent one by one, so that Alice works on one while he makes the next.
            vector = key.encrypt_rows(direction[part], size, entropy, part)
            yield from send(SealedResidues(number, vector))
            yield from turn.report(0, done, len(parts))
        answer = (yield from receive_at(SealedGradient, number)).answer
        require_entries("answer", answer.length, size.columns)
        return key.decrypt_columns(answer, size)

    def _ask_scores(self, number: int, share: IntArray, rows: int, label: str) -> Program[IntArray]:
        entropy = self.inputs.entropy.fork(f"{label} {number}")

        def scored(partner: Partner) -> Program[IntArray]:
            turn = self._turn(partner, number) if label == "scores" else StepProgress(number)
            size, weight_share = TableSize(rows, partner.columns), share[partner.place]
            partner_entropy = partner.entropy(entropy)
            return (
                yield from ask_table_scores(self.keys, weight_share, size, turn, partner_entropy)
            )

        answers = yield from self.partners.ask(scored)
        # Modulo t, where the masks of several Alices cancel.
        return self.keys.ring.centred(reduce(operator.add, answers))

    def _turn(self, partner: Partner, number: int) -> StepProgress:
        """The progress of one Alice stands for that of all."""
        passes = self.inputs.terms.rounds
        return StepProgress(number, None if partner.place.start else passes)
