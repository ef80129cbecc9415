"""The result of ``counts``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taciturn.results.serialise import Result

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsResult(Result):
    """How often each value of a column occurs, on either side."""

    kind: ClassVar[str] = "counts"
    known_by: ClassVar[str] = "counted_column"

    role: str
    peer: str
    counted_column: str
    counts: dict[str, int]

    def blocks(self) -> list[Block]:
        """The counts as a table, the most frequent value first."""
        # Loaded here: with --json nothing is rendered.
        from taciturn.report.blocks import Paragraph, table

        title = f"{self.role} with {self.peer}: values of {self.counted_column}"
        ranked = sorted(self.counts.items(), key=lambda item: -item[1])
        rows = [(value, f"{count:,}") for value, count in ranked]
        return [Paragraph(title, "strong"), table(("value", "rows"), rows, label=title)]
