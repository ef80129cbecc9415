"""Forecast of Bob's ledger, from the agreement.

**Guarantee.** The forecast is the ledger of a training that makes all its passes. Where batches are
drawn as it goes (``hidden_batch``), or where it may end early (``patience``), it is no less.

**Assumes.** The programs charge what is listed here; a test compares the two for each mechanism and
solver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from taciturn.privacy.base import GradientMechanism
from taciturn.privacy.events import NonPrivate, PrivacyEvent
from taciturn.privacy.ledger import DEFAULT_DELTA, STOPS_BY_LABELS, TRUE_UPDATES, Ledger
from taciturn.privacy.quality_release import TOLD, release_event
from taciturn.protocol.terms import Terms

_ROW = np.zeros(1, dtype=np.int64)


def forecast(
    terms: Terms,
    rows: int,
    bob_columns: int,
    *,
    budget: float | None = None,
    delta: float = DEFAULT_DELTA,
) -> Ledger:
    """Ledger at the end, for a representative row.

    ``bob_columns`` include an intercept. ``budget`` is the most that a label's epsilon may come to,
    and ``delta`` the probability at which the tighter total is stated. Raises ``BudgetExceeded``
    where the training would.
    """
    agreed, method = terms.agreement, terms.mechanism
    ledger = Ledger(1, method.assumption, budget, delta)
    if agreed.bob_update == "true" and bob_columns:
        ledger.taint(TRUE_UPDATES)
    for event, times in releases(terms, rows):
        ledger.charge(event, _ROW, _affordable(ledger, event, times))
    if agreed.patience is not None:
        ledger.taint(STOPS_BY_LABELS)
        ledger.charge(NonPrivate(), _ROW, agreed.rounds)
    if agreed.share_metrics == "quality":
        if agreed.metrics_epsilon is None:
            ledger.taint(TOLD)
        ledger.charge(release_event(agreed.metrics_epsilon), _ROW)
    return ledger


@dataclass(frozen=True, slots=True)
class Planned:
    """One training of several on the same rows; ``fold`` is the fold that it leaves out."""

    terms: Terms
    rows: int
    fold: int | None = None


def forecast_all(
    trainings: Sequence[Planned], folds: int, bob_columns: int, *, delta: float = DEFAULT_DELTA
) -> Ledger:
    """Ledger after several trainings, for a representative row of each fold.

    Labels that are flipped once and kept are paid for once.

    All trainings have one mechanism. ``folds`` is 0 where the rows are not divided, and
    ``bob_columns`` include an intercept.
    """
    ledger = Ledger(max(folds, 1), trainings[0].terms.mechanism.assumption, None, delta)
    for training in trainings:
        single = forecast(training.terms, training.rows, bob_columns, delta=delta)
        if single.tainted:
            ledger.taint(single.statement().assumption)
        flips = training.terms.mechanism.label_flips
        for event, times in single.history(0).items():
            paying = [row for row in range(ledger.rows) if row != training.fold]
            if flips is not None and event == flips.event:
                paying = [row for row in paying if not ledger.history(row).get(event)]
            ledger.charge(event, np.array(paying, dtype=np.int64), times)
    return ledger


def releases(terms: Terms, rows: int) -> Iterator[tuple[PrivacyEvent, int]]:
    """Releases of a row in a whole training, and their maximum number."""
    agreed, method = terms.agreement, terms.mechanism
    if method.label_flips is not None:
        yield method.label_flips.event, 1
    if terms.shares_weights:
        # All that leaves is encrypted, but for the share that may be revealed at the end.
        if agreed.reveal:
            yield method.share_event, 1
    elif method.hidden_batch is not None:
        # Any row may be in each of the batches, which are drawn independently.
        yield method.event, terms.iterations(rows)
    elif isinstance(method, GradientMechanism):
        # A whole table's last sum is that of the weights themselves.
        yield method.gradient_event, agreed.rounds + terms.whole_table
    else:
        yield method.event, agreed.rounds


def _affordable(ledger: Ledger, event: PrivacyEvent, times: int) -> int:
    """Releases that the budget pays for; the training ends there.

    Where it pays for none the charge says so.
    """
    return next((few for few in range(times, 1, -1) if ledger.affords(event, _ROW, few)), 1)
