"""Bob's own recording of a real session: column attacks from his seat.

He has his recording, his file and his table, and none of Alice's columns: how right an estimate is,
he cannot say. Attacks that need no known row estimate all the same, and what they say is set
against the scores that he saw (``consistency``). Where Alice's file is here too, her columns
judge.

**Guarantee.** An attack gets the view and the rows that are handed to it, and nothing else of hers.

**Assumes.** As for Alice's recording (``recorded``). In ``label-rr`` the flipped labels are those
of the session.
"""

from __future__ import annotations

import time

from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.results.columns import BobSeat
from taciturn.results.skipped import Skipped
from taciturn.rng import KeyedEntropy
from taciturn.simulation.coins import Coins
from taciturn_audit.bob_seat import BobAudit, examine_columns, lacks
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.registry import COLUMN_ATTACKS
from taciturn_audit.columns import Truth
from taciturn_audit.consistency import explained
from taciturn_audit.recording import OtherSide, RecordedSession, both_tables
from taciturn_audit.results.session import Estimated, SessionAudit
from taciturn_audit.views.bob_view import BobView

_NO_ROWS = "no row of Alice's is known here: her file gives some, and judges"


def audit_columns(
    session: RecordedSession,
    view: BobView,
    alice: OtherSide | None = None,
    *,
    known_rows: int | None = None,
    canary: bool = True,
    callbacks: Callbacks = SILENT,
) -> SessionAudit:
    """Estimate Alice's columns from Bob's recording; judge where her table is here too.

    ``known_rows`` is as in ``BobAudit``; ``canary`` also trains with her rows permuted.
    """
    estimates: tuple[Estimated, ...] | None = None
    seat: BobSeat | None = None
    if alice is None:
        estimates, skipped = _estimates(view, callbacks)
    else:
        seat = _judged(session, view, alice, known_rows, canary, callbacks)
        skipped = seat.findings.skipped
    return SessionAudit(
        seat="bob",
        recording=session.recording,
        guesses=(),
        skipped=skipped,
        judgement=None if alice is None else alice.judgement(),
        shuffle_truth=False,
        findings=None,
        canary=None,
        over_epochs=(),
        evidence=None,
        messages=(),
        estimates=estimates,
        bob_seat=seat,
    )


def _estimates(
    view: BobView, callbacks: Callbacks
) -> tuple[tuple[Estimated, ...], tuple[Skipped, ...]]:
    estimates: list[Estimated] = []
    skipped: list[Skipped] = []
    for attack in COLUMN_ATTACKS:
        reason = lacks(attack, view) or ("" if attack.works_without else _NO_ROWS)
        if reason:
            skipped.append(Skipped(attack.name, reason))
            continue
        callbacks.announce(attack.name)
        start = time.perf_counter()
        estimate = attack.estimate(view, KnownRows.none(view.columns))
        seconds = time.perf_counter() - start
        estimates.append(
            Estimated(
                attack.name,
                estimate.values.shape[1],
                explained(view, estimate.values),
                seconds,
                estimate.remark,
                estimate.limited or None,
            )
        )
    return tuple(estimates), tuple(skipped)


def _judged(
    session: RecordedSession,
    view: BobView,
    alice: OtherSide,
    known_rows: int | None,
    canary: bool,
    callbacks: Callbacks,
) -> BobSeat:
    truth, coins = Truth.of(alice.tables.train), KeyedEntropy.from_system()
    findings = examine_columns(
        view, truth, coins, known_rows=known_rows, announce=callbacks.announce
    )
    if not canary:
        return BobSeat(findings, None)
    trial = BobAudit(both_tables(alice.tables, session.tables), known_rows, callbacks=callbacks)
    beside = trial.permuted(session.config.settings(), Coins.for_seed(None))
    return BobSeat(findings, beside)
