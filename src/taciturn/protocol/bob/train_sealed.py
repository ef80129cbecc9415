"""Bob's side of the training in which Alice's weights are shared and nothing reaches her in clear.

The chart of messages stands in Alice's file. Bob decrypts scores and masked steps and keeps both.

**What he does never depends on what he decrypts.** Every answer of the right structure is taken,
whatever is inside: there is no range check, no check for divergence, no early end, and the number,
kinds and lengths of his messages follow from the agreement and the sizes of the tables. Scores that
look as if they had wrapped are counted for himself (``BobTrained.suspected_wraps``).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from taciturn.arrays import IntArray
from taciturn.crypto.base import SecretKey
from taciturn.numerics.likelihood import bounded
from taciturn.numerics.logistic import gradient
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.base import EncryptedMechanism
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.observations import BatchScored
from taciturn.protocol.bob.opening import greet, with_seed
from taciturn.protocol.bob.partners import Partner, Partners
from taciturn.protocol.bob.sealed import Keys, ask_scores, release_share, sized
from taciturn.protocol.events import Boundary, HeldOutSeen, Progress
from taciturn.protocol.held_out import HeldOut
from taciturn.protocol.look_ahead import Turns
from taciturn.protocol.messages import SealedGradient, SealedResidues
from taciturn.protocol.outcome import BobTrained, WeightShare
from taciturn.protocol.prediction import SEALED_CHUNK_ROWS, chunks
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.protocol.together import together
from taciturn.rng import Entropy


def train(inputs: BobInputs[EncryptedMechanism]) -> Program[BobTrained]:
    """Trains Bob's weights, and his share of Alice's; charged only where he reveals that.

    Returns:
        His weights, one per column, his share of Alice's, and how many scores may have wrapped.
    """
    features, terms, entropy = inputs.features, inputs.terms, inputs.entropy
    held_out = inputs.scored_each_epoch
    state = inputs.resume or (yield from greet(inputs))
    scales = Scales.of(terms.agreement, features.rows, state.magnitude_bits)
    partners = Partners.of_training(inputs.partners, state)
    turns = Turns.of(terms, scales, features.rows, partners.widest, state.magnitude_bits)
    state, keys = yield from _open(inputs, turns, state)
    plan = terms.plan(state.seed, features.rows)

    rate, penalty = terms.rate, terms.penalty
    weights, share, losses, ahead = state.weights, state.share, state.losses, state.ahead
    suspected_wraps = state.suspected_wraps
    for batch, following in plan.with_next(state.iteration):
        number, size = batch.iteration, len(batch.rows)
        at = state.at(number, weights, losses, share, ahead, suspected_wraps)
        yield from emit(Boundary(at))
        rows = features.values.take(batch.rows, axis=0)
        theirs = ahead
        if number == 0:
            # As the weights are: there is nothing to ask.
            theirs = np.zeros(size, dtype=np.int64)
        elif not turns.ahead:
            theirs = yield from _ask_all(keys, partners, share, size, number, entropy)
        hers = scales.scores(theirs, number)
        scores = bounded(hers + rows @ weights)
        residues = inputs.mechanism.residue(scores, inputs.labels.values[batch.rows])
        step = scales.steps(residues, rate.at(number), number)
        after = 0 if following is None else len(following.rows)
        asked = yield from _send_steps(keys, turns, partners, step, share, after, number, entropy)
        # What is for himself comes after sending, while Alice is at work.
        suspected_wraps += scales.suspected(theirs)
        pace = rate.at(number)
        moved, shrink = pace * residues / size, 1.0 - pace * penalty.l2
        yield from emit(BatchScored(number, batch.rows, hers, moved, shrink))
        own = gradient(rows, residues) + penalty.gradient(weights, features.free)
        weights = weights - pace * own
        yield from emit(Progress(number + 1, plan.iterations, batch.rows, scores))
        masked, ahead = yield from _answers(asked, turns)
        share = turns.ring.centred(share + masked)
        if held_out is not None and plan.ends_epoch(batch):
            theirs = yield from _ask_held_out(keys, partners, held_out, share, number, entropy)
            scores = scales.scores(theirs, number + 1) + held_out.features.values @ weights
            truth = held_out.labels.values
            metrics = evaluate(np.nan_to_num(scores), truth, terms.log_odds_shift)
            yield from emit(HeldOutSeen(number, metrics))
            losses = np.append(losses, metrics.loss)
    if terms.agreement.reveal:
        yield from release_share(inputs, share, partners)
    kept = WeightShare(share, scales)
    return BobTrained(
        weights,
        plan.iterations,
        share=kept,
        company=state.company,
        suspected_wraps=suspected_wraps,
    )


def _open(
    inputs: BobInputs[EncryptedMechanism], turns: Turns, state: TrainingState
) -> Program[tuple[TrainingState, Keys]]:
    """The joint seed, the key, unless each is used once, and a share of zeros."""
    state = yield from with_seed(inputs, state)
    keys = Keys(inputs.terms, turns.ring, state.seed, state.key)
    if inputs.resume is not None:
        return state, keys
    yield from keys.open(inputs.entropy, inputs.partners)
    share = np.zeros(state.columns, dtype=np.int64)
    return replace(state, key=keys.to_bytes(), share=share), keys


@dataclass(frozen=True, slots=True)
class _Question:
    """A step that Alice was asked for.

    Args:
        key: What it was encrypted with.
        number: The iteration.
        columns: How many entries the step has.
        entries: How many entries the answer has.
        length: Those of the vector.
    """

    key: SecretKey
    number: int
    columns: int
    entries: int
    length: int

    def answer(self) -> Program[tuple[IntArray, IntArray]]:
        """The masked step, of which Bob cannot take the mask off, and the next scores if any."""
        message = yield from receive(SealedGradient)
        require_turn("SealedGradient", message.iteration, self.number)
        answer = self.key.decrypt_shares(sized(message.answer, self.entries), self.length)
        return answer[: self.columns], answer[self.columns :]


def _ask_all(
    keys: Keys, partners: Partners, share: IntArray, size: int, number: int, entropy: Entropy
) -> Program[IntArray]:
    """The Alices' part of a batch's scores."""
    answers = yield from partners.ask(
        lambda partner: ask_scores(
            keys, share[partner.place], size, number, partner.coins(entropy), after=size
        )
    )
    return keys.ring.centred(reduce(operator.add, answers))


def _send_steps(
    keys: Keys,
    turns: Turns,
    partners: Partners,
    step: IntArray,
    share: IntArray,
    after: int,
    number: int,
    entropy: Entropy,
) -> Program[dict[str, _Question]]:
    """Asks every Alice for a step, and waits for none."""
    return (
        yield from together(
            {
                partner.name: _send_step(
                    keys,
                    turns,
                    step,
                    share[partner.place],
                    after,
                    number,
                    partner.coins(entropy),
                )
                for partner in partners.all
            }
        )
    )


def _answers(asked: dict[str, _Question], turns: Turns) -> Program[tuple[IntArray, IntArray]]:
    """The masked steps one after the other, and the sum of the next scores if any."""
    answers = yield from together({name: question.answer() for name, question in asked.items()})
    steps, ahead = zip(*answers.values(), strict=True)
    return np.concatenate(steps), turns.ring.centred(reduce(operator.add, ahead))


def _send_step(
    keys: Keys,
    turns: Turns,
    step: IntArray,
    share: IntArray,
    after: int,
    number: int,
    entropy: Entropy,
) -> Program[_Question]:
    """Asks for a step, and for the next scores where they come with it.

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
    # What he encrypts next is prepared while Alice is at work; its shape is known by now.
    entries, upcoming = columns, (after, columns)
    if turns.ahead and after:
        vector, entries = turns.vector(step, share), columns + after
        upcoming = entries, len(vector)
    coins = entropy.fork(f"step {number}")
    key = yield from keys.offer(coins)
    yield from send(SealedResidues(number, key.encrypt(vector, entries, coins)))
    # Nothing can be made ahead for a key that does not exist yet.
    if after and not keys.single_use:
        key.stock(*upcoming, coins)
    return _Question(key, number, columns, entries, len(vector))


def _ask_held_out(
    keys: Keys,
    partners: Partners,
    held_out: HeldOut,
    share: IntArray,
    number: int,
    entropy: Entropy,
) -> Program[IntArray]:
    coins = entropy.fork(f"held out {number}")

    def scored(partner: Partner) -> Program[IntArray]:
        scores = np.empty(held_out.features.rows, dtype=np.int64)
        own, hers = partner.coins(coins), share[partner.place]
        for piece, rows in chunks(held_out.features.rows, SEALED_CHUNK_ROWS):
            scores[rows] = yield from ask_scores(keys, hers, rows.stop - rows.start, piece, own)
        return scores

    return keys.ring.centred(reduce(operator.add, (yield from partners.ask(scored))))
