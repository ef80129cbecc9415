"""What the doctor found, as blocks."""

from __future__ import annotations

from taciturn.errors import counted
from taciturn.report.blocks import Block, Paragraph, Span, Tone, Words, table
from taciturn.report.ledger import past_blocks
from taciturn.report.parties import outlook_blocks
from taciturn.results.doctor import DoctorResult, Finding, Level

_TONES: dict[Level, Tone] = {Level.OK: "good", Level.WARNING: "warning", Level.PROBLEM: "bad"}


def doctor_blocks(result: DoctorResult) -> list[Block]:
    """A line for each look, with the way out beside what is not well."""
    problems, warnings = result.problems, result.warnings
    ending = f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}"
    tone: Tone = "bad" if problems else "warning" if warnings else "strong"
    return [
        table(("", "", "looked at"), map(_look, result.checks), words=range(3), label="Looks"),
        *([] if result.price is None else outlook_blocks(result.price)),
        *([] if result.exposed is None else past_blocks(result.exposed)),
        Paragraph(Span(ending if problems or warnings else "all is well", tone)),
    ]


def _look(finding: Finding) -> tuple[Words, ...]:
    way_out = (Span(f" (try: {finding.way_out})", "muted"),) if finding.way_out else ()
    level = Span(finding.level.value, _TONES[finding.level])
    return level, finding.area, (finding.summary, *way_out)
