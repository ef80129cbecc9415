"""Alice's side of the training in which every residue reaches her, with noise and unencrypted.

::

    Alice                                            Bob
      the seed of the batches (taciturn.protocol.batch_seed)
      each iteration:
      PartialScores        X_A w_A              ->
                                                <-   NoisyResidues       M(r)
      updates w_A with -(1/|B|) X_A^T M(r)

``RealResidues`` may stand for ``NoisyResidues`` in a simulation, and ``BudgetSpent`` ends the
training. [Tan22, Sec. IV-A and IV-B].
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.data.tables import FeatureTable
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.logistic import gradient
from taciturn.privacy.events import PrivacyEvent
from taciturn.protocol.alice.batch_seed import agree_seed
from taciturn.protocol.alice.held_out import report
from taciturn.protocol.batches import Batch
from taciturn.protocol.events import Boundary
from taciturn.protocol.handshake import greeting, shake_hands
from taciturn.protocol.messages import NoisyResidues, PartialScores, RealResidues, ResidueReply
from taciturn.protocol.observations import ResiduesSeen
from taciturn.protocol.scores import require_finite
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.protocol.terms import Terms
from taciturn.rng import Entropy


def train(
    features: FeatureTable,
    terms: Terms,
    entropy: Entropy,
    *,
    resume: TrainingState | None = None,
    held_out: FeatureTable | None = None,
) -> Program[FloatArray]:
    """Trains Alice's weights; of coins she needs but her share of the batches' seed.

    Args:
        features: Her columns, rows in the agreed order.
        terms: The agreement in use.
        entropy: Her coins.
        resume: Where to go on; None to begin.
        held_out: Her columns of the held-out rows, where they are looked at after each epoch.

    Returns:
        Her weights, one per column.
    """
    state = resume or (yield from _open(features, terms, entropy))
    plan = terms.plan(state.seed, features.rows)

    rate, penalty = terms.rate, terms.penalty
    weights = state.weights
    for batch in plan.since(state.iteration):
        yield from emit(Boundary(state.at(batch.iteration, weights)))
        rows = features.values.take(batch.rows, axis=0)
        yield from send(PartialScores(batch.iteration, require_finite(rows @ weights)))
        reply = yield from receive(ResidueReply)
        require_turn(type(reply).__name__, reply.iteration, batch.iteration)
        told = _told(reply, batch, terms)
        if told is None:
            return weights
        residues, event = told
        yield from emit(
            ResiduesSeen(batch.iteration, batch.epoch, batch.rows, weights, residues, event)
        )
        step = gradient(rows, residues) + penalty.gradient(weights)
        weights = weights - rate.at(batch.iteration) * step
        if held_out is not None and plan.ends_epoch(batch):
            if (yield from report(held_out, weights, batch.iteration, terms)):
                break
    return weights


def _open(features: FeatureTable, terms: Terms, entropy: Entropy) -> Program[TrainingState]:
    """Everything before the first iteration."""
    hello = yield from shake_hands(greeting("alice", terms.agreement.canonical(), features))
    seed = yield from agree_seed(entropy)
    return TrainingState(0, np.zeros(len(features.columns)), seed, columns=hello.columns)


def _told(
    reply: ResidueReply, batch: Batch, terms: Terms
) -> tuple[FloatArray, PrivacyEvent] | None:
    """The residues at their real scale with what their release was; None where the budget ended.

    Raises:
        RemoteProtocolError: There are not as many as rows, or the noise is not the agreed one.
    """
    if isinstance(reply, NoisyResidues):
        noise, residues = "discrete", terms.residue_grid.decode(reply.residues.value)
        event = reply.residues.event
    elif isinstance(reply, RealResidues):
        noise, residues, event = "continuous", reply.residues.value, reply.residues.event
    else:
        return None
    if noise != terms.agreement.noise:
        raise RemoteProtocolError(
            f"the peer's noise is {noise} where {terms.agreement.noise} is agreed"
        )
    if len(residues) != len(batch.rows):
        raise RemoteProtocolError(
            f"the peer released {len(residues)} residues where {len(batch.rows)} are due"
        )
    return residues, event
