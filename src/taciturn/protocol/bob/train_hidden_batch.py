"""Bob's side of ``hybrid``. The chart of messages stands in Alice's file.

Only he knows which of the rows that Alice scores are the batch. A marked row that the response
turned to 0 is not scored and takes no part in the iteration; where all were, nothing is learnt from
it but the penalty, and nothing is visible of that.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.crypto.base import SecretKey
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.numerics.logistic import gradient
from taciturn.privacy.base import Released
from taciturn.privacy.batch_response import HiddenBatch, Hybrid, draw_batch
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.bob.held_out import STOPPED, watch
from taciturn.protocol.bob.product import kept_key, offer_key, released_product
from taciturn.protocol.events import Boundary, Progress, Redrawn, Stopped
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.messages import HiddenBatchOffer, RowNumbers
from taciturn.protocol.scores import receive_scores, require_finite
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def train(
    features: FeatureTable,
    labels: LabelTable,
    terms: Terms,
    mechanism: Hybrid,
    ledger: Ledger,
    entropy: Entropy,
    *,
    resume: TrainingState | None = None,
    held_out: HeldOut | None = None,
) -> Program[FloatArray]:
    """Trains Bob's weights and answers Alice.

    Args:
        features: His columns (there may be none), rows in the agreed order.
        labels: The labels of the same rows.
        terms: The agreement in use.
        mechanism: The sizes of the hidden batch.
        ledger: Charged before every release.
        entropy: His coins: the key, the batches, the response, encryption.
        resume: Where to go on; None to begin.
        held_out: His part of the held-out rows, where they are looked at after each epoch.

    Returns:
        His weights, one per column; an intercept is his last column and is not penalised.

    Raises:
        ConfigError: The sizes do not meet the paper's requirement for Alice's columns.
    """
    labels.ids.require_same(features.ids, names=("the labels", "bob's columns"))
    if resume is None:
        state, key = yield from _open(features, terms, mechanism, entropy)
    else:
        state, key = resume, kept_key(terms, resume, features.rows)

    rate, penalty = terms.rate, terms.penalty
    per_epoch, fewest = terms.per_epoch(features.rows), terms.too_few(state.columns)
    iterations = terms.agreement.epochs * per_epoch
    weights, losses = state.weights, state.losses
    for iteration in range(state.iteration, iterations):
        yield from emit(Boundary(state.at(iteration, weights, losses)))
        coins = entropy.fork(f"batch {iteration}")
        batch = draw_batch(mechanism.design, fewest, features.rows, coins)
        if batch.redraws:
            yield from emit(Redrawn(iteration, batch.redraws))
        yield from _offer(iteration, batch, mechanism, ledger)
        theirs = yield from receive_scores(iteration, len(batch.asked))
        true, mine = batch.asked[batch.true], features.values.take(batch.asked, axis=0)
        scores = require_finite(theirs + mine @ weights)[batch.true]
        residues = mechanism.residue(scores, labels.values[true]) if len(true) else scores
        yield from released_product(
            key,
            _encoded(residues, batch, terms),
            true,
            state.columns,
            iteration,
            mechanism,
            ledger,
            entropy,
        )
        step = penalty.gradient(weights, features.free)
        if len(true):
            step = step + gradient(mine[batch.true], residues)
        weights = weights - rate.at(iteration) * step
        yield from emit(Progress(iteration + 1, iterations, true, scores))
        if held_out is not None and (iteration + 1) % per_epoch == 0:
            losses, stop = yield from watch(held_out, weights, losses, iteration, terms, ledger)
            if stop:
                yield from emit(Stopped(iteration + 1, STOPPED))
                break
    return weights


def _open(
    features: FeatureTable, terms: Terms, mechanism: Hybrid, entropy: Entropy
) -> Program[tuple[TrainingState, SecretKey]]:
    """Everything before the first iteration."""
    hello = yield from shake_hands(greeting("bob", terms.agreement.canonical(), features))
    mechanism.design.require(terms.too_few(hello.columns), features.rows)
    key = yield from offer_key(terms, hello, entropy)
    weights = np.zeros(len(features.columns))
    state = TrainingState(0, weights, b"", key.to_bytes(), hello.columns, hello.magnitude_bits)
    return state, key


def _offer(iteration: int, batch: HiddenBatch, mechanism: Hybrid, ledger: Ledger) -> Program[None]:
    event = mechanism.response_event
    ledger.charge(event, batch.subset)
    bits = Released(batch.response.astype(np.int64), event)
    yield from send(HiddenBatchOffer(iteration, RowNumbers(batch.subset), bits))


def _encoded(residues: FloatArray, batch: HiddenBatch, terms: Terms) -> IntArray:
    """``(batch_size / k) r`` on the true batch, zero on the other rows that Alice scored."""
    spread = np.zeros(len(batch.asked))
    if len(residues):
        spread[batch.true] = residues * (terms.agreement.batch_size / len(residues))
    return terms.residue_grid.encode(spread, terms.headroom_bits)
