"""Records that commands printed, read back into the results they were, and their JSON schema.

What kind of result a record is, it does not say: a key that no other kind has tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from taciturn.errors import DataError
from taciturn.jobs.align.result import AlignmentResult
from taciturn.jobs.predict.result import PredictionResult
from taciturn.jobs.woe.result import WoeResult
from taciturn.results.agreement import Proposal, Review, SignedAgreement
from taciturn.results.audit import AuditRun, Membership
from taciturn.results.check import CheckResult
from taciturn.results.compare import Comparison
from taciturn.results.doctor import DoctorResult
from taciturn.results.estimate import Estimate
from taciturn.results.export import ExportResult
from taciturn.results.ledger import ExposureResult, LedgerBookResult
from taciturn.results.model import ModelCard, ModelList, UsedModel
from taciturn.results.model_report import ModelReport
from taciturn.results.parties import DryRun, PartyRun
from taciturn.results.run_list import RunList
from taciturn.results.runs import AuditResult, Runs, TrainingMeans
from taciturn.results.serialise import Result, object_schema, properties, read, refusal
from taciturn.results.session import SessionAudit
from taciturn.results.study import SimulatedStudy, StudyRun
from taciturn.results.training import TrainingRun
from taciturn.results.woe_audit import WoeAudit

# Each kind by the name of its command, with a key that tells it; the first that a record has
# decides.
_KINDS: Mapping[str, tuple[str, type[Result]]] = {
    "model-report": ("judged", ModelReport),
    "audit-session": ("recording", SessionAudit),
    "compare": ("compared", Comparison),
    "doctor": ("checks", DoctorResult),
    "propose": ("proposed_by", Proposal),
    "review": ("reviewed", Review),
    "sign": ("signed_by", SignedAgreement),
    "model-show": ("coefficients", ModelCard),
    "model-use": ("values", UsedModel),
    "model-list": ("models", ModelList),
    "check": ("verdicts", CheckResult),
    "ledger": ("accounts", LedgerBookResult),
    "ledger-alice": ("exposed_sessions", ExposureResult),
    "party-dry-run": ("dry_run", DryRun),
    "align": ("peer_ids", AlignmentResult),
    "predict": ("shared_weights", PredictionResult),
    "study": ("workers", SimulatedStudy),
    "party-study": ("study", StudyRun),
    "party": ("run", PartyRun),
    "estimate": ("iterations", Estimate),
    "woe": ("names_hidden", WoeResult),
    "audit-woe": ("roundings", WoeAudit),
    "runs-list": ("listed", RunList),
    "runs-export": ("exported", ExportResult),
}
_MADE = {name: {"type": "string"} for name in ("version", "command", "audited")}


@dataclass(frozen=True, slots=True)
class DemoResult(Result):
    """Audits of several mechanisms, and where the report on the last of them lies."""

    runs: tuple[AuditResult, ...] = field(repr=False)
    html: str


def load(path: str | Path) -> Result:
    """Read what a command printed with ``--json``; DataError if the file holds no result."""
    try:
        record = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it holds no JSON"
        raise DataError(f"the result cannot be read: {reason}", where=str(path)) from None
    try:
        return of_record(record)
    except DataError as problem:
        raise problem.at(str(path)) from None


def of_record(record: object) -> Result:
    """The result that a record is of, with means computed anew; a DataError says what is wrong."""
    if not isinstance(record, Mapping):
        raise refusal("", "is not an object")
    if "html" in record and isinstance(record.get("runs"), list):
        return DemoResult(tuple(map(audit_of_record, record["runs"])), str(record["html"]))
    if "attacks" in record:
        return audit_of_record(record)
    if "centralised" in record:
        return Runs(*_runs(TrainingRun, record))
    for told_by, kind in _KINDS.values():
        if told_by in record:
            return read(kind, record)
    raise refusal("", "has none of the keys of one")


def kind_of(result: Result) -> str:
    """The kind of a result, by its command: ``train``, ``party-dry-run``; TypeError if none."""
    several: dict[str, type] = {"demo": DemoResult, "audit": AuditResult, "train": Runs}
    for name, kind in (several | {name: kind for name, (_, kind) in _KINDS.items()}).items():
        if isinstance(result, kind):
            return name
    raise TypeError(f"{type(result).__name__} is no result of a command")


def audit_of_record(record: Mapping[str, Any]) -> AuditResult:
    """The audit that a record is of; a DataError says which part is not."""
    return AuditResult(*_runs(AuditRun, record))


def _runs(kind: Any, record: Mapping[str, Any]) -> tuple[Any, ...]:  # noqa: ANN401 - of either kind
    made = [record.get(name) for name in _MADE]
    if not all(value is None or isinstance(value, str) for value in made):
        raise refusal("version, command or audited", "is not a text")
    own = {name: value for name, value in record.items() if name not in _MADE}
    listed = own.get("runs")
    if not isinstance(listed, list):
        return (read(kind, own),), *made
    if len(listed) < 2 or own.get("seeds") != len(listed):
        raise refusal("runs", "does not hold as many as seeds says")
    runs = tuple(read(kind, run, f"runs[{number}]") for number, run in enumerate(listed))
    return runs, *made


def json_schema() -> dict[str, Any]:
    """The JSON schema of every record that a command prints, made from the types."""
    shared: dict[str, Any] = {}
    kinds = {
        "train": object_schema(TrainingRun, shared, **_MADE),
        "train-seeds": _several(TrainingRun, "train", shared),
        "audit": object_schema(AuditRun, shared, **_MADE),
        "audit-seeds": _several(AuditRun, "audit", shared),
        "demo": {
            "description": (DemoResult.__doc__ or ""),
            "type": "object",
            "properties": {
                "runs": {"type": "array", "items": {"$ref": "#/$defs/audit"}},
                "html": {"type": "string"},
            },
            "required": ["runs", "html"],
            "additionalProperties": False,
        },
        **{name: object_schema(kind, shared) for name, (_, kind) in _KINDS.items()},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Results of taciturn",
        "description": "What the commands of taciturn print as JSON, by the command's name.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in kinds],
        "$defs": {**kinds, **dict(sorted(shared.items()))},
    }


def _several(kind: type, name: str, shared: dict[str, Any]) -> dict[str, Any]:
    means, always = properties(TrainingMeans, shared)
    known = properties(kind, shared)[0] | means
    if "membership" in known:
        # A figure that one of the runs has not has no mean.
        optional = {"type": "object", "properties": properties(Membership, shared)[0]}
        known["membership"] = {"anyOf": [optional, {"type": "null"}]}
    several = {
        "seeds": {"type": "integer", "minimum": 2},
        "runs": {"type": "array", "items": {"$ref": f"#/$defs/{name}"}, "minItems": 2},
    }
    return {
        "description": "Several seeds: what all runs share, means, and the runs themselves.",
        "type": "object",
        "properties": {**known, **several, **_MADE},
        "required": [*always, "notes", "seed", *several],
        "additionalProperties": False,
    }
