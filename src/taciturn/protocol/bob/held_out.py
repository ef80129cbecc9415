"""Bob's look at held-out rows at the end of each epoch.

The chart stands in Alice's file of this name.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray
from taciturn.numerics.label_metrics import evaluate_labels
from taciturn.privacy.base import Mechanism, Released
from taciturn.privacy.ledger import STOPS_BY_LABELS
from taciturn.protocol.bob.inputs import BobInputs
from taciturn.protocol.bob.partners import receive_all_scores
from taciturn.protocol.events import HeldOutSeen
from taciturn.protocol.messages import (
    EpochVerdict,
)
from taciturn.protocol.scores import require_finite
from taciturn.protocol.steps import (
    Program,
    emit,
    send_all,
)


def watch(
    inputs: BobInputs[Mechanism], weights: FloatArray, losses: FloatArray, iteration: int
) -> Program[tuple[FloatArray, bool]]:
    """The held-out losses so far, and whether to stop, at the end of an epoch."""
    held_out, patience = inputs.scored_each_epoch, inputs.terms.agreement.patience
    if held_out is None:
        return losses, False
    names, grid, rows = inputs.partners, inputs.terms.score_grid, held_out.features.rows
    alice_scores = yield from receive_all_scores(names, iteration, rows, grid)
    scores = require_finite(alice_scores + held_out.features.values @ weights)
    metrics = evaluate_labels(scores, held_out.labels, inputs.terms.log_odds_shift)
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


def out_of_patience(losses: FloatArray, patience: int) -> bool:
    """Whether the last ``patience`` losses are all no better than the best before them.

    >>> import numpy as np
    >>> out_of_patience(np.array([0.6, 0.5, 0.5, 0.51]), 2)
    True
    >>> out_of_patience(np.array([0.6, 0.5, 0.49]), 2)
    False
    """
    if len(losses) <= patience:
        return False
    return bool(losses[-patience:].min() >= losses[:-patience].min())
