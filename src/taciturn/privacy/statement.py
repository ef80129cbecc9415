"""What a ledger comes to, in figures: also a party without labels reads and shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """The ledger in figures: of one release, of all of a row's, and of all at a delta.

    ``label_delta_total`` is the delta with which ``label_epsilon_total`` holds: 0, but where a
    model was told with noise.
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
