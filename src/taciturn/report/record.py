"""JSON: one object, with infinity as text and null for what is not a number."""

from __future__ import annotations

import json
import math
from typing import Any

Record = dict[str, Any]


def to_json(record: Record) -> str:
    """One JSON object.

    >>> print(to_json({"a": float("inf"), "b": float("nan")}))
    {
      "a": "inf",
      "b": null
    }
    """
    return json.dumps(_plain(record), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value
