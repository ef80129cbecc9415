"""Audit report as blocks: attacks and controls, for a terminal and a page.

Of several runs, what they do not share is the first run's, and the words say so.
"""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.report.argument import SIGNED
from taciturn.report.blocks import (
    Badge,
    Blanks,
    Block,
    Facts,
    Paragraph,
    Section,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.formatting import NONE, data_size, epsilon, interval, printed_date, share
from taciturn.report.training import SHARED_PEOPLE, ledger_facts, training_blocks
from taciturn.settings.agreement import Agreement
from taciturn_audit.report.columns import adversary_blocks, look_tables, skipped_facts
from taciturn_audit.report.openings import openings_blocks
from taciturn_audit.results.audit import (
    Distinguisher,
    Evidence,
    Findings,
    Membership,
)
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.verdict import (
    Conclusion,
    Status,
    Verdict,
    Weighed,
    apart_sentence,
    conclude,
)

_EXACT = "Recovered: the exact value."
_NEAR = (
    "Recovered: the value to a hundredth of the labels' standard deviation, up to a unit and an "
    "offset."
)


def recovered_words(agreement: Agreement) -> list[str]:
    """What counts as recovered, for labels that are no classes."""
    if agreement.kind.has_classes:
        return []
    recovered = _EXACT if agreement.kind.exact_labels else _NEAR
    return [f"{recovered} AUC: of telling labels above the median from the others"]


def decision(audited: str | None) -> Section:
    """Empty lines, to be filled in on paper."""
    made = f" made on {printed_date(audited)}" if audited else ""
    words = f"Decision based on this report{made}, which is not a proof of safety."
    blocks = (Paragraph(words, "muted"), Blanks(SIGNED))
    return Section("Decision", "decision", blocks, "Decision")


SHUFFLED, TITLE = "Labels shuffled before training", "What Bob can learn about Alice's columns"
ABOVE = "▲"
ABOVE_WORDS = (
    f"{ABOVE} significantly above every control, by accuracy or AUC (95 % interval; with shuffled "
    "labels corrected for the number of attacks)"
)


def audit_blocks(audit: AuditResult) -> list[Block]:
    """The training, what the attacks found in it, and the verdict, for a terminal."""
    conclusion = conclude(audit)
    canary, run = conclusion.canary, conclusion.run
    lines = [*recovered_words(audit.first.agreement), ABOVE_WORDS]
    lines += [*(f"{name}: {remark}" for name, remark in remarks(run).items())]
    unrun = skipped_facts(run.findings.skipped).pairs
    lines += [f"skipped, as {reason}: {names}" for names, reason in unrun.items()]
    lines += [_membership(audit.membership)] if audit.membership is not None else []
    lines += evidence_words(audit, conclusion)
    shuffled = f"{SHUFFLED}: what the protocol alone leaks"
    bob = _bob_seat(audit)
    cautions: list[Block] = [NOT_ENCRYPTED] if conclusion.simulated else []
    first = [*cautions, *training_blocks(audit), who_learns_what(audit)]
    opened = _openings(audit)
    if audit.runs[0].seat == "bob":
        return [*first, *bob, *opened]
    return [
        *first,
        *([scores(canary.findings, canary.verdict, shuffled)] if canary is not None else []),
        scores(run.findings, run.verdict, "How well Alice can recover the training labels"),
        *(Paragraph(line, "muted") for line in lines),
        *([] if conclusion.apart is None else apart_blocks(conclusion.apart)),
        *bob,
        *opened,
        verdict_section(audit, conclusion),
    ]


def _openings(audit: AuditResult) -> list[Block]:
    return [] if audit.openings is None else openings_blocks(audit.openings)


def who_learns_what(audit: AuditResult) -> Section:
    """What is disclosed for certain, and what the ledger says; attacks may show more."""
    ledgers = [training.ledger for training in audit.trainings]
    ledger = max(ledgers, key=lambda ledger: ledger.label_epsilon_total)
    facts = Facts({"both": SHARED_PEOPLE, **ledger_facts(ledger)})
    return Section("Who learns what", "learns", (facts,), "Who learns what")


def _bob_seat(audit: AuditResult) -> list[Block]:
    seat, means = audit.bob_seat, several(audit)
    if seat is None:
        return []
    return [
        *adversary_blocks(seat),
        *([Paragraph(f"Bob as the adversary: {means}", "muted")] if means else []),
    ]


def verdict_section(audit: AuditResult, conclusion: Conclusion, *blocks: Block) -> Section:
    """Verdict of an audit: on the canary run, on the run, and its qualifications."""
    means = f" ({several(audit)})" if several(audit) else ""
    lines = [*_seat_words(audit), *recovered_words(audit.first.agreement)]
    return concluding_section(conclusion, lines, run_title(audit), *blocks, means=means)


def concluding_section(
    conclusion: Conclusion, lines: list[str], title: str, *blocks: Block, means: str = ""
) -> Section:
    """The headline of an audit, and the sentences about its canary run, its run and ciphertexts."""
    canary = conclusion.canary
    parts = [(SHUFFLED, canary)] if canary is not None else []
    parts.append((title, conclusion.run))
    if any(part.verdict.attack for _, part in parts):
        lines += [f"{name}{means}: {part.sentence}" for name, part in parts]
    else:
        # Where no attack applies to either run, one sentence says it.
        lines.append(conclusion.run.sentence)
    lines += [conclusion.caveat] if conclusion.caveat else []
    lines += [apart_sentence(conclusion.apart)] if conclusion.apart is not None else []
    # Each sentence stands alone elsewhere; here the last one says it for all.
    last = max((n for n, line in enumerate(lines) if _NO_PROOF in line), default=0)
    lines = [line if n == last else line.replace(_NO_PROOF, "") for n, line in enumerate(lines)]
    paragraphs = (*map(Paragraph, lines), *blocks)
    caution = "Unprotected." if conclusion.unprotected else ""
    if conclusion.simulated:
        caution = "Not encrypted."
    return headline_section(conclusion.headline, conclusion.status, paragraphs, caution)


_NO_PROOF = " That is not a proof of safety."
NOT_ENCRYPTED = Paragraph(
    Span(
        "This run was not encrypted (scheme clear): it shows what an encrypted run would let each "
        "side learn. Repeat it with bfv before you rely on it.",
        "warning",
    )
)


def headline_section(
    headline: str, status: Status, blocks: tuple[Block, ...], caution: str = ""
) -> Section:
    """The section that a report opens with; with a caution its colour is never green."""
    badge = Badge(status.word, status.sign, status.label)
    if caution and status in (Status.NOT_SHOWN, Status.NOT_TESTED):
        label = f"{caution} {status.label}"
        badge = Badge(Status.CERTAIN.word, Status.CERTAIN.sign, label)
    return Section(headline, "verdict", blocks, "Verdict", badge)


def _seat_words(audit: AuditResult) -> list[str]:
    names = audit.runs[0].pooled
    if names is None:
        return []
    if len(names) == 1:
        return [f"Alice stands for {names[0]} alone, one of several."]
    together = f"{', '.join(names[:-1])} and {names[-1]}"
    return [f"Alice stands for {together}, who pool what they have."]


def apart_blocks(look: Distinguisher) -> list[Block]:
    """Guesses from ciphertexts, and the faults that would have been detected."""
    caption = "Trainings whose labels were all 1 or all 0, distinguished by what Alice received"
    words = (
        f"Fitted on {look.trained} trainings with {counted(look.batch, 'row')} and "
        f"{counted(look.columns, 'column')}, tested "
        f"on {look.judged} others. "
        f"{look.repeated:,} blocks of 16 bytes repeat in {data_size(look.bytes)} of ciphertext; a "
        f"byte has {look.entropy:.2f} bits of entropy. A leak that reveals "
        f"{share(look.detectable, 0)} of trainings would be detected with 95\u00a0% power; the "
        f"false-alarm rate is at most {look.false_alarm:g}. "
        "Times are those of a simulation in one process; a recorded run has none."
    )
    return [
        *look_tables(look.looks, look.faults, "trainings right", caption),
        Paragraph(words, "muted"),
    ]


def run_title(audit: AuditResult) -> str:
    """Title of the run, as distinct from its canary."""
    own = audit.first.permute_labels or any(run.shuffle_truth for run in audit.runs)
    return "This run" if own else "The real run"


def several(audit: AuditResult) -> str:
    """Note on figures that are means of several runs; empty for one run."""
    return f"mean of {len(audit.runs)} runs" if len(audit.runs) > 1 else ""


def scores(findings: Findings, verdict: Verdict, caption: str, *, whole: bool = False) -> Table:
    """Table of attacks below the controls; ``whole`` adds the AUC's interval and the time."""
    headings = ["", "accuracy", "95 % interval", "AUC", "95 % interval", "called certain"]
    headings += ["of those right", "time"]
    dashes = [NONE] * 4
    controls: list[list[Words]] = [
        [
            Span(f"{control.name} (control)", "muted"),
            share(control.accuracy),
            NONE,
            share(control.auc),
            *dashes,
        ]
        for control in verdict.controls
    ]
    attacks: list[list[Words]] = [
        [
            (Span(ABOVE, "bad"), f" {attack.name}")
            if attack.name in verdict.above
            else attack.name,
            share(attack.accuracy),
            interval(attack.accuracy_low, attack.accuracy_high),
            share(attack.auc),
            interval(attack.auc_low, attack.auc_high),
            share(attack.decided or None),
            share(attack.decided_correct),
            f"{attack.seconds:.2f}\u00a0s",
        ]
        for attack in findings.attacks
    ]
    shown = range(8) if whole else (0, 1, 2, 3, 5, 6)
    drawn = table([headings[place] for place in shown], [], caption=caption)
    groups = [tuple(tuple(row[n] for n in shown) for row in rows) for rows in (controls, attacks)]
    return Table(drawn.columns, tuple(filter(None, groups)), caption)


def remarks(weighed: Weighed) -> dict[str, str]:
    """Remarks of the attacks; none for means over several runs."""
    attacks = weighed.findings.attacks if weighed.runs == 1 else ()
    return {attack.name: attack.remark for attack in attacks if attack.remark}


def _membership(guesses: Membership) -> str:
    return (
        f"batch membership: precision {share(guesses.precision)}, recall "
        f"{share(guesses.recall)}, its size right in {share(guesses.k_exact)} of "
        f"{guesses.iterations:.0f} iterations; {share(guesses.base_rate)} of the scored rows are "
        "in it"
    )


def evidence_words(audit: AuditResult, conclusion: Conclusion) -> tuple[str, ...]:
    """The ledger's claim against guesses at random labels; empty if it was not tested."""
    scope = "" if conclusion.refuted_by is None else audit.scope(conclusion.refuted_by)
    return () if conclusion.evidence is None else proof_words(conclusion.evidence, scope)


def proof_words(proof: Evidence, scope: str = "") -> tuple[str, ...]:
    """A claim against guesses at random labels."""
    return (
        f"Labels were replaced by fair coins and {proof.attack} guessed {proof.guesses:,} of "
        f"{proof.rows:,}: {proof.correct:,} were right{f' ({scope})' if scope else ''}.",
        f"That shows an epsilon of at least {epsilon(proof.lower_bound)}, where "
        f"{epsilon(proof.claim)} is claimed; the bound is too high with probability "
        f"{share(proof.failure, 0)} at most.",
        "The claim is refuted: Alice learns more than the ledger says."
        if proof.violated
        else "The guesses do not contradict the claim. They do not prove it either.",
    )
