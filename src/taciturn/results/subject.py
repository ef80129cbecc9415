"""What a result is about: which data, which mechanism, how many rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from taciturn.jobs.align.result import AlignmentResult
from taciturn.jobs.woe.result import WoeResult
from taciturn.results.check import CheckResult
from taciturn.results.compare import Comparison
from taciturn.results.parties import DryRun, PartyRun
from taciturn.results.runs import Runs
from taciturn.results.saved import DemoResult
from taciturn.results.serialise import Result
from taciturn.results.session import SessionAudit
from taciturn.results.study import SimulatedStudy, StudyRun
from taciturn.results.training import TrainingRun
from taciturn.results.woe_audit import WoeAudit

OWN_DATA = "own data"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a result is about; what it does not say is None."""

    data: str | None = None
    mechanism: str | None = None
    rows: int | None = None
    held_out_rows: int | None = None
    columns: Mapping[str, int] = field(default_factory=dict)


def subject_of(result: Result) -> Subject:
    """What a result says of its data and its mechanism; of a kind that is not known, nothing."""
    match result:
        case Runs():
            return _of_training(result.first)
        case DemoResult():
            return _of_training(result.runs[0].first, mechanism=None)
        case Comparison():
            columns = {"alice": result.alice_columns, "bob": result.bob_columns}
            return Subject(result.dataset, None, result.rows_train, result.rows_test, columns)
        case CheckResult():
            return Subject(rows=result.facts.rows, columns={"alice": result.facts.alice_columns})
        case SessionAudit():
            recording = result.recording
            sides = ("alice", "bob") if recording.recorder == "alice" else ("bob", "alice")
            columns = dict(zip(sides, (recording.columns, recording.peer_columns), strict=True))
            return Subject(
                None, recording.mechanism, recording.rows, recording.held_out_rows, columns
            )
        case PartyRun() | DryRun():
            who = result.identity
            columns = {who.role: who.columns}
            return Subject(None, who.mechanism, who.rows, who.held_out_rows, columns)
        case StudyRun():
            who = result.identity
            columns = {who.role: who.columns}
            return Subject(None, who.mechanism, who.rows, who.held_out_rows, columns)
        case SimulatedStudy():
            columns = {"alice": result.alice_columns, "bob": result.bob_columns}
            return Subject(
                result.dataset, result.mechanism, result.rows, result.held_out_rows, columns
            )
        case WoeResult():
            columns = {"alice": len(result.columns)}
            return Subject(result.dataset, rows=result.rows, columns=columns)
        case WoeAudit():
            return Subject(result.dataset, rows=result.rows, columns={"alice": result.columns})
        case AlignmentResult():
            return Subject(rows=result.common)
        case _:
            return Subject()


def _of_training(run: TrainingRun, mechanism: str | None = "") -> Subject:
    columns = {"alice": run.alice_columns, "bob": run.bob_columns}
    named = run.mechanism if mechanism == "" else mechanism
    return Subject(run.dataset, named, run.rows_train, run.rows_test, columns)


def data_name(source: object) -> str:
    """The name of data: a dataset's, or that of an own file without its folder and endings.

    >>> data_name("breast-cancer"), data_name("tables/loans.csv.gz"), data_name(None)
    ('breast-cancer', 'loans', 'own data')
    """
    if not isinstance(source, str) or not source:
        return OWN_DATA
    name = PurePath(source).name
    return name.partition(".")[0] or OWN_DATA
