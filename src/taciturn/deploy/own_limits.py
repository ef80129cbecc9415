"""Whether a side's own limits let it begin by an agreement: asked before it signs."""

from __future__ import annotations

from taciturn.deploy.config import PartyConfig
from taciturn.deploy.outlook import outlook
from taciturn.deploy.score_book import score_book
from taciturn.deploy.tables import PartyTables
from taciturn.engine.exposure import OpenedScores
from taciturn.errors import BudgetExceeded
from taciturn.protocol.terms import Terms
from taciturn.results.agreement import OpenedSum
from taciturn.results.outlook import Refusal


def refusals(config: PartyConfig, tables: PartyTables, terms: Terms) -> list[Refusal]:
    """Why this side would not begin, and what changes it: Bob's ledger, or Alice's count.

    Args:
        config: This side's settings.
        tables: Its rows.
        terms: The agreement in use.
    """
    opened = opened_sum(config, tables, terms)
    if opened is not None:
        return _too_many(opened)
    try:
        refused = outlook(config, tables, terms).refused
    except BudgetExceeded as problem:
        problem.face = problem.face or config.face
        refused = Refusal(problem.message, problem.hint)
    return [] if refused is None else [refused]


def opened_sum(config: PartyConfig, tables: PartyTables, terms: Terms) -> OpenedSum | None:
    """The scores of Alice's rows that the peer has, before and after; None at Bob."""
    book = score_book(config)
    if book is None:
        return None
    held_out = 0 if tables.held_out is None else tables.held_out.rows
    counts = OpenedScores.of(terms, tables.train.rows, held_out)
    this = max(counts.per_row, counts.per_held_out_row if held_out else 0)
    so_far = book.most_given()
    return OpenedSum(so_far=so_far, this=this, then=so_far + this, limit=book.limit)


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
