"""Alice's side of the training in which she learns the gradient of every batch.

::

    Alice                                            Bob
                                                <-   KeyOffer
      the seed of the batches (taciturn.protocol.joint_seed)
      each iteration:
      PartialScores        X_A w_A              ->
                                                <-   EncryptedResidues   <r>
      MaskedGradient       <X_A^T r + xi>       ->
                                                <-   RevealedGradient    X_A^T r + xi
      takes xi off, updates w_A

Each of several Alices sends MaskedScores. [Tan22, Sec. III-C]; without mechanism it is the paper's
baseline.

Alice's half of ``X_A^T r`` under Bob's key, its last three messages, is the part that all
conversations with revealed gradients share.
"""

from __future__ import annotations

from taciturn.arrays import IntArray
from taciturn.crypto.base import PreparedMatrix, PublicKey
from taciturn.numerics.fixedpoint import magnitude_bits
from taciturn.protocol.alice.held_out import report
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet, with_key, with_seed
from taciturn.protocol.events import Boundary
from taciturn.protocol.masks import masks_of
from taciturn.protocol.messages import EncryptedResidues, MaskedGradient, RevealedGradient
from taciturn.protocol.observations import GradientSeen
from taciturn.protocol.outcome import StopReason, Trained
from taciturn.protocol.scores import scores_message
from taciturn.protocol.steps import Program, emit, receive_at, send
from taciturn.rng import Entropy


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's weights, one per column."""
    features, terms = inputs.features, inputs.terms
    state = inputs.resume or (yield from greet(inputs, magnitude_bits(features.largest)))
    state, key = yield from with_key(inputs, state)
    state = yield from with_seed(inputs, state)
    plan = terms.plan(state.seed, features.rows)
    masks = masks_of(state.pairwise_masks, terms.agreement.parties)

    rate, penalty, grid = terms.rate, terms.penalty, terms.feature_grid
    weights = state.weights
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights)))
        rows = features.values.take(batch.rows, axis=0)
        scores, message_masks = rows @ weights, masks.fork(f"scores {batch.iteration}")
        yield from send(scores_message(batch.iteration, scores, terms.score_grid, message_masks))
        # The range is known since the handshake, and the key's capacity checks it once more.
        matrix = key.prepare(grid.nearest(rows).T)
        total = yield from unmasked_product(key, matrix, batch.iteration, inputs.entropy)
        yield from emit(GradientSeen(batch.iteration, batch.epoch, batch.rows, weights, total))
        gradient = terms.product_grid.decode(total) / -len(batch.rows)
        step = gradient + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
        if plan.ends_epoch(batch) and (yield from report(inputs, weights, batch.iteration, masks)):
            return Trained.from_state(state, weights, batch.iteration + 1, StopReason.PEER)
    return Trained.from_state(state, weights, plan.iterations)


def unmasked_product(
    key: PublicKey, matrix: PreparedMatrix, iteration: int, entropy: Entropy
) -> Program[IntArray]:
    """``X^T r`` of one batch in exact integers: the encrypted round trip.

    Masks and obfuscators have a stream for each iteration: a resumed run cannot use one twice, and
    a replay that skips the encryption draws the same masks.
    """
    # Before waiting, not after: Bob is at work on his residues meanwhile.
    mask = key.draw_mask(matrix.rows, entropy.fork(f"masks {iteration}"))
    stream = entropy.fork(f"obfuscators {iteration}")
    key.stock(matrix, mask, stream)
    sent = yield from receive_at(EncryptedResidues, iteration)
    answer = key.masked_product(matrix, sent.residues, mask, stream)
    yield from send(MaskedGradient(iteration, answer))
    revealed = yield from receive_at(RevealedGradient, iteration)
    return key.unmask(revealed.gradient.value, mask)
