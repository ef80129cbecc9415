"""Alice's side of the training in which her weights are shared and nothing reaches her in clear.

::

    Alice                                            Bob
                                                <-   KeyOffer
      the seed of the batches (tacit.protocol.batch_seed)
      each iteration:
                                                <-   SealedWeights       <v>
      SealedScores         <X_A v + X_A u>      ->   z_A; r, exactly
                                                <-   SealedResidues      <(rate/|B|) r>
      draws xi
      SealedGradient       <X_A^T r' + xi>      ->   v += X_A^T r' + xi
      u -= xi

``w_A = u + v`` modulo 2^k at a public scale (``tacit.protocol.scales``); both start at zero. With
``fresh_keys`` a KeyOffer stands before each of Bob's vectors. With ``reveal`` Bob sends v at the
end (RevealedShare). Where held-out rows are looked at after each epoch, the first two messages are
exchanged once more for them; Bob never says what he saw.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import FloatArray, IntArray
from tacit.data.tables import FeatureTable
from tacit.errors import RemoteProtocolError
from tacit.numerics.fixedpoint import magnitude_bits
from tacit.protocol.alice.batch_seed import agree_seed
from tacit.protocol.alice.sealed import Keys, answer_scores
from tacit.protocol.events import Boundary, ShareKept, ShareRevealed
from tacit.protocol.handshake import greeting, shake_hands
from tacit.protocol.messages import RevealedShare, SealedGradient, SealedResidues
from tacit.protocol.prediction import SEALED_CHUNK_ROWS, chunks
from tacit.protocol.scales import Scales
from tacit.protocol.state import TrainingState
from tacit.protocol.steps import Program, emit, receive, require_turn, send
from tacit.protocol.terms import Terms
from tacit.rng import Entropy


def train(
    features: FeatureTable,
    terms: Terms,
    entropy: Entropy,
    *,
    resume: TrainingState | None = None,
    held_out: FeatureTable | None = None,
) -> Program[FloatArray]:
    """Trains Alice's share of her weights.

    Args:
        features: Her columns, rows in the agreed order.
        terms: The agreement in use.
        entropy: Her coins: the masks that make the shares, obfuscators.
        resume: Where to go on; None to begin.
        held_out: Her columns of the held-out rows, where they are looked at after each epoch.

    Returns:
        Nothing: she has no weights in clear, only a share (``ShareKept``). Her weights, one per
        column, where Bob reveals his share.
    """
    size = magnitude_bits(features.largest) if resume is None else resume.magnitude_bits
    scales = Scales.of(terms.agreement, features.rows, size)
    ring = scales.ring(size, max(len(features.columns), terms.longest_batch))
    if resume is None:
        keys = Keys(terms, ring)
        state = yield from _open(features, terms, keys, size, entropy)
    else:
        state, keys = resume, Keys(terms, ring, resume.key)
    plan = terms.plan(state.seed, features.rows)

    share, dither = state.share, terms.agreement.dither or 0.0
    for batch in plan.since(state.iteration):
        number = batch.iteration
        yield from emit(Boundary(state.at(number, state.weights, share=share)))
        taken = features.values.take(batch.rows, axis=0)
        rows = scales.rounded(taken, entropy.fork(f"rounding {number}"))
        yield from answer_scores(keys, scales, rows, share, number, entropy, dither)
        given = yield from _answer_step(keys, rows, number, entropy)
        share = ring.centred(share - given)
        if held_out is not None and plan.ends_epoch(batch):
            coins = entropy.fork(f"held out {number}")
            yield from _score_held_out(keys, scales, held_out, share, size, coins, dither)
    yield from emit(ShareKept("alice", share, scales))
    return (yield from _revealed(scales, share)) if terms.agreement.reveal else np.empty(0)


def _open(
    features: FeatureTable, terms: Terms, keys: Keys, size: int, entropy: Entropy
) -> Program[TrainingState]:
    """Everything before the first iteration."""
    hello = yield from shake_hands(greeting("alice", terms.agreement.canonical(), features, size))
    if not terms.agreement.fresh_keys:
        yield from keys.receive()
    seed = yield from agree_seed(entropy)
    share = np.zeros(len(features.columns), dtype=np.int64)
    return TrainingState(0, np.empty(0), seed, keys.to_bytes(), hello.columns, size, share=share)


def _answer_step(keys: Keys, rows: FloatArray, number: int, entropy: Entropy) -> Program[IntArray]:
    """Adds a fresh mask to the step under Bob's key: what Alice's share gives away to his."""
    key = yield from keys.receive()
    coins = entropy.fork(f"step {number}")
    matrix = key.prepare(rows.T)
    taken = keys.ring.draw(matrix.rows, entropy.fork(f"masks {number}"))
    mask = key.mask_of(taken, coins.fork("multiples"))
    key.stock(matrix, mask, coins)
    sent = yield from receive(SealedResidues)
    require_turn("SealedResidues", sent.iteration, number)
    if sent.residues.length != len(rows):
        raise RemoteProtocolError(
            f"the peer's residues are {sent.residues.length} where {len(rows)} rows are due"
        )
    answer = key.masked_product(matrix, sent.residues, mask, coins)
    yield from send(SealedGradient(number, answer))
    return taken


def _score_held_out(
    keys: Keys,
    scales: Scales,
    held_out: FeatureTable,
    share: IntArray,
    size: int,
    entropy: Entropy,
    dither: float,
) -> Program[None]:
    """The scores of held-out rows; values beyond the range that the key is for are cut to it."""
    bound = 2.0**size
    for number, rows in chunks(held_out.rows, SEALED_CHUNK_ROWS):
        whole = scales.feature_grid.nearest(np.clip(held_out.values[rows], -bound, bound))
        yield from answer_scores(keys, scales, whole, share, number, entropy, dither)


def _revealed(scales: Scales, share: IntArray) -> Program[FloatArray]:
    told = (yield from receive(RevealedShare)).share.value
    if len(told) != len(share):
        raise RemoteProtocolError(f"the peer's share has {len(told)} entries, not {len(share)}")
    weights = scales.weights(share, told)
    yield from emit(ShareRevealed(len(scales.decay) - 1, weights))
    return weights
