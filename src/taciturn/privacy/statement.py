"""Totals of a ledger, which a party without labels reads too."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ExposedColumns:
    """Exposure of Alice's table to Bob in a training: an upper bound if it ends early.

    ``opened_values`` counts all scores, held-out rows included, and in ``mutual`` the sums over all
    training rows that are opened in their place.
    """

    scores_per_row: int
    opened_values: int


@dataclass(frozen=True, slots=True)
class Statement:
    """The ledger in figures: of one release, of all of a row's, and of all at a delta.

    ``label_delta_total`` is the delta with which ``label_epsilon_total`` holds: 0, but where a
    model was told with noise. ``columns`` is the other side's part: what Bob gets of Alice's table.
    """

    claimed_epsilon_per_release: float
    residue_epsilon_per_release: float
    label_epsilon_per_release: float
    releases_per_row: int
    residue_epsilon_total: float
    label_epsilon_total: float
    label_epsilon_total_delta: float
    delta: float
    assumption: str
    label_delta_total: float = 0.0
    columns: ExposedColumns | None = field(default=None, metadata={"omitted": True})
