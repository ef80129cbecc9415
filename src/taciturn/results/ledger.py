"""What Bob's labels have cost over time: the content of his ledger book."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.privacy.statement import Statement
from taciturn.results.serialise import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAccount:
    """What one partner was told of one label, over all trainings.

    Args:
        partner: Its name.
        label: The label's column.
        rows: How many rows were trained on.
        trainings: How many trainings there were.
        ledger: The figures of the row that paid most.
    """

    partner: str
    label: str
    rows: int
    trainings: int
    ledger: Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerBookResult(Result):
    """What ``taciturn ledger`` shows; ``budget_total`` is the limit over all trainings."""

    file: str
    budget_total: float | None
    accounts: tuple[LedgerAccount, ...]
    version: str
