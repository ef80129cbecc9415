"""The result of ``taciturn demo``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from taciturn.results.serialise import Result
from taciturn.results.subject import Subject
from taciturn_audit.results.runs import AuditResult

if TYPE_CHECKING:
    from taciturn.report.blocks import Block, Page
    from taciturn.results.parts import Part


@dataclass(frozen=True, slots=True)
class DemoResult(Result):
    """Audits of several mechanisms, and where the report on the last of them lies."""

    kind: ClassVar[str] = "demo"
    runs: tuple[AuditResult, ...] = field(repr=False)
    html: str

    @classmethod
    def recognises(cls, record: Mapping[str, Any]) -> bool:
        """Whether the record lists audits beside a page."""
        return "html" in record and isinstance(record.get("runs"), list)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Read each audit, with means computed anew."""
        return cls(tuple(map(AuditResult.of_record, record["runs"])), str(record["html"]))

    @classmethod
    def schemas(cls, shared: dict[str, Any]) -> dict[str, Any]:
        """The schema, which refers to that of an audit."""
        schema = {
            "description": cls.__doc__ or "",
            "type": "object",
            "properties": {
                "runs": {"type": "array", "items": {"$ref": "#/$defs/audit"}},
                "html": {"type": "string"},
            },
            "required": ["runs", "html"],
            "additionalProperties": False,
        }
        return {cls.kind: schema}

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn_audit.report.audit import demo_blocks

        return demo_blocks(self)

    def page(self, made: str = "") -> Page:
        """The report on the last audit."""
        return self.runs[-1].page(made)

    def subject(self) -> Subject:
        """The data of all audits; their mechanisms differ."""
        return replace(self.runs[0].subject(), mechanism=None)

    def parts(self, bare: Part) -> tuple[Part, ...]:
        """One run for each mechanism."""
        audited = [part for audit in self.runs for part in audit.parts(bare)]
        return tuple(
            replace(part, entry=replace(part.entry, part=part.entry.mechanism or ""))
            for part in audited
        )
