"""Records that commands printed, read back into the results they were, and their JSON schema.

What kind of result a record is, it does not say: a key that no other kind has tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taciturn import extensions
from taciturn.errors import DataError
from taciturn.results.check import CheckResult
from taciturn.results.doctor import DoctorResult
from taciturn.results.estimate import Estimate
from taciturn.results.export import ExportResult
from taciturn.results.ledger import ExposureResult, LedgerResult
from taciturn.results.model import ModelList, UsedModel
from taciturn.results.run_list import RunList
from taciturn.results.runs import Runs
from taciturn.results.serialise import Result, refusal

# The first that recognises a record decides.
_OURS: tuple[type[Result], ...] = (
    Runs,
    DoctorResult,
    UsedModel,
    ModelList,
    CheckResult,
    LedgerResult,
    ExposureResult,
    Estimate,
    RunList,
    ExportResult,
)


def kinds() -> tuple[type[Result], ...]:
    """All kinds of results, those of other packages first."""
    added: list[Any] = [kind.load() for kind in extensions.installed(extensions.RESULTS)]
    return (*added, *_OURS)


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
    for kind in kinds():
        if kind.recognises(record):
            return kind.of_record(record)
    raise refusal("", "has none of the keys of one")


def json_schema() -> dict[str, Any]:
    """The JSON schema of every record that a command prints, made from the types."""
    shared: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for kind in kinds():
        schemas |= kind.schemas(shared)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Results of taciturn",
        "description": "What the commands of taciturn print as JSON, by the command's name.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in schemas],
        "$defs": {**schemas, **dict(sorted(shared.items()))},
    }
