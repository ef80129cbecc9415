"""Audit page: the verdict, attacks and controls, the ledger, all messages.

It takes every figure from the result, and computes no statistic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from taciturn.privacy.events import Statement
from taciturn.report import blocks as b
from taciturn.report.argument import argument
from taciturn.report.formatting import (
    NONE,
    data_size,
    epsilon,
    footer,
    interval,
    most_sure,
    plain,
    share,
)
from taciturn.report.training import (
    at_alice,
    distance,
    divergence,
    metrics_table,
    parties_facts,
    randomness,
    traffic,
    whose,
    worth_facts,
)
from taciturn.results.serialise import Dataclass, record_of
from taciturn.results.training import TrainingRun
from taciturn_audit.report import audit as shared
from taciturn_audit.report.audit import decision
from taciturn_audit.report.columns import adversary_section, skipped_facts
from taciturn_audit.report.openings import openings_section
from taciturn_audit.report.plots import attacks_svg, curves_of, epochs_svg
from taciturn_audit.results.audit import (
    READABLE,
    AfterEpochs,
    AuditRun,
    Control,
    Distinguisher,
    Findings,
    MessageSeen,
    Skipped,
)
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.verdict import (
    Conclusion,
    Measure,
    Status,
    Weighed,
    conclude,
    control_words,
    interval_of,
    value_of,
    weigh,
)

# More lines than this make a page that nobody reads; the record has them all.
MOST_LINES = 500


def audit_page(audit: AuditResult) -> b.Page:
    """The page of ``taciturn audit --html`` and ``--markdown``."""
    conclusion = conclude(audit)
    ledger, scope = _costliest_ledger(audit)
    refuted = () if conclusion.refuted_by is None else shared.evidence_words(audit, conclusion)
    verdict = shared.verdict_section(
        audit,
        conclusion,
        *map(b.Paragraph, (*refuted, permits(ledger, conclusion))),
        *_for_bob(conclusion, ledger),
        *cards(conclusion, shared.run_title(audit), permuted=audit.first.permute_labels),
    )
    skipped = audit.shared(lambda run: run.findings.skipped)
    subject, seat = _subject(audit.first), audit.bob_seat
    # Where Bob alone was the adversary, nothing was attacked on Alice's side.
    alone = audit.runs[0].seat == "bob"
    sections = [] if alone else [verdict]
    if seat is not None:
        ident = "verdict" if alone else "columns"
        sections.append(adversary_section(seat, audit.first.agreement.mechanism, ident))
    if audit.openings is not None:
        sections.append(openings_section(audit.openings))
    sections.append(shared.who_learns_what(audit))
    if not alone:
        sections += [
            *_argument(audit.first),
            attacks_section(_parts(audit, conclusion), _over(audit), *skipped),
            *_apart(audit, conclusion),
            *_epochs(audit, conclusion),
            ledger_section(
                ledger,
                scope,
                conclusion,
                shared.evidence_words(audit, conclusion),
                further=audit.runs[0].canary is not None,
            ),
            messages_section(*audit.shared(lambda run: run.messages)),
            *_membership(audit),
        ]
    return b.Page(
        window=f"{sections[0].title} – Taciturn audit of {subject}",
        title=_title(labels=not alone, columns=seat is not None),
        subject=" · ".join(filter(None, (subject, shared.several(audit)))),
        blocks=(
            *([shared.NOT_ENCRYPTED] if conclusion.simulated else []),
            *sections,
            _utility(audit),
            _details(audit),
            decision(audit.audited),
        ),
        footer=footer(audit.version, audit.audited),
    )


def _title(*, labels: bool, columns: bool) -> str:
    if labels and columns:
        return "What each side can learn about the other's data"
    return "What Alice can learn about the labels" if labels else shared.TITLE


_RELY = "No attack we know recovers your labels. This relies on an assumption: "
_ENCRYPTION = "You rely on the encryption, and on Alice following the protocol: "
_UNPROTECTED = (
    "Nothing bounds what Alice learns about your labels. Our attacks did not succeed on these "
    "rows; on others they may."
)
_FOR_BOB = {
    Status.REFUTED: "Your labels are less protected than the privacy ledger claims. Do not use "
    "this mechanism.",
    Status.LEAK: "Assume that Alice learns labels from this training. taciturn compare shows "
    "mechanisms that leak less.",
    Status.CERTAIN: "Alice may learn some of your labels. Audit more seeds before you train.",
}


def _for_bob(conclusion: Conclusion, ledger: Statement) -> list[b.Block]:
    if conclusion.status is Status.CHECK:
        return []
    rely = _RELY if ledger.label_epsilon_total else _ENCRYPTION
    rely += f"{ledger.assumption or 'none is stated'}."
    if conclusion.unprotected:
        rely = _UNPROTECTED
    words = _FOR_BOB.get(conclusion.status, rely)
    return [b.Heading("What this means for Bob"), b.Paragraph(words)]


def _argument(training: TrainingRun) -> list[b.Section]:
    shared_weights = training.sealed
    if not training.encrypted or shared_weights is None or shared_weights.reveal:
        return []
    return argument(
        training.agreement.mechanism, training.agreement.scheme, training.agreement.key_bits
    )


def _parts(audit: AuditResult, conclusion: Conclusion) -> list[Part]:
    parts: list[Part] = [("run", shared.run_title(audit), conclusion.run)]
    if conclusion.canary is not None:
        parts.insert(0, ("canary", shared.SHUFFLED, conclusion.canary))
    return parts


def _over(audit: AuditResult) -> str:
    if shared.several(audit):
        return "95 % intervals (of the mean, where several runs are averaged)"
    return "their 95 % intervals over the rows of the run"


def _subject(training: TrainingRun) -> str:
    data = training.data
    return (
        f"{data.dataset} · mechanism {training.agreement.mechanism} · {data.rows:,} training "
        f"and {data.held_out_rows:,} held-out rows · "
        f"{at_alice(data)}, {data.bob_columns} at Bob"
    )


def _costliest_ledger(audit: AuditResult) -> tuple[Statement, str]:
    ledgers = [training.ledger for training in audit.trainings]
    number = max(range(len(ledgers)), key=lambda one: ledgers[one].label_epsilon_total)
    same = all(ledger == ledgers[0] for ledger in ledgers)
    return ledgers[number], "" if same else audit.scope(number)


def permits(ledger: Statement, conclusion: Conclusion) -> str:
    """The ledger's claim in words, and whether it was tested."""
    total = ledger.label_epsilon_total
    if math.isinf(total):
        return "The privacy ledger guarantees nothing: a label's epsilon is infinite."
    by = "By the privacy ledger" if conclusion.evidence else "Claimed, not tested:"
    if total == 0:
        return f"{by} nothing about a label is released, under the ledger's stated assumption."
    return (
        f"{by} a label's total epsilon is {epsilon(total)}: someone at even odds before could be "
        f"{most_sure(total)} afterwards."
    )


