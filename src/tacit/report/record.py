"""JSON records: one run's, and the mean of several."""

from __future__ import annotations

import json
import math
from typing import Any

from tacit.audit.runner import Findings

Record = dict[str, Any]


def audit_record(training: Record, findings: Findings) -> Record:
    """A training's record with what the attacks found."""
    return {
        **training,
        "controls": [control.to_dict() for control in findings.controls],
        "attacks": [attack.to_dict() for attack in findings.attacks],
        "skipped": [skipped.to_dict() for skipped in findings.skipped],
        "verdict": findings.verdict,
    }


def mean_record(runs: list[Record]) -> Record:
    """One run as it is; of several the mean of every figure, with ``runs`` beside it.

    >>> mean_record([{"a": 1, "b": "x"}, {"a": 2, "b": "x"}])
    {'a': 1.5, 'b': 'x', 'runs': [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]}
    """
    if len(runs) == 1:
        return dict(runs[0])
    mean: Record = _mean(runs)
    if "seed" in mean:
        mean["seed"] = runs[0]["seed"]
        mean["seeds"] = len(runs)
    return {**mean, "runs": runs}


def _mean(values: list[Any]) -> Any:  # noqa: ANN401 - JSON has no narrower type
    first = values[0]
    if isinstance(first, dict):
        return {key: _mean([value[key] for value in values]) for key in first}
    if isinstance(first, list) and all(len(value) == len(first) for value in values):
        return [_mean([value[at] for value in values]) for at in range(len(first))]
    if all(value == first for value in values):
        return first
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return sum(values) / len(values)
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) / len(numbers) if numbers else first


def to_json(record: Record) -> str:
    """One JSON object; what is not a number is null, as JSON has no NaN."""
    return json.dumps(_plain(record), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
