"""Openings of an agreement: which rows of the table of openings a training opens, and how often."""

from __future__ import annotations

from typing import Literal, TypeAlias

from taciturn.errors import counted
from taciturn.families.registry import BINOMIAL
from taciturn.privacy.openings import LOSS_CAP, SCORE_NOISE, opens_sums, row_noise
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


def study_sums_text(rows: int, settings: int) -> str:
    """Describe what the sums of a study's settings tell Bob, without a final full stop."""
    noise = row_noise("study sum", rows)
    honest, chosen = (
        noise.bits(moved, settings) for moved in (noise.moved.honest, noise.moved.chosen)
    )
    return (
        "Bob receives no score of any row, and one noisy number per setting: "
        f"{counted(settings, 'sum')} over {rows:,} rows of a loss of at most {LOSS_CAP:g}, with "
        f"Laplace noise of {noise.width:g} rows each, which tell a Bob who knows all other rows "
        f"about {honest:.1g} bits of a row together, or {chosen:.1g} where he chose a column and "
        "the settings against it"
    )
