"""A real session's audit: one side's own recording, attacked from that side's view.

Alice's side has her recording, her file and her table, and no label: it can attack and write down
its guesses. Bob, who has the labels, can judge them. Bob's side has his recording, his
file and his table, and none of Alice's columns: attacks that need no known row estimate all the
same, and what they say is set against the scores that he saw (``columns.explained``). Where the
other side's file is here too, its table judges.

**Guarantee.** An attack gets the view, and the rows that are handed to it, and nothing else.
Guesses are judged only by labels of the same rows, in the same order, and of the same session where
Bob's model file says which that was.

**Assumes.** The recording is whole and honest: its hash chain shows damage, not forgery. Bob's
labels are those that he trained with; his model file has a digest of his columns, not of them. In
``label-rr`` the flipped labels are those of the session.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from taciturn.engine.callbacks import SILENT, Callbacks
from taciturn.errors import ConfigError
from taciturn.rng import KeyedEntropy
from taciturn.setting_syntax import Hint
from taciturn.simulation import RunEntropy
from taciturn_audit.advice import inapplicable
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.registry import COLUMN_ATTACKS
from taciturn_audit.column_audit import BobAudit, examine_columns
from taciturn_audit.columns import Truth, explained
from taciturn_audit.guesses import GuessesFile
from taciturn_audit.messages import messages_to_alice
from taciturn_audit.recording import OtherSide, RecordedSession, both_tables, labels_of
from taciturn_audit.results.audit import Findings
from taciturn_audit.results.columns import BobSeat, Skipped
from taciturn_audit.results.session import Estimated, Guessed, Recording, SessionAudit
from taciturn_audit.runner import guess_labels
from taciturn_audit.session import SHUFFLED_TRUTH, Session, look_at_ciphertexts, shuffled
from taciturn_audit.views.bob_view import BobView


def audit_recording(
    session: RecordedSession,
    truth: Path | None = None,
    *,
    write_guesses: Path | None = None,
    callbacks: Callbacks = SILENT,
    canary: bool = True,
    shuffle_truth: bool = False,
    known_rows: int | None = None,
) -> SessionAudit:
    """Attack a recorded session; judge it if ``truth``, the other side's file, is given.

    With ``canary`` it also trains on shuffled and on random labels, where both tables are here, and
    tests ciphertexts, where they are all that Alice receives; at Bob's seat it trains with Alice's
    rows permuted. ``shuffle_truth`` judges against labels shuffled after the run.
    """
    view = session.view
    # Before the work: a file that does not fit is said at once.
    judge = None if truth is None else OtherSide.read(truth, session.recording)
    if isinstance(view, BobView):
        _refuse_labels(write_guesses, shuffle_truth)
        if judge is not None and view.agreement.parties is not None:
            raise ConfigError(
                "one Alice's table is not enough to judge reconstructed columns of several Alices",
                setting="truth",
                hint=Hint("leave {truth} out: what needs no known row is tried all the same"),
            )
        return audit_columns(
            session, view, judge, known_rows=known_rows, canary=canary, callbacks=callbacks
        )
    if known_rows is not None:
        raise ConfigError(
            "known rows are Bob's, and this is Alice's recording",
            setting="known_rows",
            hint=Hint("leave {known_rows} out, or give Bob's recording and file"),
        )
    guesses = guess_labels(view, announce=callbacks.announce, progress=callbacks.progress)
    wanted = canary and not shuffle_truth
    file = GuessesFile(
        recording=session.recording,
        guesses=guesses,
        messages=tuple(messages_to_alice(view)),
        distinguisher=look_at_ciphertexts(view, callbacks=callbacks) if wanted else None,
    )
    if write_guesses is not None:
        file.save(write_guesses)
    notes = inapplicable(view) or None
    if judge is None:
        return replace(_guessed(file), notes=notes)
    audit = replace(audit_guesses(file, judge, shuffle_truth=shuffle_truth), notes=notes)
    # Other Alices' tables are not here, and without them it would be another training.
    if audit.findings is None or not wanted or view.agreement.parties is not None:
        return audit
    claim = np.inf if judge.ledger is None else judge.ledger.label_epsilon_total
    trial = Session(both_tables(session.tables, judge.tables), callbacks)
    settings = session.config.settings()
    return trial.with_further_trainings(audit, settings, audit.findings, claim)


def _refuse_labels(write_guesses: Path | None, shuffle_truth: bool) -> None:
    for name, given in (("write_guesses", write_guesses), ("shuffle_truth", shuffle_truth)):
        if given:
            raise ConfigError(
                "this is Bob's recording, from which columns can be reconstructed, but no labels",
                setting=name,
                hint=Hint("leave {" + name + "} out; Alice's file as {truth} judges estimates"),
            )


def audit_guesses(
    file: GuessesFile, truth: OtherSide, *, shuffle_truth: bool = False
) -> SessionAudit:
    """Judge the guesses of Alice's side by Bob's labels; ``RowOrderError`` where rows differ."""
    truth.require(file.recording)
    labels = labels_of(truth.tables)
    labels = shuffled(labels) if shuffle_truth else labels
    findings: Findings = file.guesses.judged(labels)
    if shuffle_truth:
        findings = replace(findings, verdict=f"{SHUFFLED_TRUTH} {findings.verdict}")
    return replace(
        _guessed(file),
        judgement=truth.judgement(),
        shuffle_truth=shuffle_truth,
        findings=findings,
        distinguisher=None if shuffle_truth else file.distinguisher,
    )


def _unjudged(recording: Recording, skipped: tuple[Skipped, ...]) -> SessionAudit:
    return SessionAudit(
        seat=recording.recorder,
        recording=recording,
        guesses=(),
        skipped=skipped,
        judgement=None,
        shuffle_truth=False,
        findings=None,
        canary=None,
        over_epochs=(),
        evidence=None,
        messages=(),
    )


def _guessed(file: GuessesFile) -> SessionAudit:
    guesses = file.guesses
    summaries = tuple(
        Guessed(
            name,
            int(np.count_nonzero(guess.signal)),
            int(np.count_nonzero(guess.certain)),
            guesses.seconds[name],
            guess.remark,
            guess.limited or None,
        )
        for name, guess in guesses.attacks.items()
    )
    return replace(
        _unjudged(file.recording, guesses.skipped),
        guesses=summaries,
        messages=file.messages,
        distinguisher=file.distinguisher,
    )


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
    """Estimate Alice's columns from Bob's recording; judge them if her table is given.

    ``known_rows`` is as in ``BobAudit``; ``canary`` also trains with her rows permuted.
    """
    estimates: tuple[Estimated, ...] | None = None
    seat: BobSeat | None = None
    if alice is None:
        estimates, skipped = _estimates(view, callbacks)
    else:
        seat = _judged(session, view, alice, known_rows, canary, callbacks)
        skipped = seat.findings.skipped
    return replace(
        _unjudged(session.recording, skipped),
        judgement=None if alice is None else alice.judgement(),
        estimates=estimates,
        bob_seat=seat,
    )


def _estimates(
    view: BobView, callbacks: Callbacks
) -> tuple[tuple[Estimated, ...], tuple[Skipped, ...]]:
    estimates: list[Estimated] = []
    skipped: list[Skipped] = []
    for attack in COLUMN_ATTACKS:
        reason = attack.lacks(view) or ("" if attack.works_without else _NO_ROWS)
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
    truth, entropy = Truth.from_table(alice.tables.train), KeyedEntropy.from_system()
    findings = examine_columns(
        view, truth, entropy, known_rows=known_rows, announce=callbacks.announce
    )
    if not canary:
        return BobSeat(findings, None)
    trial = BobAudit(both_tables(alice.tables, session.tables), known_rows, callbacks=callbacks)
    beside = trial.permuted(session.config.settings(), RunEntropy.for_seed(None))
    return BobSeat(findings, beside)
