"""The audit for a pull request: the page's words and tables in GitHub's Markdown, verdict first.

**Guarantee.** Every text of the record is escaped, so that it shows as it is: no markup of its own,
no cell that breaks a table, no fence that closes early.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from taciturn.report.document import AuditReport, Fact
from taciturn.report.findings import Findings
from taciturn.report.record import Record
from taciturn.report.words import NONE, epsilon, interval, share

_MARKUP = re.compile(r"://|www\.|[\\`*_\[\]#|~<>&@$]")
_NOTHING = "<!-- -->"
# Entities hold inside HTML too, which Markdown allows. An empty comment keeps GitHub from making a
# link, a mention of a person or a reference to an issue.
_SPELLED = {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
    "@": f"@{_NOTHING}",
    "#": f"#{_NOTHING}",
    "://": f":{_NOTHING}//",
    "www.": f"www{_NOTHING}.",
}


def render(record: Record) -> str:
    """An audit's record as Markdown.

    Args:
        record: Of ``taciturn audit``, before or after it became JSON.

    Raises:
        DataError: The record is not of an audit.
    """
    report = AuditReport.of(record)
    parts = [
        *_top(report),
        *_attacks(report),
        *_epochs(report),
        *_ledger(report),
        *_messages(report),
        *_membership(report),
        *_utility(report),
        *_details(report),
    ]
    return "\n\n".join(parts).replace("\u00a0", " ") + "\n"


def escape(text: str) -> str:
    r"""A text that shows as it is, also inside a table.

    >>> escape("a|b <c> *d*")
    'a\\|b &lt;c&gt; \\*d\\*'
    """
    return _MARKUP.sub(lambda found: _SPELLED.get(found[0], f"\\{found[0]}"), text)


def _table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)
) -> str:
    """A table; the columns in ``left`` are texts, the others numbers."""
    rules = [":--" if place in left else "--:" for place in range(len(headings))]
    lines = [headings, rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _facts(facts: Iterable[Fact], heading: str = "") -> str:
    rows = [(escape(fact.name), escape(fact.value)) for fact in facts]
    return _table((heading, ""), rows, left=(0, 1))


def _folded(summary: str, *body: str) -> list[str]:
    return [f"<details>\n<summary>{summary}</summary>", *body, "</details>"]


def _top(report: AuditReport) -> list[str]:
    several = f" · {report.several}" if report.several else ""
    verdict = report.verdict
    return [
        f"# {verdict.headline}",
        f"**{verdict.status.sign} {verdict.status.label}** · {escape(report.subject)}{several}",
        *(escape(sentence) for sentence in verdict.sentences),
    ]


def _attacks(report: AuditReport) -> list[str]:
    parts = ["## Attacks beside the controls"]
    for found in (report.canary, report.run):
        if found is not None:
            scope = f" ({escape(found.scope)})" if found.scope else ""
            parts += [f"### {found.title}{scope}", found.meaning, _figures(found)]
            parts += [
                f"{escape(each.name)}: {escape(each.remark)}"
                for each in found.attacks
                if each.remark
            ]
    if report.skipped:
        title = f"Attacks that were skipped: {len(report.skipped)}"
        parts += _folded(title, _facts(report.skipped))
    return parts


def _figures(found: Findings) -> str:
    rows = [
        (f"{escape(each.name)} (control)", share(each.accuracy), NONE, share(each.auc), NONE, NONE)
        for each in found.controls
    ]
    rows += [
        (
            escape(each.name) + (" **▲ above the controls**" if each.above else ""),
            share(each.accuracy),
            interval(each.accuracy_low, each.accuracy_high),
            share(each.auc),
            share(each.decided),
            share(each.decided_correct),
        )
        for each in found.attacks
    ]
    headings = ("", "accuracy", "95 % interval", "AUC", "called certain", "of those right")
    return _table(headings, rows)


def _epochs(report: AuditReport) -> list[str]:
    if report.epochs is None:
        return []
    scope = f" ({escape(report.epochs.scope)})" if report.epochs.scope else ""
    rows = [
        (
            escape(curve.name),
            str(point.epochs),
            share(point.accuracy),
            interval(point.low, point.high),
        )
        for curve in report.epochs.curves
        for point in curve.points
    ]
    return [
        "## Leakage over epochs",
        "What each attack would have told had the training stopped earlier, on labels shuffled "
        f"before training{scope}.",
        *_folded("Figures", _table(("attack", "epochs", "accuracy", "95 % interval"), rows)),
    ]


def _ledger(report: AuditReport) -> list[str]:
    ledger = report.ledger
    delta = NONE if ledger.delta is None else f"{ledger.delta:g}"
    rows = [
        (line.name, epsilon(line.release), epsilon(line.total), epsilon(line.total_delta))
        for line in ledger.lines
    ]
    headings = (
        "epsilon of",
        "one release",
        f"all {ledger.releases} releases of a row",
        f"all, with delta {delta}",
    )
    return [
        "## The ledger",
        escape(ledger.meaning),
        _table(headings, rows),
        f"Rests on: {escape(ledger.assumption or 'no stated assumption')}."
        + (f" ({escape(ledger.scope)})" if ledger.scope else ""),
        f"**Claim against evidence: {report.evidence.headline.lower()}.** "
        + escape(" ".join(report.evidence.sentences)),
    ]


def _messages(report: AuditReport) -> list[str]:
    rows = [
        (
            escape(each.name),
            f"{each.count:,}",
            each.size,
            escape(each.protection),
            escape(each.allows),
        )
        for each in report.messages
    ]
    headings = ("message", "count", "size", "protection", "what it allows")
    parts = ["## Everything Alice received"]
    if not rows:
        return [*parts, "This record lists no messages."]
    parts.append(_table(headings, rows, left=(0, 3, 4)))
    return [*parts, escape(report.messages_scope)] if report.messages_scope else parts


def _membership(report: AuditReport) -> list[str]:
    return ["## Who is in the batch", _facts(report.membership)] if report.membership else []


def _utility(report: AuditReport) -> list[str]:
    rows = [(line.name, line.held_out, line.centralised, line.training) for line in report.utility]
    headings = (
        "",
        "this training, held-out",
        "centralised, held-out",
        "this training, training rows",
    )
    parts = ["## How good the model is", _table(headings, rows)]
    return [*parts, escape(report.distance)] if report.distance else parts


def _details(report: AuditReport) -> list[str]:
    parts = ["## Details"]
    if report.notes:
        parts.append("\n".join(f"- {escape(note)}" for note in report.notes))
    parts.append(_code(report.command) if report.command else "The command was not recorded.")
    if report.runs:
        rows = [
            tuple(map(escape, (each.seed, each.canary, each.run, each.held_out, each.verdict)))
            for each in report.runs
        ]
        headings = ("seed", "labels shuffled", "real run", "held-out accuracy", "in words")
        parts += _folded("Run by run", _table(headings, rows, left=(0, 1, 2, 4)))
    parts += _folded("Configuration", _facts(report.configuration))
    if report.preparation:
        lines = "\n".join(f"- {escape(line)}" for line in report.preparation)
        parts += _folded(f"How the columns were prepared: {len(report.preparation)}", lines)
    version = (
        f"Taciturn {escape(report.version)}" if report.version else "Taciturn, version not recorded"
    )
    parts.append(
        f"{version}. That no attack of ours succeeds is never a proof of safety; Alice is assumed "
        "to follow the protocol and to keep everything she sees."
    )
    return parts


def _code(text: str) -> str:
    """A block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}console\n$ {text}\n{fence}"
