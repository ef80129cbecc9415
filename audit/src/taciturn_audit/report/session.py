"""Report blocks of a real session's audit."""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.report import blocks as b
from taciturn.report.argument import argument
from taciturn.report.formatting import NONE, footer, printed_date
from taciturn_audit.report import audit as shared
from taciturn_audit.report.audit import decision
from taciturn_audit.report.columns import COLUMN_WORDS, adversary_blocks
from taciturn_audit.report.page import (
    LIMITS,
    MEANINGS,
    NOT_AUDITED,
    Part,
    apart_section,
    attacks_section,
    cards,
    epochs_section,
    ledger_section,
    messages_section,
    permits,
)
from taciturn_audit.results.session import Recording, SessionAudit
from taciturn_audit.verdict import (
    Conclusion,
    Summary,
    before_judgement,
    conclude_columns_of,
    conclude_session,
)

RUN = "This session"
_OVER = "their 95 % intervals over the rows of the session"
_ASK_BOB = (
    "Next: give Bob's side a file of the guesses (--write-guesses); it checks them against its "
    "labels. With both sides' files on one machine, one audit does both (--truth)."
)
_ASK_ALICE = (
    "Only Alice's columns can show how accurate an estimate is. With both sides' files on one "
    "machine, one audit does both (--truth). Her own side can rehearse a training with taciturn "
    "check."
)
_HANDS = {
    "a recording": "What its side received, and its random numbers, masks included. It is as "
    "sensitive as the data it reveals; with it, the peer can also remove the masks.",
    "a file of guesses": "A number for each training row and attack, without ids. A reader gets "
    "the recorder's guesses; Bob, who has the labels, also learns what her columns predict for "
    "each row.",
    "this report": "How accurate the guesses are over all rows; no single row.",
}


def session_blocks(audit: SessionAudit) -> list[b.Block]:
    """The session, what the attacks say, and the verdict, for a terminal."""
    recording, conclusion = audit.recording, conclude_session(audit)
    blocks: list[b.Block] = [
        b.Paragraph(_subject(recording), "strong"),
        b.Facts(_facts(audit)),
        *(b.Paragraph(f"note: {note}", "warning") for note in audit.notes or ()),
    ]
    if audit.seat == "bob":
        return [*blocks, *_column_blocks(audit), _summary(conclude_columns_of(audit), _ASK_ALICE)]
    if conclusion is None:
        verdict = _summary(before_judgement(audit), _ASK_BOB)
        return [*blocks, *_unjudged_blocks(audit), verdict]
    if conclusion.canary is not None:
        title = f"{shared.SHUFFLED}: what the protocol alone leaks"
        canary = conclusion.canary
        blocks.append(shared.scores(canary.findings, canary.verdict, title))
    run = conclusion.run
    blocks.append(
        shared.scores(run.findings, run.verdict, "How well Alice can recover the training labels")
    )
    lines = [f"{name}: {remark}" for name, remark in shared.remarks(run).items()]
    lines += [f"{skip.name}: skipped, {skip.reason}" for skip in audit.skipped]
    lines += shared.proof_words(audit.evidence) if audit.evidence is not None else ()
    blocks += [b.Paragraph(line, "muted") for line in (shared.ABOVE_WORDS, *lines)]
    blocks += [] if conclusion.apart is None else shared.apart_blocks(conclusion.apart)
    return [*blocks, _verdict(conclusion)]


def session_page(audit: SessionAudit) -> b.Page:
    """The page of ``taciturn audit --transcript … --party … --html``."""
    conclusion = conclude_session(audit)
    title = "How well Alice can recover the labels: a real session"
    if audit.seat == "bob":
        parts, title = (
            _columns(audit),
            "How well Bob can reconstruct Alice's columns: a real session",
        )
    elif conclusion is not None:
        parts = _judged(audit, conclusion)
    else:
        parts = _guessed(audit)
    verdict = parts[0]
    return b.Page(
        window=f"{verdict.title} – Taciturn audit of session {audit.recording.session[:12]}",
        title=title,
        subject=_subject(audit.recording),
        blocks=(
            verdict,
            *(_argument(audit.recording) if audit.seat == "alice" else ()),
            *parts[1:],
            *([messages_section(audit.messages)] if audit.messages else []),
            b.Section("The session", "session", (b.Facts(_facts(audit)),), "Session"),
            _details(audit),
            decision(audit.audited),
        ),
        footer=footer(audit.version, audit.audited),
    )


def _judged(audit: SessionAudit, conclusion: Conclusion) -> list[b.Section]:
    ledger = None if audit.judgement is None else audit.judgement.ledger
    proof = () if audit.evidence is None else shared.proof_words(audit.evidence)
    runs: list[Part] = [("run", RUN, conclusion.run)]
    sections: list[b.Section] = []
    if conclusion.canary is not None:
        runs.insert(0, ("canary", shared.SHUFFLED, conclusion.canary))
        known, by = conclusion.canary.verdict.controls, conclusion.canary.verdict.ranked_by
        sections = epochs_section(audit.over_epochs, known, by)
    extra: list[b.Block] = []
    if ledger is not None:
        extra += [b.Paragraph(permits(ledger, conclusion)), *cards(conclusion, RUN)]
        further = audit.canary is not None
        sections.append(ledger_section(ledger, "", conclusion, proof, further=further))
    apart = [] if conclusion.apart is None else [apart_section(conclusion.apart)]
    attacks = attacks_section(runs, _OVER, audit.skipped)
    return [_verdict(conclusion, *extra), attacks, *apart, *sections]