# --- the cards --------------------------------------------------------------------------------

_CANARY = (
    "The columns carry no information about shuffled labels: anything recovered beyond the control "
    "was leaked by the protocol. Shuffling also moves labels between training and held-out rows, "
    "which changes the control a little."
)
_RUN = "A good model predicts many labels by itself. Only what exceeds the controls was leaked."
_OWN_CANARY = "The labels of this run were shuffled before training."


def cards(conclusion: Conclusion, title: str, *, permuted: bool = False) -> list[b.Block]:
    """The figures in large type, of the canary and of the run; none where no attack applies."""
    meaning = _OWN_CANARY if permuted else _RUN
    drawn = [(title, conclusion.run, meaning)]
    if conclusion.canary is not None:
        drawn.insert(0, (shared.SHUFFLED, conclusion.canary, _CANARY))
    shown = [_card(*part) for part in drawn if part[1].verdict.attack is not None]
    return [b.Cards(tuple(shown))] if shown else []


def _card(title: str, weighed: Weighed, meaning: str) -> b.Card:
    verdict = weighed.verdict
    name = "" if verdict.attack is None else verdict.attack.name
    lines = (
        f"{verdict.figure} of the attack {name}",
        f"95\u00a0% interval {interval(*verdict.interval)}",
    )
    beside = {
        f"control: {control_words(control)}": share(value_of(control, verdict.figure))
        for control in verdict.controls
    }
    return b.Card(title, share(verdict.value), lines, beside, meaning)


