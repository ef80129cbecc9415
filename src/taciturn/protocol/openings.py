"""Openings of an agreement: which rows of the table of openings a training opens, and how often."""

from __future__ import annotations

from typing import Literal, TypeAlias

from taciturn.families.registry import BINOMIAL
from taciturn.privacy.openings import SCORE_NOISE, opens_sums
from taciturn.protocol.terms import Terms

SCORE_NOISE_TEXT = f"practically exact (noise of up to {SCORE_NOISE.half_width:.5f})"
"""Precision of the scores that Bob receives after training."""
SumKind: TypeAlias = Literal["change of the loss", "count of scores"]


def opened_sums(terms: Terms, rows: int) -> tuple[SumKind, ...]:
    """Return the sums over all rows that a ``mutual`` training opens at its end, in their order.

    The training of a fold opens none where a study judges by sums.
    """
    agreed = terms.agreement
    if not opens_sums(rows) or (terms.summed is not None and terms.summed.fold):
        return ()
    # A squared loss is no sum of the sigmoid's waves, and one pass changes no loss.
    if agreed.family != BINOMIAL or agreed.rounds < 2:
        return ("count of scores",)
    return ("change of the loss", "count of scores")
