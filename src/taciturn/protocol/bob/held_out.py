"""Bob's look at held-out rows. The chart stands in ``taciturn.protocol.held_out``."""

from __future__ import annotations

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray
from taciturn.numerics.metrics import evaluate
from taciturn.privacy.base import Mechanism, Released
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.partners import receive_all_scores, send_all
from taciturn.protocol.events import HeldOutSeen
from taciturn.protocol.held_out import out_of_patience
from taciturn.protocol.messages import EpochVerdict
from taciturn.protocol.scores import require_finite
from taciturn.protocol.steps import Program, emit

STOPS_BY_LABELS = (
    "no protection: when Bob ends the training depends on labels, and Alice sees when he does"
)


def watch(
    inputs: BobInputs[Mechanism], weights: FloatArray, losses: FloatArray, iteration: int
) -> Program[tuple[FloatArray, bool]]:
    """The held-out losses so far, and whether to stop, at the end of an epoch."""
    held_out, patience = inputs.scored_each_epoch, inputs.terms.agreement.patience
    if held_out is None:
        return losses, False
    names, grid, rows = inputs.partners, inputs.terms.score_grid, held_out.features.rows
    theirs = yield from receive_all_scores(names, iteration, rows, grid)
    scores = require_finite(theirs + held_out.features.values @ weights)
    metrics = evaluate(scores, held_out.labels.values, inputs.terms.log_odds_shift)
    yield from emit(HeldOutSeen(iteration, metrics))
    losses = np.append(losses, metrics.loss)
    if patience is None:
        return losses, False
    stop = out_of_patience(losses, patience)
    verdict = Released.unprotected(np.array([int(stop)]))
    inputs.ledger.taint(STOPS_BY_LABELS)
    inputs.ledger.charge(verdict.event, EVERY_ROW)
    yield from send_all(names, EpochVerdict(iteration, verdict))
    return losses, stop