def _guessed(audit: SessionAudit) -> list[b.Section]:
    blocks = tuple(_unjudged_blocks(audit))
    verdict = _summary(before_judgement(audit), _ASK_BOB)
    apart = [] if audit.distinguisher is None else [apart_section(audit.distinguisher)]
    return [verdict, b.Section("Guesses", "attacks", blocks, "Guesses"), *apart]


def _verdict(conclusion: Conclusion, *blocks: b.Block) -> b.Section:
    return shared.concluding_section(conclusion, [], RUN, *blocks)


def _columns(audit: SessionAudit) -> list[b.Section]:
    blocks = (b.Paragraph(COLUMN_WORDS, "muted"), *_column_blocks(audit))
    verdict = _summary(conclude_columns_of(audit), _ASK_ALICE)
    return [verdict, b.Section("Columns", "columns", blocks, "Columns")]


def _column_blocks(audit: SessionAudit) -> list[b.Block]:
    if audit.bob_seat is not None:
        return adversary_blocks(audit.bob_seat)
    rows = [
        (
            estimate.name,
            str(estimate.columns),
            f"{estimate.explains:.3f}",
            f"{estimate.seconds:.2f}\u00a0s",
        )
        for estimate in audit.estimates or ()
    ]
    headings = ("attack", "columns of the estimate", "explained variance of the scores", "time")
    caption = (
        f"Estimates of Alice's {counted(audit.recording.peer_columns, 'column')}, not checked "
        "against her values"
    )
    drawn = [b.table(headings, rows, caption=caption)] if rows else []
    lines = [
        f"{estimate.name}: {estimate.remark}"
        for estimate in audit.estimates or ()
        if estimate.remark
    ]
    lines += [f"{skip.name}: skipped, {skip.reason}" for skip in audit.skipped]
    return [*drawn, *(b.Paragraph(line, "muted") for line in lines)]


def _summary(verdict: Summary, next_step: str) -> b.Section:
    blocks = (b.Paragraph(verdict.sentence), b.Paragraph(next_step, "muted"))
    return shared.headline_section(verdict.headline, verdict.status, blocks)


def _unjudged_blocks(audit: SessionAudit) -> list[b.Block]:
    rows = [
        (guess.name, f"{guess.spoken:,}", f"{guess.certain:,}", f"{guess.seconds:.2f}\u00a0s")
        for guess in audit.guesses
    ]
    headings = ("attack", "rows guessed", "called certain", "time")
    caption = f"Guesses at {audit.recording.rows:,} labels, not checked against the labels"
    lines = [f"{guess.name}: {guess.remark}" for guess in audit.guesses if guess.remark]
    lines += [f"{skip.name}: skipped, {skip.reason}" for skip in audit.skipped]
    drawn = [b.table(headings, rows, caption=caption)] if rows else []
    return [*drawn, *(b.Paragraph(line, "muted") for line in lines)]


def _subject(recording: Recording) -> str:
    alice_columns, bob_columns = recording.columns, recording.peer_columns
    if recording.recorder == "bob":
        alice_columns, bob_columns = bob_columns, alice_columns
    return (
        f"session {recording.session[:12]} · mechanism {recording.mechanism} · "
        f"{recording.rows:,} training and {recording.held_out_rows:,} held-out rows · "
        f"{counted(alice_columns, 'column')} at Alice, {bob_columns} at Bob"
    )


def _facts(audit: SessionAudit) -> dict[str, b.Words]:
    recording, judge = audit.recording, audit.judgement
    at_bob = audit.seat == "bob"
    recorder, peer = ("Bob", "Alice") if at_bob else ("Alice", "Bob")
    judged = "nobody: her columns were not given" if at_bob else "nobody: the labels were not given"
    if judge is not None:
        same = "of the same session" if judge.same_session else "which has no model to compare with"
        by = "columns" if at_bob else "labels"
        judged = f"the {by} of {peer}'s {judge.rows:,} training rows, by that file, {same}"
    return {
        "session": recording.session or NONE,
        "recorded": printed_date(recording.started) if recording.started else NONE,
        "audited": printed_date(audit.audited) if audit.audited else NONE,
        "recorded by": f"{recording.recorder}, with {recording.peer}; taciturn {recording.version}",
        "seat": f"{audit.seat}'s",
        "judged by": judged,
        "encryption": recording.encryption,
        "digest of the agreement": b.Span(recording.agreement_digest, "code"),
        f"digest of {recorder}'s table": b.Span(recording.table_digest, "code"),
        **(
            {}
            if judge is None
            else {f"digest of {peer}'s table": b.Span(judge.table_digest, "code")}
        ),
        "digest of the rows' ids": b.Span(recording.ids_digest, "code"),
        "digest of the recording": b.Span(recording.file_digest, "code"),
    }


def _argument(recording: Recording) -> list[b.Section]:
    agreed = recording.agreement
    if agreed.get("reveal"):
        return []
    return argument(str(agreed["mechanism"]), str(agreed["scheme"]), int(str(agreed["key_bits"])))


def _details(audit: SessionAudit) -> b.Section:
    none = b.Paragraph("Not recorded: the audit was called from Python.", "muted")
    agreed = {
        name.replace("_", " "): str(value)
        for name, value in audit.recording.agreement.items()
        if value is not None
    }
    limits = LIMITS if audit.seat == "bob" else (*LIMITS, NOT_AUDITED)
    blocks = (
        *((b.Heading("Notes"), b.Bullets(audit.notes)) if audit.notes else ()),
        b.Heading("Command"),
        b.Command(audit.command) if audit.command else none,
        b.Details("The agreement", (b.Facts(agreed),)),
        b.Details("Who learns what from which file", (b.Facts(_HANDS),)),
        b.Details("What the words mean", (b.Facts(MEANINGS),)),
        b.Details("What this report does not cover", (b.Bullets(limits),)),
    )
    return b.Section("Details", "details", blocks)
