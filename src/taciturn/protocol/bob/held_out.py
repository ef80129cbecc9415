"""Bob's look at held-out rows. The chart stands in ``taciturn.protocol.held_out``."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray
from taciturn.errors import RemoteProtocolError
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.base import Released
from taciturn.privacy.ledger import Ledger
from taciturn.protocol.events import HeldOutSeen
from taciturn.protocol.held_out import HeldOut, out_of_patience
from taciturn.protocol.messages import EpochScores, EpochVerdict
from taciturn.protocol.scores import require_finite
from taciturn.protocol.steps import Program, emit, receive, require_turn, send
from taciturn.protocol.terms import Terms

STOPPED = "the held-out loss has stopped falling"
STOPS_BY_LABELS = (
    "no protection: when Bob ends the training depends on labels, and Alice sees when he does"
)


def watch(
    held_out: HeldOut,
    weights: FloatArray,
    losses: FloatArray,
    iteration: int,
    terms: Terms,
    ledger: Ledger,
) -> Program[tuple[FloatArray, bool]]:
    """The held-out losses so far, and whether to stop.

    Raises:
        RemoteProtocolError: Alice scored another number of rows.
    """
    message = yield from receive(EpochScores)
    require_turn("EpochScores", message.iteration, iteration)
    if len(message.scores) != held_out.features.rows:
        raise RemoteProtocolError(
            f"the peer scored {len(message.scores)} held-out rows, not {held_out.features.rows}"
        )
    scores = require_finite(message.scores + held_out.features.values @ weights)
    found = evaluate(scores, held_out.labels.values)
    yield from emit(HeldOutSeen(iteration, found))
    losses = np.append(losses, found.loss)
    if terms.agreement.patience is None:
        return losses, False
    stop = out_of_patience(losses, terms.agreement.patience)
    verdict = Released.unprotected(np.array([int(stop)]))
    ledger.taint(STOPS_BY_LABELS)
    ledger.charge(verdict.event, np.arange(ledger.rows))
    yield from send(EpochVerdict(iteration, verdict))
    return losses, stop
