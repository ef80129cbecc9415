"""Both parties' tables as bytes, for another process on this machine."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from taciturn.data.ids import RowIds
from taciturn.data.prepare import Preparation
from taciturn.data.split import VerticalData
from taciturn.data.tables import FeatureTable, LabelTable

_PARTS = ("alice_train", "bob_train", "alice_test", "bob_test")


def to_bytes(data: VerticalData) -> bytes:
    """Columns and labels; ids become numbers, and what was done to raw columns is left out."""
    stream = io.BytesIO()
    facts = {
        "columns": {name: getattr(data, name).columns for name in _PARTS},
        "held_out": data.held_out,
        "alices": [[name, place.start, place.stop] for name, place in data.alices],
    }
    arrays: dict[str, Any] = {name: getattr(data, name).values for name in _PARTS}
    arrays |= {name: getattr(data, name).values for name in ("labels_train", "labels_test")}
    text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    np.savez(stream, facts=text, **arrays)
    return stream.getvalue()


def of_bytes(content: bytes) -> VerticalData:
    """What ``to_bytes`` gave."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        train, test = (
            RowIds.numbered(len(arrays[name])) for name in ("labels_train", "labels_test")
        )
        tables = {
            name: FeatureTable(
                train if name.endswith("train") else test,
                tuple(facts["columns"][name]),
                arrays[name],
            )
            for name in _PARTS
        }
        return VerticalData(
            **tables,
            labels_train=LabelTable(train, arrays["labels_train"]),
            labels_test=LabelTable(test, arrays["labels_test"]),
            preparation=Preparation(()),
            notes=(),
            held_out=facts["held_out"],
            alices=tuple((name, slice(start, stop)) for name, start, stop in facts["alices"]),
        )
