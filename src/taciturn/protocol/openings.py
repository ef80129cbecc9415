"""Openings of an agreement: which rows of the table of openings a training opens, and how often."""

from __future__ import annotations

from typing import Literal, TypeAlias

from taciturn.families.registry import BINOMIAL
from taciturn.privacy.openings import SCORE_NOISE, opens_sums
from taciturn.settings.agreement import Agreement

SCORE_NOISE_TEXT = f"practically exact (noise of up to {SCORE_NOISE.half_width:.5f})"
"""Precision of the scores that Bob receives after training."""
SumKind: TypeAlias = Literal["change of the loss", "count of scores"]


def opened_sums(agreed: Agreement, rows: int) -> tuple[SumKind, ...]:
    """Return the sums over all rows that a ``mutual`` training opens at its end, in their order."""
    if not opens_sums(rows):
        return ()
    # A squared loss is no sum of the sigmoid's waves, and one pass changes no loss.
    if agreed.family != BINOMIAL or agreed.rounds < 2:
        return ("count of scores",)
    return ("change of the loss", "count of scores")
