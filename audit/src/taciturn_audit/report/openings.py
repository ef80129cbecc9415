"""Blocks on attacks on what is opened after training, and on chosen inputs."""

from __future__ import annotations

from taciturn.report.blocks import (
    Badge,
    Block,
    Details,
    Paragraph,
    Section,
    Span,
    Table,
    Words,
    table,
)
from taciturn.report.formatting import NONE
from taciturn_audit.report.columns import skipped_facts
from taciturn_audit.results.openings import LABELS, RECOVERED, OpeningAttack, OpeningFindings
from taciturn_audit.verdict import Status

TITLE = "What is opened after training, and chosen inputs"
ABOVE = "▲"
WORDS = (
    "Control: the same measure without the opened numbers (values recovered: the better of the "
    "best constant and regression on all else that Bob has), or with the input that was not "
    f"chosen. {ABOVE} significantly above its control."
)
NOT_TRIED = (
    "Several models of the same rows, inputs chosen against single rows, and a Bob who knows all "
    "other rows were not tried: --further-trainings tries them."
)


def openings_blocks(findings: OpeningFindings) -> list[Block]:
    """Verdict, figures, and what was skipped."""
    return [
        *([openings_table(findings)] if findings.attacks else []),
        *([Paragraph(WORDS, "muted")] if findings.attacks else []),
        *(
            Paragraph(f"{names}: skipped, {reason}", "muted")
            for names, reason in skipped_facts(findings.skipped).pairs.items()
        ),
        *([] if findings.further else [Paragraph(NOT_TRIED, "muted")]),
        Paragraph(findings.verdict),
    ]


def openings_section(findings: OpeningFindings) -> Section:
    """The attacks on the page: the sentence first, the figures folded."""
    status = Status.LEAK if findings.leaks else Status.NOT_SHOWN
    badge = Badge(status.word, status.sign, status.label)
    blocks: list[Block] = [Paragraph(findings.verdict)]
    if findings.attacks:
        figures = (openings_table(findings), Paragraph(WORDS, "muted"))
        blocks.append(Details("Attacks on what is opened after training as a table", figures))
    skipped = skipped_facts(findings.skipped)
    if skipped.pairs:
        blocks.append(Details(f"Attacks that were skipped: {len(findings.skipped)}", (skipped,)))
    if not findings.further:
        blocks.append(Paragraph(NOT_TRIED, "muted"))
    return Section(TITLE, "openings", tuple(blocks), "Opened", badge)


def openings_table(findings: OpeningFindings) -> Table:
    """One line for each attack, with its control."""
    headings = ("attack", "uses", "known rows", "measure", "result", "control")
    rows: list[list[Words]] = [
        [
            f"{attack.name} ({attack.adversary.capitalize()})",
            attack.uses,
            f"{attack.known_rows:.0f}" if attack.known_rows else NONE,
            attack.measure,
            (Span(ABOVE, "bad"), f" {_figure(attack, attack.result)}")
            if attack.above
            else _figure(attack, attack.result),
            _figure(attack, attack.control),
        ]
        for attack in findings.attacks
    ]
    return table(headings, rows, caption=TITLE, words=(0, 1, 3))


def _figure(attack: OpeningAttack, value: float) -> str:
    if attack.measure.startswith((LABELS, RECOVERED)):
        return f"{100 * value:.1f} %"
    return f"{value:.3f}"
