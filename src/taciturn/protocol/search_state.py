"""State of Bob's search in newton, between two passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.protocol.array_store import (
    ArrayStore,
    LazyArrays,
    bits_of,
    floats_of,
    hex_of,
    integers_loader,
)


@dataclass(frozen=True, slots=True)
class SearchState:
    """State of Bob's search between two passes.

    ``directions`` are those that he still needs, one array a pass, and ``scores`` what his solver
    keeps of their effect. ``held_out`` is what each pass did to Alice's part of the held-out
    scores. ``position`` is where his solver stands. ``opened`` has exact scores, where they are
    tested in the end.
    """

    directions: Sequence[FloatArray] = ()
    scores: Sequence[FloatArray] = ()
    held_out: Sequence[FloatArray] = ()
    position: FloatArray = field(default_factory=lambda: np.empty(0))
    opened: Sequence[IntArray] = ()

    def to_json(self, passes: int, array_store: ArrayStore) -> dict[str, Any]:
        """The state for a file, after this many passes."""
        kinds = {
            "direction": self.directions,
            "scores": self.scores,
            "held-out": self.held_out,
            "opened": [bits_of(values) for values in self.opened],
        }
        references = {
            # The last array is that of the last pass.
            kind: [
                array_store.put(f"{kind}-{number}", values)
                for number, values in enumerate(arrays, start=passes - len(arrays))
            ]
            for kind, arrays in kinds.items()
        }
        return {**references, "position": hex_of(self.position)}

    @classmethod
    def from_json(cls, values: dict[str, Any], array_store: ArrayStore) -> SearchState:
        """Reads it back."""

        def shelved(kind: str) -> LazyArrays:
            return LazyArrays([array_store.get(reference) for reference in values[kind]])

        return cls(
            shelved("direction"),
            shelved("scores"),
            shelved("held-out"),
            floats_of(values["position"]),
            cast(
                "Sequence[IntArray]",
                LazyArrays(
                    [integers_loader(array_store.get(reference)) for reference in values["opened"]]
                ),
            ),
        )
