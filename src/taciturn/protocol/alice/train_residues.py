"""Alice's side of the training in which every residue reaches her, with noise and unencrypted.

::

    Alice                                            Bob
      the seed of the batches (taciturn.protocol.joint_seed)
      each iteration:
      PartialScores        X_A w_A              ->
                                                <-   NoisyResidues       M(r)
      updates w_A with -(1/|B|) X_A^T M(r)

``RealResidues`` may stand for ``NoisyResidues`` in a simulation, and ``BudgetSpent`` ends the
training. [Tan22, Sec. IV-A and IV-B].
"""

from __future__ import annotations

from taciturn.arrays import FloatArray
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.logistic import gradient
from taciturn.privacy.events import PrivacyEvent
from taciturn.protocol.alice.held_out import report
from taciturn.protocol.alice.inputs import AliceInputs
from taciturn.protocol.alice.opening import greet, with_seed
from taciturn.protocol.batches import Batch
from taciturn.protocol.events import Boundary
from taciturn.protocol.masks import masks_of
from taciturn.protocol.messages import NoisyResidues, RealResidues, ResidueReply
from taciturn.protocol.observations import ResiduesSeen
from taciturn.protocol.outcome import StopReason, Trained
from taciturn.protocol.scores import scores_message
from taciturn.protocol.steps import (
    Program,
    emit,
    receive_at,
    require_entries,
    send,
)
from taciturn.protocol.terms import Terms


def train(inputs: AliceInputs) -> Program[Trained]:
    """Trains Alice's weights, one per column; of entropy she needs only her share of the seed."""
    features, terms = inputs.features, inputs.terms
    state = inputs.resume or (yield from greet(inputs))
    state = yield from with_seed(inputs, state)
    plan = terms.plan(state.seed, features.rows)
    masks = masks_of(state.pairwise_masks, terms.agreement.parties)

    rate, penalty = terms.rate, terms.penalty
    weights = state.weights
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights)))
        rows = features.values.take(batch.rows, axis=0)
        scores, message_masks = rows @ weights, masks.fork(f"scores {batch.iteration}")
        yield from send(scores_message(batch.iteration, scores, terms.score_grid, message_masks))
        reply = yield from receive_at(ResidueReply, batch.iteration)
        release = _released(reply, batch, terms)
        if release is None:
            return Trained.from_state(state, weights, batch.iteration, StopReason.PEER)
        residues, event = release
        yield from emit(
            ResiduesSeen(batch.iteration, batch.epoch, batch.rows, weights, residues, event)
        )
        step = gradient(rows, residues) + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
        if plan.ends_epoch(batch) and (yield from report(inputs, weights, batch.iteration, masks)):
            return Trained.from_state(state, weights, batch.iteration + 1, StopReason.PEER)
    return Trained.from_state(state, weights, plan.iterations)


def _released(
    reply: ResidueReply, batch: Batch, terms: Terms
) -> tuple[FloatArray, PrivacyEvent] | None:
    """The residues at their real scale with what their release was; None where the budget ended."""
    if isinstance(reply, NoisyResidues):
        noise, residues = "discrete", terms.residue_grid.decode(reply.residues.value)
        event = reply.residues.event
    elif isinstance(reply, RealResidues):
        noise, residues, event = "continuous", reply.residues.value, reply.residues.event
    else:
        return None
    # A mechanism that does not take the setting has one kind of noise: integers.
    agreed = terms.agreement.noise or "discrete"
    if noise != agreed:
        raise RemoteProtocolError(f"the peer's noise is {noise} where {agreed} is agreed")
    require_entries("release", len(residues), len(batch.rows))
    return residues, event
