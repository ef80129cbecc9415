"""What was sent to an MLflow server."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.results.serialise import Result


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """A run on an MLflow server; ``added`` is false where it was there already."""

    name: str
    run_id: str
    added: bool


@dataclass(frozen=True, slots=True)
class ExportResult(Result):
    """What was sent to an MLflow server, and to which experiment."""

    server: str
    experiment: str
    exported: tuple[ExportedRun, ...]
