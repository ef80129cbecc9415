"""Whether a side's own limits let it begin by an agreement: asked before it signs."""

from __future__ import annotations

from taciturn.errors import BudgetExceeded
from taciturn.jobs.train import TrainingPlan as Prospect
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.results.agreement import OpenedSum
from taciturn.results.outlook import Refusal


def refusals(prospect: Prospect) -> list[Refusal]:
    """Why this side would not begin: its consent, Bob's ledger, Alice's score count."""
    opened = opened_sum(prospect)
    try:
        refused = prospect.outlook().refused
    except BudgetExceeded as problem:
        problem.face = problem.face or prospect.config.face
        refused = Refusal(problem.message, problem.hint)
    unaccepted = [] if refused is None else [refused]
    return unaccepted if opened is None else [*unaccepted, *_too_many(opened)]


def opened_sum(prospect: Prospect) -> OpenedSum | None:
    """The scores of Alice's rows that the peer has, before and after; None at Bob."""
    budget = ScoreBudget.from_config(prospect.config)
    if budget is None:
        return None
    held_out, counts = prospect.tables.held_out, prospect.scores
    this = max(counts.per_row, 0 if held_out is None else counts.per_held_out_row)
    so_far = budget.most_given()
    return OpenedSum(so_far=so_far, this=this, then=so_far + this, limit=budget.limit)


def _too_many(opened: OpenedSum) -> list[Refusal]:
    if opened.limit is None or opened.then <= opened.limit:
        return []
    return [
        Refusal(
            f"the training gives up to {opened.this:,} scores of a row where {opened.so_far:,} "
            f"were given before, and this side's limit is {opened.limit:,}",
            "agree on fewer passes or epochs, or raise scores-per-row in [privacy]",
        )
    ]