def _tested(conclusion: Conclusion) -> str:
    if conclusion.evidence is None:
        return "not tested"
    return "violated" if conclusion.evidence.violated else "not violated"


# --- the sections -----------------------------------------------------------------------------


Part: TypeAlias = tuple[str, str, Weighed]
"""A run's short name, its title, and what was found in it."""


def attacks_section(
    parts: Sequence[Part], over: str, skipped: Sequence[Skipped], scope: str = ""
) -> b.Section:
    """Attacks and controls; ``over`` names the intervals and what they are of, in words."""
    tables = [block for _, title, weighed in parts for block in _figures(title, weighed)]
    drawn = tuple(_drawn(*part) for part in parts if part[2].findings.attacks)
    by = " or ".join(dict.fromkeys(part[2].verdict.ranked_by for part in parts))
    figures = b.Figures(
        drawn,
        caption=f"Dots: the {by} of each attack; bars: {over}; vertical lines: the controls. Red, "
        "filled: the whole interval of the accuracy or of the AUC lies above every control, a "
        f"leak. Hollow: it does not. {_RANKED}",
        instead=(*tables, b.Paragraph(shared.ABOVE_WORDS, "muted")),
        summary="All figures as tables",
    )
    reasons = skipped_facts(skipped, whose(scope))
    none = b.Paragraph("None: every attack was run.", "muted")
    words = (
        "How well each attack recovers the labels. The controls (grey names) see no message: prior "
        "guesses the commonest label, model-only predicts with Alice's part of the final model. "
        "With shuffled labels model-only is an attack: the columns carry no information about "
        "them, so the model learnt them through the protocol."
    )
    title = f"Attacks that were skipped: {len(skipped)}"
    folded = b.Details(title, (reasons if skipped else none,))
    # A chart without attacks would be empty.
    shown = (b.Paragraph(words), figures) if drawn else (b.Paragraph(_NO_ATTACKS),)
    blocks = (*shown, folded)
    return b.Section("Attacks on the labels", "attacks", blocks, "Attacks")


_NO_ATTACKS = "None was run; the list gives the reasons."
_RANKED = (
    "The AUC is drawn where one label is more than twice as common as the other, or where it alone "
    "shows a leak: always guessing the commonest label is then hard to beat by accuracy."
)


def _drawn(name: str, title: str, weighed: Weighed) -> b.Figure:
    findings, by = weighed.findings, weighed.verdict.ranked_by
    controls = "; ".join(
        f"{control.name} {share(value_of(control, by))}" for control in weighed.verdict.controls
    )
    attacks = "; ".join(
        f"{attack.name} {share(value_of(attack, by))}, "
        f"95 % interval {interval(*interval_of(attack, by))}"
        for attack in findings.attacks
    )
    alt = f"The {by} of each attack. Controls: {controls}. Attacks: {attacks or 'none applies'}."
    return b.Figure(name, title, alt, attacks_svg(findings, weighed.verdict, name))


def _figures(title: str, weighed: Weighed) -> list[b.Block]:
    remarks = shared.remarks(weighed)
    figures = shared.scores(weighed.findings, weighed.verdict, title, whole=True)
    return [figures, *([b.Facts(remarks)] if remarks else [])]


def _apart(audit: AuditResult, conclusion: Conclusion) -> list[b.Section]:
    look = conclusion.apart
    if look is None:
        return []
    number = [run.distinguisher for run in audit.runs].index(look)
    return [apart_section(look, audit.scope(number))]


