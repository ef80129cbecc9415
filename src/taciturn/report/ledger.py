"""What Bob's labels have cost over time, as blocks."""

from __future__ import annotations

from taciturn.report.blocks import Block, Facts, Paragraph, table
from taciturn.report.training import label_epsilon
from taciturn.results.ledger import LedgerAccount, LedgerBookResult

_EMPTY = "No training was charged yet."
_HEADINGS = ("partner", "label", "rows", "trainings", "of a label, in all", "at delta")


def ledger_blocks(result: LedgerBookResult) -> list[Block]:
    """A line for each partner and label."""
    limit = result.budget_total
    facts = {
        "file": result.file,
        "limit": "none is set (budget-total)" if limit is None else f"epsilon {limit:g} in all",
    }
    if not result.accounts:
        return [Facts(facts), Paragraph(_EMPTY)]
    return [Facts(facts), table(_HEADINGS, map(_line, result.accounts), label="Accounts")]


def _line(account: LedgerAccount) -> tuple[str, ...]:
    ledger = account.ledger
    return (
        account.partner,
        account.label,
        f"{account.rows:,}",
        f"{account.trainings:,}",
        label_epsilon(ledger.label_epsilon_total),
        f"{label_epsilon(ledger.label_epsilon_total_delta)} ({ledger.delta:g})",
    )
