"""Budgets of a service: rows that are asked for a day, and how often one row is scored.

At Alice a row that is served counts as an opened score (``score_budget``), and as an answer of a
service. At Bob the rows count that callers ask for. Days are those of UTC.

**Assumes.** The clock's date is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np

from taciturn.party.consent.budget import Namespace, ScoreBudget
from taciturn.party.consent.store import OpenStore

ASKED = Namespace("asked-rows", "rows today", "rows_per_day")
"""Rows that a caller, or the peer, asks for; an entry for each day."""
ANSWERS = Namespace("answers", "answers of a row")
"""Answers of a service that hold a row."""
DAILY = Namespace("daily-rows", "scores of a row today", "requests_per_row_per_day")
"""How often a row is asked for today, by all callers together."""

_DAY = "day"
# The value of a row that is counted by day: the day, and how often on that day.
_DAY_SHIFT = 32


@dataclass(frozen=True, slots=True)
class RowCounter:
    """Count and limit of a row's scores for a partner; ``limit`` is None for any number."""

    namespace: Namespace
    who: str = ""
    limit: int | None = None
    daily: bool = False


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
        self, counters: Sequence[RowCounter], ids: Sequence[str], *, write: bool = True
    ) -> list[bool]:
        """Charges the rows that every counter allows once more, and returns which; or only looks.

        ``ids`` has each row once.
        """
        day = _today().toordinal()
        with self._store.transaction(write=write) as records:
            allowed, charges = np.ones(len(ids), bool), []
            for counter in counters:
                account = records.account(counter.namespace.name, counter.who)
                tags = account.tags(ids)
                values = account.values(tags)
                start = day << _DAY_SHIFT if counter.daily else 0
                # A count of an earlier day is over.
                counts = np.where(values >> _DAY_SHIFT == start >> _DAY_SHIFT, values - start, 0)
                if counter.limit is not None:
                    allowed &= counts < counter.limit
                charges.append((account, tags, start + counts + 1))
            if write:
                for account, tags, after in charges:
                    account.write_values(tags[allowed], after[allowed])
        return [bool(within) for within in allowed]


class PartnerBudget:
    """Alice's limits on what a service gives to her peer; None for any number.

    Scores count with those of trainings and predictions. A row may be in ``answers`` answers of
    services.
    """

    def __init__(
        self,
        budget: ServiceBudget,
        scores: ScoreBudget,
        rows_per_day: int | None,
        answers: int | None = None,
    ) -> None:
        self._budget, self._partner, self._rows_per_day = budget, scores.partner, rows_per_day
        self._counters = (
            RowCounter(ScoreBudget.namespace, self._partner, scores.limit),
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