def apart_section(look: Distinguisher, scope: str = "") -> b.Section:
    """Guesses from ciphertexts."""
    words = (
        "A classifier was given the messages that Alice receives in small trainings, and guessed "
        f"whether all labels are 1 or all labels are 0{whose(scope)}. Half right is chance."
    )
    blocks = (b.Paragraph(words), *shared.apart_blocks(look))
    return b.Section("Can ciphertexts be distinguished?", "apart", blocks, "Ciphertexts")


def _epochs(audit: AuditResult, conclusion: Conclusion) -> list[b.Section]:
    if conclusion.canary is None:
        return []
    known = audit.runs[0].canary or conclusion.canary.findings
    by = conclusion.canary.verdict.ranked_by
    return epochs_section(audit.runs[0].over_epochs, known.controls, by, audit.scope(0))


def epochs_section(
    rows: Sequence[AfterEpochs], controls: Sequence[Control], by: Measure, scope: str = ""
) -> list[b.Section]:
    """The attacks on shuffled labels after fewer epochs; nothing where none was repeated."""
    if not curves_of(rows):
        return []
    if any(attack.auc is None for row in rows for attack in row.attacks):
        by = "accuracy"  # a record of an earlier version
    curves = curves_of(rows, by)
    prior = next((value_of(control, by) for control in controls if control.name == "prior"), None)
    lines = [
        (name, str(epochs), share(point.value), interval(point.low, point.high))
        for name, points in curves.items()
        for epochs, point in points.items()
    ]
    alt = "; ".join(
        f"{name}: " + ", ".join(f"{share(point.value)} after {n}" for n, point in points.items())
        for name, points in curves.items()
    )
    title = f"{_capital(by)} of each attack on shuffled labels, by number of epochs"
    figures = b.Figures(
        (b.Figure("epochs", title, alt, epochs_svg(rows, prior, "epochs", by)),),
        caption=f"{_capital(by)} by number of epochs; the pale bars are 95 % intervals.",
        instead=(b.table(("attack", "epochs", by, "95 % interval"), lines, label=title),),
        wide=True,
    )
    words = (
        "What each attack would recover had the training stopped earlier, on labels shuffled "
        f"before training{whose(scope)}."
    )
    blocks = (b.Paragraph(words), figures)
    return [b.Section("Leakage over epochs", "over-epochs", blocks, "Over epochs")]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def ledger_section(
    ledger: Statement, scope: str, conclusion: Conclusion, proof: Sequence[str], *, further: bool
) -> b.Section:
    """Claim of the ledger, and the evidence against it, if ``further`` trainings were made."""
    label = (ledger.label_epsilon_total, ledger.label_epsilon_total_delta)
    rows = [
        ("as claimed", ledger.claimed_epsilon_per_release, None, None),
        ("residue", ledger.residue_epsilon_per_release, ledger.residue_epsilon_total, None),
        ("label", ledger.label_epsilon_per_release, *label),
    ]
    headings = (
        "epsilon of",
        "one release",
        f"all {ledger.releases_per_row} releases of a row",
        f"all, with delta {ledger.delta:g}",
    )
    figures = [(name, *map(epsilon, values)) for name, *values in rows]
    outcome = _tested(conclusion)
    # With no release, or no bound, every figure is the same.
    varies = 0 < ledger.label_epsilon_total < math.inf
    table: tuple[b.Block, ...] = (
        b.table(headings, figures, label="Epsilon, by what it is about"),
        b.Paragraph(
            "As claimed: what the mechanism's description promises. Residue and label: what this "
            "program charges. For a person, the label's total counts.",
            "muted",
        ),
    )
    blocks: tuple[b.Block, ...] = (
        *(table if varies else ()),
        *([b.Paragraph(scope, "muted")] if scope else []),
        b.Paragraph(f"Assumption: {ledger.assumption or 'no stated assumption'}.", "muted"),
        b.Heading(("Test of the claim: ", b.Span(outcome, "bad" if outcome == "violated" else ""))),
        *map(b.Paragraph, proof or (_untested(ledger, conclusion, further),)),
    )
    return b.Section("Privacy ledger", "ledger", blocks, "Ledger")


