"""Bob's side of the training in which Alice's weights are shared and nothing reaches her in clear.

The chart of messages stands in Alice's file. Bob decrypts scores and masked steps and keeps both.

**What he does never depends on what he decrypts.** Every answer of the right structure is taken,
whatever is inside: there is no range check, no check for divergence, no early end, and the number,
kinds and lengths of his messages follow from the agreement and the sizes of the tables. Scores that
look as if they had wrapped are counted for himself (``WrapsSuspected``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.data.tables import FeatureTable, LabelTable
from taciturn.numerics.logistic import gradient
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.base import Released, SealedTraining
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.bob.batch_seed import agree_seed
from taciturn.protocol.bob.sealed import Keys, ask_scores, sized
from taciturn.protocol.events import Boundary, HeldOutSeen, Progress, ShareKept, WrapsSuspected
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.look_ahead import Turns
from taciturn.protocol.messages import RevealedShare, SealedGradient, SealedResidues
from taciturn.protocol.prediction import SEALED_CHUNK_ROWS, chunks
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def train(
    features: FeatureTable,
    labels: LabelTable,
    terms: Terms,
    mechanism: SealedTraining,
    ledger: Ledger,
    entropy: Entropy,
    *,
    resume: TrainingState | None = None,
    held_out: HeldOut | None = None,
) -> Program[FloatArray]:
    """Trains Bob's weights, and his share of Alice's.

    Args:
        features: His columns (there may be none), rows in the agreed order.
        labels: The labels of the same rows.
        terms: The agreement in use.
        mechanism: What residues are made of scores and labels.
        ledger: Charged where his share is revealed, and not before.
        entropy: His coins: the key, his share of the batch seed, encryption.
        resume: Where to go on; None to begin.
        held_out: His part of the held-out rows, where they are looked at after each epoch.

    Returns:
        His weights, one per column; an intercept is his last column and is not penalised. His share
        of Alice's is reported (``ShareKept``).
    """
    labels.ids.require_same(features.ids, names=("the labels", "bob's columns"))
    state = resume or (yield from _greet(features, terms))
    scales = Scales.of(terms.agreement, features.rows, state.magnitude_bits)
    turns = Turns.of(terms, scales, features.rows, state.columns, state.magnitude_bits)
    keys = Keys(terms, turns.ring, state.key)
    if resume is None:
        state = yield from _open(state, keys, entropy)
    plan = terms.plan(state.seed, features.rows)

    rate, penalty = terms.rate, terms.penalty
    weights, share, losses, ahead = state.weights, state.share, state.losses, state.ahead
    for batch, following in plan.with_next(state.iteration):
        number, size = batch.iteration, len(batch.rows)
        yield from emit(Boundary(state.at(number, weights, losses, share, ahead)))
        rows = features.values.take(batch.rows, axis=0)
        found = ahead
        if number == 0:
            # As the weights are: there is nothing to ask.
            found = np.zeros(size, dtype=np.int64)
        elif not turns.ahead:
            found = yield from ask_scores(keys, share, size, number, entropy, after=size)
        if wraps := scales.suspected(found):
            yield from emit(WrapsSuspected(number, wraps))
        # Whatever the numbers are, he goes on: an end here would tell that they are none.
        scores = np.nan_to_num(scales.scores(found, number) + rows @ weights)
        residues = mechanism.residue(scores, labels.values[batch.rows])
        step = scales.steps(residues, rate.at(number), number)
        after = 0 if following is None else len(following.rows)
        masked, ahead = yield from _ask_step(keys, turns, step, share, after, number, entropy)
        share = turns.ring.centred(share + masked)
        own = gradient(rows, residues) + penalty.gradient(weights, features.free)
        weights = weights - rate.at(number) * own
        yield from emit(Progress(number + 1, plan.iterations, batch.rows, scores))
        if held_out is not None and plan.ends_epoch(batch):
            theirs = yield from _ask_held_out(keys, held_out, share, number, entropy)
            scores = scales.scores(theirs, number + 1) + held_out.features.values @ weights
            found_there = evaluate(np.nan_to_num(scores), held_out.labels.values)
            yield from emit(HeldOutSeen(number, found_there))
            losses = np.append(losses, found_there.loss)
    yield from emit(ShareKept("bob", share, scales))
    if terms.agreement.reveal:
        told = Released.unprotected(share)
        ledger.charge(told.event, np.arange(ledger.rows))
        yield from send(RevealedShare(told))
    return weights


def _greet(features: FeatureTable, terms: Terms) -> Program[TrainingState]:
    """What Alice says of her table, in a state that has neither key nor seed yet."""
    hello = yield from shake_hands(greeting("bob", terms.agreement.canonical(), features))
    weights, share = np.zeros(len(features.columns)), np.zeros(hello.columns, dtype=np.int64)
    return TrainingState(
        0, weights, columns=hello.columns, magnitude_bits=hello.magnitude_bits, share=share
    )


def _open(state: TrainingState, keys: Keys, entropy: Entropy) -> Program[TrainingState]:
    """The key, unless each is used once, and the seed of the batches."""
    if not keys.single_use:
        yield from keys.offer(entropy)
    seed = yield from agree_seed(entropy)
    return replace(state, seed=seed, key=keys.to_bytes())


def _ask_step(
    keys: Keys,
    turns: Turns,
    step: IntArray,
    share: IntArray,
    after: int,
    number: int,
    entropy: Entropy,
) -> Program[tuple[IntArray, IntArray]]:
    """The masked step, of which Bob cannot take the mask off, and the next scores if they come.

    Args:
        keys: His key.
        turns: How he asks.
        step: The batch's residues on their grid.
        share: His share of Alice's weights.
        after: How many rows the next batch has; 0 at the end.
        number: The iteration.
        entropy: His coins.
    """
    columns, vector = len(share), step
    entries, upcoming = columns, (after, columns)
    if turns.ahead and after:
        vector, entries = turns.vector(step, share), columns + after
        upcoming = entries, len(vector)
    coins = entropy.fork(f"step {number}")
    key = yield from keys.offer(coins)
    yield from send(SealedResidues(number, key.encrypt(vector, entries, coins)))
    if after and not keys.single_use:
        key.stock(*upcoming, coins)
    message = yield from receive(SealedGradient)
    require_turn("SealedGradient", message.iteration, number)
    found = keys.ring.residues(key.decrypt(sized(message.answer, entries), len(vector)))
    return found[:columns], found[columns:]


def _ask_held_out(
    keys: Keys, held_out: HeldOut, share: IntArray, number: int, entropy: Entropy
) -> Program[IntArray]:
    coins = entropy.fork(f"held out {number}")
    found = np.empty(held_out.features.rows, dtype=np.int64)
    for piece, rows in chunks(held_out.features.rows, SEALED_CHUNK_ROWS):
        found[rows] = yield from ask_scores(keys, share, rows.stop - rows.start, piece, coins)
    return found
