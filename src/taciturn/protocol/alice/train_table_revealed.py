"""Alice's side of newton in which she learns a sum over all rows in every pass.

::

    Alice                                            Bob
                                                <-   KeyOffer
      X~ = X L^-T, whitened alone
      each pass:
                                                     a new direction, one number a of each row
                                                <-   EncryptedResidues   <a>
      MaskedGradient       <X~^T a + xi>        ->
                                                <-   RevealedGradient    X~^T a + xi
      takes xi off
      PartialScores        X~ X~^T a            ->   what the direction does to scores
      the last one ends before PartialScores:        X~^T a is the model

Where held-out rows are looked at after each pass, another PartialScores has theirs. Of a large
table there is an EncryptedResidues, and a PartialScores, for each part of its rows
(``Scheme.row_parts``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import PublicKey, TableSize
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet_with_table
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.sealed import Keys, answer_sum
from taciturn.protocol.alice.whitened import WhitenedTable
from taciturn.protocol.encoded_table import EncodedTable
from taciturn.protocol.events import Boundary
from taciturn.protocol.masks import masks_of
from taciturn.protocol.messages import (
    EncryptedResidues,
    MaskedGradient,
    RevealedGradient,
)
from taciturn.protocol.observations import MomentsSeen
from taciturn.protocol.outcome import Trained
from taciturn.protocol.scores import scores_message
from taciturn.protocol.steps import (
    Program,
    StepProgress,
    emit,
    receive_at,
    require_entries,
    send,
)
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's weights, one per column."""
    terms = inputs.terms
    state, table = yield from greet_with_table(inputs)
    masks = masks_of(state.pairwise_masks, terms.agreement.parties)
    # Several Alices send their scores in the same parts.
    widest = table.widest or table.whole.shape[1]
    keys = Keys(terms, table.ring, None, state.key)
    key = yield from keys.receive()
    state = replace(state, key=keys.to_bytes())
    held_out = inputs.scored_each_epoch
    held_out_table = None if held_out is None else table.others(held_out, inputs.scratch)
    passes, scales, product = terms.rounds, table.scales, np.empty(0, dtype=np.int64)
    prepared = EncodedTable(table.whole, inputs.table_memory)
    try:
        for number in range(state.iteration, passes + 1):
            yield from emit(Boundary(state.at(number, state.weights)))
            product = yield from _unmasked_sum(terms, key, prepared, table, number, inputs.entropy)
            last = number == passes
            yield from emit(
                MomentsSeen(
                    number,
                    table.whole,
                    product,
                    scales.feature_bits,
                    scales.residue_bits,
                    last,
                )
            )
            if not last:
                grid = terms.direction_grid
                for part, scores in _scores(terms, table, table.whole, product, widest):
                    message_masks = masks.fork(f"scores {number} {part}")
                    yield from send(scores_message(number, scores, grid, message_masks))
                if held_out is None or held_out_table is None:
                    continue
                noise = ScoreNoise.for_pass(inputs.noise_key, number)
                drawn = noise.reals(held_out.ids, held_out_table, grid)
                for part, scores in _scores(terms, table, held_out_table, product, widest, drawn):
                    message_masks = masks.fork(f"held out {number} {part}")
                    yield from send(scores_message(number, scores, grid, message_masks))
    finally:
        prepared.close()
    return Trained(
        table.weights(product),
        passes,
        pairwise_masks=state.pairwise_masks,
        group_shape=state.group_shape,
        means=table.whitening.means,
    )


def _unmasked_sum(
    terms: Terms,
    key: PublicKey,
    prepared: EncodedTable,
    table: WhitenedTable,
    number: int,
    entropy: Entropy,
) -> Program[IntArray]:
    """``X~^T a`` in exact integers: the encrypted round trip."""
    ring, columns = table.ring, table.whole.shape[1]
    mask = ring.draw(columns, entropy.fork(f"masks {number}"))
    rows, stream = prepared.under(key), entropy.fork(f"obfuscators {number}")
    parts, turn = terms.scheme.row_parts(rows.size), StepProgress(number, terms.rounds)
    answer = yield from answer_sum(rows, parts, EncryptedResidues, turn, mask, stream)
    yield from send(MaskedGradient(number, answer))
    revealed = yield from receive_at(RevealedGradient, number)
    require_entries("gradient", len(revealed.gradient.value), columns)
    return ring.centred(ring.reduced(revealed.gradient.value) - mask)


def _scores(
    terms: Terms,
    table: WhitenedTable,
    whole: IntArray,
    product: IntArray,
    widest: int,
    noise: FloatArray | None = None,
) -> Iterator[tuple[int, FloatArray]]:
    """Change of the scores of some rows along a direction, in numbered parts, with any noise."""
    for number, part in enumerate(terms.scheme.row_parts(TableSize(len(whole), widest))):
        exact = table.ring.product(whole[part], product)
        scores = table.scales.scores(exact)
        yield number, scores if noise is None else scores + noise[part]