def _untested(ledger: Statement, conclusion: Conclusion, further: bool) -> str:
    if math.isinf(ledger.label_epsilon_total):
        return "The ledger claims no bound, so there is no claim to test."
    if conclusion.run.verdict.attack is None:
        return "No attack we know applies, so there was no guess to test the claim with."
    if not further:
        return "The audit made no further run, which the test needs."
    return "No attack had a signal to guess from."


def messages_section(messages: Sequence[MessageSeen], scope: str = "") -> b.Section:
    """Messages that Alice received, by kind."""
    rows: list[tuple[b.Words, ...]] = [
        (
            b.Span(message.message, "code"),
            f"{message.count:,}",
            data_size(message.bytes),
            _protected(message),
            message.allows or "not described",
        )
        for message in messages
    ]
    headings = ("message", "count", "size", "protection", "what Alice can do with it")
    listed = b.table(headings, rows, words=(0, 3, 4), label="Messages to Alice")
    blocks: list[b.Block] = [listed if rows else b.Paragraph("This result lists no messages.")]
    blocks += [b.Paragraph(scope, "muted")] if scope else []
    return b.Section("Everything Alice received", "messages", tuple(blocks), "Messages")


def _protected(message: MessageSeen) -> str:
    if not message.encrypted:
        return "encrypted in a real run" if READABLE in message.allows else "unencrypted"
    bits = f", {message.key_bits} bits" if message.key_bits else ""
    return f"encrypted: {message.scheme or 'unnamed scheme'}{bits}"


def _membership(audit: AuditResult) -> list[b.Section]:
    guesses = audit.membership
    if guesses is None:
        return []
    facts = {
        "precision": share(guesses.precision),
        "recall": share(guesses.recall),
        "batch size correct": share(guesses.k_exact),
        "iterations looked at": f"{guesses.iterations:.0f}",
        "precision of calling every row a member": share(guesses.base_rate),
        "iterations called certain": share(guesses.certified),
    }
    words = (
        "The mechanism hides which rows a batch holds. This is how well Alice finds them, compared "
        "with guessing."
    )
    blocks = (b.Paragraph(words), b.Facts(facts))
    return [b.Section("Batch membership", "membership", blocks, "Membership")]


def _utility(audit: AuditResult) -> b.Section:
    apart = b.Paragraph(
        f"Largest weight difference to centralised training: {distance(audit)}.", "muted"
    )
    worth = (*divergence(audit.means.diverged), b.Facts(worth_facts(audit)))
    blocks = (metrics_table(audit), *worth, apart)
    return b.Section("How good the model is", "utility", blocks, "Utility")


# --- the details ------------------------------------------------------------------------------

MEANINGS = {
    "Alice, Bob": "Alice holds columns and is curious. Bob holds the labels, and perhaps columns "
    "of his own.",
    "labels shuffled": "The same training on labels shuffled beforehand. Columns carry no "
    "information about such labels; only the protocol can leak them.",
    "prior": "Always guessing the commonest label.",
    "model-only": "Guessing with the model that Alice has in the end, and no message: a control on "
    "real labels, an attack on shuffled ones.",
    "called certain": "The share of labels that an attack claims to have solved, and how many of "
    "those are correct.",
    "AUC": "How often a row labelled 1 ranks above a row labelled 0, or a label above the median "
    "above another; 50 % is chance.",
    "epsilon": "The most by which the odds of a label can shift, as a power of e: 0 not at all, 1 "
    "by a factor of 2.7, 5 by 148.",
    "residue": "Label minus predicted probability; its sign is the label.",
    "95 % interval": "Of one run: of the rows of that run, which share a model. Of several runs: "
    "of their mean.",
}
LIMITS = (
    "Attacks that are not built in. That none we know succeeds is not a proof of safety.",
    "An Alice who breaks the rules: she is assumed to follow the protocol and to keep everything "
    "she sees.",
    "A Bob who breaks the rules.",
)
NOT_AUDITED = "What Bob learns about Alice's columns: he was not audited as adversary."


