"""Alice's side of the training in which her weights are shared and nothing reaches her in clear.

::

    Alice                                            Bob
      the joint seed (taciturn.protocol.batch_seed), of batches and of the key's uniform half
                                                <-   KeyOffer
      each iteration, X its rows and X' those of the next:
                                                     r, exactly; r' = (rate/|B|) r
                                                <-   SealedResidues      <r', 2^h r', v>
      draws xi
      SealedGradient       <X^T r' + xi,        ->   v += X^T r' + xi
                            X' (u + v + X^T r')>     the next scores
      u -= xi

The first scores are zero, as the weights are; the last step has no next batch, and is ``<r'>`` and
``<X^T r' + xi>`` alone. Where looking ahead does not pay (``taciturn.protocol.look_ahead``), every
step is of that kind, and from the second iteration on scores have their own exchange before it::

                                                <-   SealedWeights       <v>
      SealedScores         <X v + X u>          ->   the scores

``w_A = u + v`` modulo 2^k at a public scale (``protocol.scales``); both start at zero. With
``fresh_keys`` a KeyOffer stands before each of Bob's vectors. With ``reveal`` Bob sends v at the
end (RevealedShare). Where held-out rows are looked at after each epoch, the last two messages are
exchanged for them; Bob never says what he saw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet, with_seed
from taciturn.protocol.alice.score_noise import ScoreNoise
from taciturn.protocol.alice.sealed import Keys, answer_scores, own_scores, revealed_share
from taciturn.protocol.batches import Batch
from taciturn.protocol.circle import ZeroSum, masks_of
from taciturn.protocol.events import Boundary
from taciturn.protocol.look_ahead import Turns
from taciturn.protocol.messages import SealedGradient, SealedResidues
from taciturn.protocol.observations import ShareRevealed
from taciturn.protocol.outcome import Trained, WeightShare
from taciturn.protocol.prediction import SEALED_CHUNK_ROWS, chunks
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.rng import Entropy

_NO_SCORES = np.empty(0, dtype=np.int64)
_NO_WEIGHTS = np.empty(0)


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's share of her weights.

    Returns:
        Her share, and no weights: she has none in clear. Her weights too, one per column, where Bob
        reveals his share.
    """
    features, terms, entropy = inputs.features, inputs.terms, inputs.entropy
    resume, held_out = inputs.resume, inputs.scored_each_epoch
    state = resume or (yield from greet(inputs, magnitude_bits(features.largest)))
    size, masks = state.magnitude_bits, masks_of(state.circle, terms.agreement.parties)
    scales = Scales.of(terms.agreement, features.rows, size)
    # Several Alices are asked alike, in the way that suits the one with the most columns.
    widest = len(features.columns) if state.circle is None else max(state.circle.widths)
    turns = Turns.of(terms, scales, features.rows, widest, size)
    state, keys = yield from _open(inputs, turns, state)
    plan = terms.plan(state.seed, features.rows)

    def rounded(batch: Batch) -> FloatArray:
        taken = features.values.take(batch.rows, axis=0)
        return scales.rounded(taken, entropy.fork(f"rounding {batch.iteration}"))

    share, rows = state.share, None
    for batch, following in plan.with_next(state.iteration):
        number = batch.iteration
        yield from emit(Boundary(state.at(number, state.weights, share=share)))
        rows, after = rounded(batch) if rows is None else rows, None
        matrix: IntArray | FloatArray = rows.T
        own = _NO_SCORES
        if turns.ahead and following is not None:
            # Kept for the next iteration, which would round the same rows again.
            after, hidden = rounded(following), masks.fork(f"scores {number + 1}")
            own = own_scores(turns.ring, after, share, hidden)
            matrix = turns.matrix(rows, after)
        # In the first iteration all scores are zero, and Bob does not ask.
        elif number and not turns.ahead:
            hidden = masks.fork(f"scores {number}")
            yield from answer_scores(keys, rows, share, number, entropy, hidden)
        given = yield from _answer_step(keys, matrix, own, number, entropy)
        share, rows = turns.ring.centred(share - given), after
        if held_out is not None and plan.ends_epoch(batch):
            held = f"held out {number}"
            table = _HeldOut(held_out, scales, size, inputs.noise_key)
            yield from table.answer(keys, share, number, entropy.fork(held), masks.fork(held))
    weights = _NO_WEIGHTS
    if terms.agreement.reveal:
        weights = scales.weights((yield from revealed_share(turns.ring, share)))
        yield from emit(ShareRevealed(len(scales.decay) - 1, weights))
    kept = WeightShare(share, scales, magnitude_bits=size)
    return Trained(weights, plan.iterations, share=kept, circle=state.circle, company=state.company)


def _open(
    inputs: AliceInputs, turns: Turns, state: TrainingState
) -> Program[tuple[TrainingState, Keys]]:
    """Seed and key, after the greetings; she has a share in place of weights."""
    terms = inputs.terms
    if inputs.resume is not None:
        return state, Keys(terms, turns.ring, state.seed, state.key)
    state = yield from with_seed(inputs, state)
    keys = Keys(terms, turns.ring, state.seed)
    if not terms.agreement.fresh_keys:
        yield from keys.receive()
    share = np.zeros(len(inputs.features.columns), dtype=np.int64)
    return replace(state, weights=_NO_WEIGHTS, key=keys.to_bytes(), share=share), keys


def _answer_step(
    keys: Keys, whole: IntArray | FloatArray, own: IntArray, number: int, entropy: Entropy
) -> Program[IntArray]:
    """The step under Bob's key with a fresh mask in it, and the scores that come with it.

    Returns:
        The mask: what Alice's share gives away to his.
    """
    key = yield from keys.receive()
    coins = entropy.fork(f"step {number}")
    matrix = key.prepare(whole)
    taken = keys.ring.draw(matrix.rows - len(own), entropy.fork(f"masks {number}"))
    mask = key.mask_of(np.concatenate([taken, own]), coins.fork("multiples"))
    key.stock(matrix, mask, coins)
    sent = yield from receive(SealedResidues)
    require_turn("SealedResidues", sent.iteration, number)
    if sent.residues.length != matrix.length:
        raise RemoteProtocolError(
            f"the peer's vector has {sent.residues.length} entries, not {matrix.length}"
        )
    answer = key.masked_product(matrix, sent.residues, mask, coins)
    yield from send(SealedGradient(number, answer))
    return taken


@dataclass(frozen=True, slots=True, repr=False)
class _HeldOut:
    """Held-out rows after an epoch; values beyond the range that the key is for are cut to it."""

    features: FeatureTable
    scales: Scales
    size: int
    noise_key: bytes

    def answer(
        self, keys: Keys, share: IntArray, iteration: int, entropy: Entropy, masks: ZeroSum
    ) -> Program[None]:
        """The scores with the weights after this iteration, and noise."""
        features, scales, bound = self.features, self.scales, 2.0**self.size
        unit, noise = (
            scales.score_unit(iteration + 1),
            ScoreNoise.of_pass(self.noise_key, iteration),
        )
        for number, rows in chunks(features.rows, SEALED_CHUNK_ROWS):
            whole = scales.feature_grid.nearest(np.clip(features.values[rows], -bound, bound))
            ids = features.ids.series[rows].to_list()
            drawn = noise.draw(ids, whole.astype(np.int64), unit)
            hidden = masks.fork(str(number))
            yield from answer_scores(keys, whole, share, number, entropy, hidden, drawn)
