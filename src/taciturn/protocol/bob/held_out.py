"""Bob's look at held-out rows. The chart stands in ``taciturn.protocol.held_out``."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.base import Mechanism, Released
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.events import HeldOutSeen
from taciturn.protocol.held_out import out_of_patience
from taciturn.protocol.messages import EpochScores, EpochVerdict
from taciturn.protocol.scores import require_finite
from taciturn.protocol.steps import Program, emit, receive, require_turn, send

STOPS_BY_LABELS = (
    "no protection: when Bob ends the training depends on labels, and Alice sees when he does"
)


def watch(
    inputs: BobInputs[Mechanism], weights: FloatArray, losses: FloatArray, iteration: int
) -> Program[tuple[FloatArray, bool]]:
    """Looks at the held-out rows at the end of an epoch, where that is agreed.

    Returns:
        The held-out losses so far, and whether to stop.

    Raises:
        RemoteProtocolError: Alice scored another number of rows.
    """
    held_out, patience = inputs.scored_each_epoch, inputs.terms.agreement.patience
    if held_out is None:
        return losses, False
    message = yield from receive(EpochScores)
    require_turn("EpochScores", message.iteration, iteration)
    if len(message.scores) != held_out.features.rows:
        raise RemoteProtocolError(
            f"the peer scored {len(message.scores)} held-out rows, not {held_out.features.rows}"
        )
    scores = require_finite(message.scores + held_out.features.values @ weights)
    metrics = evaluate(scores, held_out.labels.values, inputs.terms.log_odds_shift)
    yield from emit(HeldOutSeen(iteration, metrics))
    losses = np.append(losses, metrics.loss)
    if patience is None:
        return losses, False
    stop = out_of_patience(losses, patience)
    verdict = Released.unprotected(np.array([int(stop)]))
    inputs.ledger.taint(STOPS_BY_LABELS)
    inputs.ledger.charge(verdict.event, EVERY_ROW)
    yield from send(EpochVerdict(iteration, verdict))
    return losses, stop