def _details(audit: AuditResult) -> b.Section:
    preparation, scope = audit.shared(lambda run: run.training.preparation)
    prepared = f"How the columns were prepared: {len(preparation)}{whose(scope)}"
    blocks: list[b.Block] = []
    if audit.notes:
        blocks += [b.Heading("Notes"), b.Bullets(_lines(audit.notes))]
    limits = LIMITS if audit.bob_seat is not None else (*LIMITS, NOT_AUDITED)
    none = b.Paragraph("Not recorded: the audit was called from Python.", "muted")
    blocks += [b.Heading("Command"), b.Command(audit.command) if audit.command else none]
    blocks += [
        *_runs(audit),
        b.Details("Configuration", (b.Facts(_configuration(audit)),)),
        b.Details(prepared, (b.Bullets(_lines(preparation)),)),
        b.Details("What the words mean", (b.Facts(MEANINGS),)),
        b.Details("What this report does not cover", (b.Bullets(limits),)),
    ]
    return b.Section("Details", "details", tuple(blocks))


def _lines(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len(texts) <= MOST_LINES:
        return texts
    return (*texts[:MOST_LINES], f"and {len(texts) - MOST_LINES} more, which --json lists")


def _runs(audit: AuditResult) -> list[b.Block]:
    if not shared.several(audit):
        return []
    rows = [
        (
            str(run.training.seed),
            _line(run.canary, shuffled=True),
            _line(run.findings, shuffled=run.training.permute_labels),
            share(getattr(run.training.metrics.test, "accuracy", None)),
            run.findings.verdict,
        )
        for run in audit.runs[:MOST_LINES]
    ]
    headings = ("seed", "labels shuffled", "real run", "held-out accuracy", "in words")
    listed = b.table(headings, rows, words=(0, 1, 2, 4), label="Each run")
    return [b.Details("Run by run", (listed,))]


def _line(findings: Findings | None, *, shuffled: bool) -> str:
    if findings is None:
        return NONE
    verdict = weigh(findings.controls, findings.attacks, shuffled=shuffled)
    best = verdict.attack
    name = "no attack" if best is None else f"{best.name} {share(verdict.value)}"
    figure = "AUC; " if verdict.figure == "AUC" else ""
    return f"{name} ({figure}{verdict.control.name} {share(verdict.known)})"


# Shown elsewhere, or no setting.
_NO_SETTING = {"seed", "max_weight_difference", "weight_bound", "bytes_to_alice", "bytes_to_bob"}
_NO_SETTING |= {"seconds", "iterations", "encrypted"}
# Listed only where they are set.
_UNUSUAL = {"permute_labels", "permute_rows", "key_bits", "reveal", "reveal_bob", "fresh_keys"}


def _configuration(audit: AuditResult) -> dict[str, str]:
    """Every plain value of the training, so that a setting of tomorrow is not left out."""
    facts = {
        name.replace("_", " "): plain(value)
        for name, value in record_of(audit.first).items()
        if name not in _NO_SETTING and isinstance(value, str | int | float)
        if value or name not in _UNUSUAL
    }
    parts: dict[str, Callable[[AuditRun], Dataclass | None]] = {
        "hidden batches": lambda run: run.training.hidden_batches,
        "shared weights": lambda run: run.training.sealed,
    }
    for title, part in parts.items():
        value, scope = audit.shared(part)
        for name, item in (record_of(value) if value is not None else {}).items():
            # A part of a part is listed with its own names; what is not set is left out.
            parts_of = item if isinstance(item, dict) else {name: item}
            for key, entry in parts_of.items():
                if entry is not None and (entry or key not in _UNUSUAL):
                    facts[f"{title}: {key.replace('_', ' ')}"] = f"{plain(entry)}{whose(scope)}"
    iterations, scope = audit.shared(lambda run: run.training.cost.iterations)
    means = audit.means
    return facts | {
        **parties_facts(audit.first.data.parties),
        "iterations": f"{iterations:,}{whose(scope)}",
        "randomness": randomness(audit),
        "traffic": traffic(means.bytes_to_alice, means.bytes_to_bob),
        "training time": f"{means.seconds:.1f} s",
    }
