"""What was sent to an MLflow server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from taciturn.results.serialise import Result

if TYPE_CHECKING:
    from taciturn.report.blocks import Block


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run on an MLflow server; ``added`` is false where it was there already."""

    name: str
    run_id: str
    added: bool


@dataclass(frozen=True, slots=True)
class ExportResult(Result):
    """What was sent to an MLflow server, and to which experiment."""

    kind: ClassVar[str] = "runs-export"
    known_by: ClassVar[str] = "exported"

    server: str
    experiment: str
    exported: tuple[ExportedRun, ...]

    def blocks(self) -> list[Block]:
        """The result as a terminal shows it."""
        from taciturn.report.runs import export_blocks

        return export_blocks(self)
