"""What MLflow is told of a run: parameters, metrics with their steps, tags. No MLflow in it.

Infinite figures, of which MLflow's stores make other numbers, are tags.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from taciturn.faces import hyphenated
from taciturn.results.manifest import Manifest
from taciturn.results.parts import Part
from taciturn.results.serialise import Result

# MLflow's own limits; what is longer is cut, and the artifacts have all of it.
MOST_PARAMETER, MOST_TAG, MOST_KEY = 6000, 5000, 250
_OTHER = re.compile(r"[^a-z0-9/]+")
MANIFEST_TAG, PART_TAG = "taciturn.manifest", "taciturn.part"


@dataclass(frozen=True, slots=True)
class Point:
    """A metric's value at a step."""

    name: str
    value: float
    step: int = 0


@dataclass(frozen=True, slots=True)
class MlflowRecord:
    """One run as MLflow has it."""

    name: str
    parameters: Mapping[str, str]
    points: tuple[Point, ...]
    tags: Mapping[str, str]


def metric_name(words: str) -> str:
    """A figure's name as MLflow allows it.

    >>> metric_name("model/AUC, held-out"), metric_name("leakage/Alice's values that Bob tells")
    ('model/auc_held_out', 'leakage/alice_s_values_that_bob_tells')
    """
    return _OTHER.sub("_", words.lower()).strip("_")[:MOST_KEY]


def record_of_part(part: Part, *, curves: bool = True) -> MlflowRecord:
    """What MLflow is told of a run; with ``curves``, step by step."""
    entry, made = part.entry, part.manifest
    points = [*_figures(part.values)]
    points += _curves(part.result) if curves else []
    finite = tuple(point for point in points if math.isfinite(point.value))
    infinite = {
        f"taciturn.{point.name}": str(point.value) for point in points if math.isinf(point.value)
    }
    name = f"{entry.name} {entry.part}".rstrip()
    return MlflowRecord(name, _parameters(part), finite, {**_tags(part, made), **infinite})


def _parameters(part: Part) -> dict[str, str]:
    data = part.manifest.data
    facts = {"rows": data.rows, "held-out rows": data.held_out_rows}
    facts |= {f"columns {side}": count for side, count in data.columns.items()}
    known = {hyphenated(name): value for name, value in part.settings.items()}
    known |= {f"data/{name}": value for name, value in {"name": data.name, **facts}.items()}
    return {
        name[:MOST_KEY]: str(value)[:MOST_PARAMETER]
        for name, value in known.items()
        if value is not None
    }


def _tags(part: Part, made: Manifest) -> dict[str, str]:
    entry = part.entry
    digests = {f"digest.{name}": digest for name, digest in made.data.digests.items()}
    tags = {
        "kind": made.kind,
        "version": made.version,
        "command": made.command,
        "mechanism": entry.mechanism,
        "dataset": entry.dataset,
        "verdict": entry.verdict,
        "private": "yes" if made.private else "no",
        "host": f"{made.host.platform}, Python {made.host.python}, {made.host.cores} cores",
        **digests,
    }
    known = {f"taciturn.{name}": value[:MOST_TAG] for name, value in tags.items() if value}
    return {**known, MANIFEST_TAG: made.digest, PART_TAG: entry.part or "whole"}


def _figures(values: Mapping[str, float]) -> Iterator[Point]:
    for name, value in values.items():
        yield Point(metric_name(name), value)


def _curves(result: Result) -> Iterator[Point]:
    for name, curve in result.curves().items():
        for step, value in curve:
            yield Point(metric_name(f"curve/{name}"), value, step)
