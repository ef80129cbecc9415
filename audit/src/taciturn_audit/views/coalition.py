"""View of a coalition: several Alices who pool their knowledge.

Each replays her own program. What they saw in one iteration is put together: their columns stand
side by side, and so do their weights and sums, whose rows are the same. An attack does not notice
that its view is of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.tables import FeatureTable
from taciturn.engine.transcript import Transcript
from taciturn.errors import TranscriptError
from taciturn.protocol.observations import (
    GradientSeen,
    MomentsSeen,
    Observation,
    ResiduesSeen,
    ShareRevealed,
)
from taciturn_audit.views.alice_view import AliceView, Observations

_SIDE_BY_SIDE: dict[type[Observation], tuple[str, ...]] = {
    GradientSeen: ("weights", "gradient"),
    # All receive the same residues.
    ResiduesSeen: ("weights",),
    MomentsSeen: ("table", "product"),
    ShareRevealed: ("weights",),
}
"""Of each kind of observation the arrays of which each has her own columns' part."""


@dataclass(frozen=True)
class PooledView(AliceView):
    """The view of a coalition; an attack gets it as that of one Alice with all their columns.

    ``members`` are in the agreement's order.
    """

    members: tuple[AliceView, ...] = field(default=(), repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Whose view it is."""
        return tuple(name for member in self.members for name in member.names)

    @cached_property
    def observations(self) -> Observations:
        """Observations of the coalition, iteration by iteration."""
        seen = [member.observations for member in self.members]
        if len({len(observed.events) for observed in seen}) > 1:
            raise _apart()
        events = zip(*(observed.events for observed in seen), strict=True)
        weights = np.concatenate([observed.weights for observed in seen])
        return Observations(weights, tuple(_together(same) for same in events))

    def own_scores(self, rows: IndexArray, weights: FloatArray) -> FloatArray:
        """Partial scores of the coalition: each Alice rounds hers before she sends it."""
        widths = [len(member.features.columns) for member in self.members]
        parts = np.split(weights, list(accumulate(widths))[:-1])
        scores = np.zeros(len(rows))
        for member, part in zip(self.members, parts, strict=True):
            scores += member.own_scores(rows, part)
        return scores


def pooled(views: Sequence[AliceView]) -> AliceView:
    """The view of several Alices of one run, in the agreement's order; of one it is her own."""
    first, *further = views
    if not further:
        return first
    for other in further:
        other.features.ids.require_same(first.features.ids, names=(other.names[0], first.names[0]))
    columns = tuple(
        # Two parties may have given the same name to a column.
        f"{view.names[0]}: {name}"
        for view in views
        for name in view.features.columns
    )
    values = np.hstack([view.features.values for view in views])
    return PooledView(
        first.agreement,
        FeatureTable(first.features.ids, columns, values),
        first.entropy,
        Transcript(
            {},
            first.conversation.records,
            further=tuple(other.conversation.records for other in further),
        ),
        members=tuple(views),
    )


def _together(same: Sequence[Observation]) -> Observation:
    first = same[0]
    if {(type(observation), observation.iteration) for observation in same} != {
        (type(first), first.iteration)
    }:
        raise _apart()
    parts: dict[str, Any] = {
        name: np.concatenate([getattr(observation, name) for observation in same], axis=-1)
        for name in _SIDE_BY_SIDE.get(type(first), ())
    }
    return replace(first, **parts)


def _apart() -> TranscriptError:
    return TranscriptError("the recordings of these parties are not of one training")
