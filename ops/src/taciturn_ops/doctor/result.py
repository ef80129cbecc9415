"""Result of ``taciturn doctor``.

**Guarantee.** A finding carries names, sizes and dates, and in an error's words the id of a row
that is wrong; never a key, a label or a value.

**Assumes.** That its maker keeps to it: it is text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from taciturn.errors import TaciturnError, counted
from taciturn.report.blocks import Block, Paragraph, Span, Tone, Words, table
from taciturn.report.training import outlook_blocks
from taciturn.results.cost_preview import Outlook, PastExposure
from taciturn.results.ledger import past_blocks
from taciturn.results.serialise import OMITTED, Result, key
from taciturn.setting_syntax import COMMAND_LINE


class Level(StrEnum):
    """Severity: a problem keeps something from working, a warning does not."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing, its severity, and what to do."""

    area: str
    level: Level
    summary: str = field(metadata=key("what"))
    way_out: str = ""

    @classmethod
    def ok(cls, area: str, summary: str) -> Finding:
        """All is well."""
        return cls(area, Level.OK, summary)

    @classmethod
    def warning(cls, area: str, summary: str, way_out: str) -> Finding:
        """A finding that needs attention but breaks nothing."""
        return cls(area, Level.WARNING, summary, way_out)

    @classmethod
    def problem(cls, area: str, summary: str, way_out: str) -> Finding:
        """A finding that must be corrected."""
        return cls(area, Level.PROBLEM, summary, way_out)

    @classmethod
    def from_error(cls, area: str, error: TaciturnError) -> Finding:
        """A problem in an error's own words.

        >>> from taciturn.errors import ConfigError
        >>> Finding.from_error("data", ConfigError("no id", where="x.csv", hint="add one")).summary
        'no id (x.csv)'
        """
        error.syntax = error.syntax or COMMAND_LINE
        where = f" ({error.where})" if error.where else ""
        return cls.problem(
            area, f"{error.message}{where}", error.hint or "see docs/reference/errors.md"
        )


@dataclass(frozen=True, slots=True)
class DoctorResult(Result):
    """Findings of ``taciturn doctor``."""

    kind: ClassVar[str] = "doctor"
    known_by: ClassVar[str] = "checks"

    version: str
    config: str | None
    problems: int
    warnings: int
    checks: tuple[Finding, ...]
    price: Outlook | None = field(default=None, metadata=OMITTED)
    exposed: PastExposure | None = field(default=None, metadata=OMITTED)

    @classmethod
    def from_findings(
        cls, findings: Sequence[Finding], version: str, config: str | None
    ) -> DoctorResult:
        """Result with the counts of problems and warnings.

        >>> DoctorResult.from_findings([Finding.ok("clock", "it runs")], "1.0", None).problems
        0
        """
        levels = [finding.level for finding in findings]
        problems, warnings = levels.count(Level.PROBLEM), levels.count(Level.WARNING)
        return cls(version, config, problems, warnings, tuple(findings))

    def blocks(self) -> list[Block]:
        """Report blocks for the terminal."""
        problems, warnings = self.problems, self.warnings
        ending = f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}"
        tone: Tone = "bad" if problems else "warning" if warnings else "strong"
        return [
            table(("", "", "finding"), map(_look, self.checks), words=range(3), label="Checks"),
            *([] if self.price is None else outlook_blocks(self.price)),
            *([] if self.exposed is None else past_blocks(self.exposed)),
            Paragraph(Span(ending if problems or warnings else "all checks passed", tone)),
        ]


_TONES: dict[Level, Tone] = {Level.OK: "good", Level.WARNING: "warning", Level.PROBLEM: "bad"}


def _look(finding: Finding) -> tuple[Words, ...]:
    way_out = (Span(f" (try: {finding.way_out})", "muted"),) if finding.way_out else ()
    level = Span(finding.level.value, _TONES[finding.level])
    return level, finding.area, (finding.summary, *way_out)
