"""Budgets of a service: rows that are asked for a day, and how often one row is scored.

At Alice a row that is served counts as scored by the served model (``budget``), and as an answer of
a service. At Bob the rows count that callers ask for. Days are those of UTC.

**Assumes.** The clock's date is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np

from taciturn.job_registry import Namespace
from taciturn.party.consent.records import Flags, Records
from taciturn.party.consent.score_budget import ScoreBudget
from taciturn.party.consent.scored_rows import RowOpening, ScoredRows
from taciturn.party.consent.store import OpenStore
from taciturn_ops.serve.declaration import ANSWERS, ASKED

_DAY = "day"
# The value of a row that is counted by day: the day, and how often on that day.
_DAY_SHIFT = 32

ChargeRows: TypeAlias = Callable[[Flags], None]


class Counter(Protocol):
    """What a service counts of rows."""

    def look(self, records: Records, ids: Sequence[str], day: int) -> tuple[Flags, ChargeRows]:
        """The rows that may be counted once more on a day, and what counts some of them."""


@dataclass(frozen=True, slots=True)
class RowCounter:
    """Count and limit of a row's scores for a partner; ``limit`` is None for any number."""

    namespace: Namespace
    who: str = ""
    limit: int | None = None
    daily: bool = False

    def look(self, records: Records, ids: Sequence[str], day: int) -> tuple[Flags, ChargeRows]:
        """The rows below the limit, and what adds one to the counts of some rows."""
        account = records.account(self.namespace.name, self.who)
        tags = account.tags(ids)
        values = account.values(tags)
        start = day << _DAY_SHIFT if self.daily else 0
        # A count of an earlier day is over.
        counts = np.where(values >> _DAY_SHIFT == start >> _DAY_SHIFT, values - start, 0)
        after = start + counts + 1

        def charge(rows: Flags) -> None:
            account.write_values(tags[rows], after[rows])

        allowed = np.ones(len(tags), bool) if self.limit is None else counts < self.limit
        return allowed, charge


@dataclass(frozen=True, slots=True)
class ModelCounter:
    """Scores of rows by one model, in Alice's budget of scores."""

    budget: ScoreBudget
    model: str

    def look(self, records: Records, ids: Sequence[str], day: int) -> tuple[Flags, ChargeRows]:
        """The rows that the budget lets the model score, and what charges some rows."""
        scored = ScoredRows(records, self.budget.partner)
        tags = self.budget.account(records).tags(ids)
        change = scored.change(tags, RowOpening(models=(self.model,)))
        return self.budget.allowed(change), partial(scored.write, change)


class ServiceBudget:
    """Budget of a scoring service, charged before an answer is sent."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store

    def admit(self, who: str, rows: int, limit: int, *, whole: bool = False) -> int:
        """Charges rows that someone asks for today, up to the limit; returns how many.

        With ``whole`` all of them are charged, or none.
        """
        day = _today().isoformat()
        with self._store.transaction() as records:
            account = records.account(ASKED.name, who)
            asked = int(account.entry(_DAY, day) or 0)
            left = max(0, limit - asked)
            admitted = 0 if whole and left < rows else min(rows, left)
            if admitted:
                account.write_entry(_DAY, day, str(asked + admitted))
        return admitted

    def spend(
        self, counters: Sequence[Counter], ids: Sequence[str], *, write: bool = True
    ) -> list[bool]:
        """Charges the rows that every counter allows once more, and returns which; or only looks.

        ``ids`` has each row once.
        """
        day = _today().toordinal()
        with self._store.transaction(write=write) as records:
            looks = [counter.look(records, ids, day) for counter in counters]
            allowed = np.ones(len(ids), bool)
            for within, _ in looks:
                allowed &= within
            if write:
                for _, charge in looks:
                    charge(allowed)
        return [bool(within) for within in allowed]


class PartnerBudget:
    """Alice's limits on what a service gives to her peer; None for any number.

    The scores of ``model`` count with those of trainings and predictions. A row may be in
    ``answers`` answers of services.
    """

    def __init__(
        self,
        budget: ServiceBudget,
        scores: ScoreBudget,
        model: str,
        rows_per_day: int | None,
        answers: int | None = None,
    ) -> None:
        self._budget, self._partner, self._rows_per_day = budget, scores.partner, rows_per_day
        self._counters = (
            ModelCounter(scores, model),
            RowCounter(ANSWERS, self._partner, answers),
        )

    def admit(self, rows: int) -> int:
        """Number of these rows that may still be scored today; they are charged, scored or not."""
        if self._rows_per_day is None:
            return rows
        return self._budget.admit(self._partner, rows, self._rows_per_day)

    def spend(self, ids: Sequence[str], *, write: bool = True) -> list[bool]:
        """Charge rows before their scores are sent, if ``write``; returns which may be sent."""
        return self._budget.spend(self._counters, ids, write=write) if ids else []


def _today() -> date:
    return datetime.now(UTC).date()
