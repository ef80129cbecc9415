"""Alice's side of newton with shared weights: nothing reaches her in clear.

::

    Alice                                            Bob
      the joint seed (taciturn.protocol.joint_seed), of the key's uniform half
                                                <-   KeyOffer
      X~ = X L^-T, whitened alone
      each pass:
                                                     a new direction, one number a of each row
                                                <-   SealedResidues      <a>
      draws xi
      SealedGradient       <X~^T a + xi>        ->   v = X~^T a + xi
                                                <-   SealedWeights       <v>
      SealedScores         <X~ v - X~ xi>       ->   X~ X~^T a: what the direction does to scores
      the last one ends after SealedGradient:        v is his share of the model, -xi is hers
      and again for each further penalty of a study

All weights on the way are ``w~ = X~^T a``, and Bob computes a from the scores that he sees: Alice's
part of a pass does not depend on the pass before. With ``fresh_keys`` a KeyOffer stands before each
of Bob's vectors, with ``reveal`` he sends v at the end, with ``reveal_epsilon`` v and noise. Where
held-out rows are looked at after each pass, SealedWeights and SealedScores are exchanged for them
too. Of a large table there is a SealedResidues, and a SealedScores, for each part of its rows
(``Scheme.row_parts``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.arrays import IntArray
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet_with_table, with_seed
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.sealed import (
    Keys,
    answer_sum,
    answer_table_scores,
    revealed_share,
)
from taciturn.protocol.alice.whitened import WhitenedTable
from taciturn.protocol.encoded_table import EncodedTable
from taciturn.protocol.events import Boundary
from taciturn.protocol.masks import ZeroSum, masks_of
from taciturn.protocol.messages import SealedGradient, SealedResidues
from taciturn.protocol.observations import ShareRevealed
from taciturn.protocol.outcome import Trained, WeightShare
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, StepProgress, emit, send

_NO_WEIGHTS = np.empty(0)


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's share of her weights; her weights too, where Bob reveals his share."""
    terms, entropy = inputs.terms, inputs.entropy
    state, table = yield from greet_with_table(inputs)
    state, keys = yield from _open(inputs, table, state)
    passes, models = terms.rounds, terms.agreement.models
    shares: list[IntArray] = []
    conversation = _Passes(
        inputs, table, keys, masks_of(state.pairwise_masks, terms.agreement.parties)
    )
    try:
        for number in range(state.iteration, passes + models):
            if number <= passes:
                yield from emit(Boundary(state.at(number, _NO_WEIGHTS)))
            given = table.ring.draw(table.whole.shape[1], entropy.fork(f"masks {number}"))
            share = table.ring.centred(-given)
            yield from conversation.answer_sum(number, given)
            if number < passes:
                yield from conversation.answer_scores(number, share)
            else:
                shares.append(share)
    finally:
        conversation.close()
    weights = _NO_WEIGHTS
    if terms.agreement.reveal:
        whole = yield from revealed_share(table.ring, shares[0])
        weights = table.weights(whole)
        yield from emit(ShareRevealed(passes, weights))
    trained, *further = (
        Trained(
            weights,
            passes,
            share=WeightShare(share, table.scales, table.whitening, table.magnitude_bits),
            pairwise_masks=state.pairwise_masks,
            group_shape=state.group_shape.of_model(number),
            means=table.whitening.means,
        )
        for number, share in enumerate(shares)
    )
    return replace(trained, further=tuple(further))


def _open(
    inputs: AliceInputs, table: WhitenedTable, state: TrainingState
) -> Program[tuple[TrainingState, Keys]]:
    terms = inputs.terms
    if inputs.resume is not None:
        return state, Keys(terms, table.ring, state.seed, state.key)
    state = yield from with_seed(inputs, state)
    keys = Keys(terms, table.ring, state.seed)
    if not terms.agreement.fresh_keys:
        yield from keys.receive()
    return replace(state, weights=_NO_WEIGHTS, key=keys.to_bytes()), keys


class _Passes:
    def __init__(
        self, inputs: AliceInputs, table: WhitenedTable, keys: Keys, masks: ZeroSum
    ) -> None:
        self._inputs, self._table, self._keys, self._masks = inputs, table, keys, masks
        self._passes = inputs.terms.rounds
        self._rows = EncodedTable(table.whole, inputs.table_memory)
        # By the name of their entropy: the rows whose scores Bob asks for.
        self._scored = {"scores": self._rows}
        if inputs.scored_each_epoch is not None:
            others = table.others(inputs.scored_each_epoch, inputs.scratch)
            self._scored["held out"] = EncodedTable(others, inputs.table_memory)

    def answer_sum(self, number: int, given: IntArray) -> Program[None]:
        key = yield from self._keys.receive()
        entropy, rows = self._inputs.entropy.fork(f"step {number}"), self._rows.under(key)
        parts = self._keys.scheme.row_parts(rows.size)
        turn = StepProgress(number, self._passes)
        answer = yield from answer_sum(rows, parts, SealedResidues, turn, given, entropy)
        yield from send(SealedGradient(number, answer))

    def answer_scores(self, number: int, share: IntArray) -> Program[None]:
        for name, prepared in self._scored.items():
            entropy = self._inputs.entropy.fork(f"{name} {number}")
            turn = StepProgress(number, self._passes if name == "scores" else None)
            masks = self._masks.fork(f"{name} {number}")
            noise = self._noise(number) if name == "held out" else None
            yield from answer_table_scores(self._keys, prepared, share, turn, entropy, masks, noise)

    def _noise(self, number: int) -> IntArray | None:
        held_out = self._inputs.scored_each_epoch
        if held_out is None:
            return None
        noise = ScoreNoise.for_pass(self._inputs.noise_key, number)
        unit = self._table.scales.score_unit
        return noise.draw(held_out.ids, self._scored["held out"].whole, unit)

    def close(self) -> None:
        for prepared in self._scored.values():
            prepared.close()
