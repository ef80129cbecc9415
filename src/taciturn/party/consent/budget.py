"""Budgets: what a partner may be given, charged to the consent store before it is sent.

**Guarantee.** What was sent is never more than what was charged, and what was charged never exceeds
the limit, also with two programs at the same time. A charge is on the disk before anything leaves.
A session is charged once, also where it is resumed. What exceeds the limit is refused, and nothing
of it is charged.

**Assumes.** What ``store`` assumes; and that a row keeps its id, and a partner its name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from taciturn.data.ids import RowIds
from taciturn.files import canonical_json
from taciturn.job_registry import Namespace
from taciturn.party.consent.records import Account, Records, Tags
from taciturn.party.consent.store import ConsentStore

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SESSION = "session"
"""The kind of the entries that name charged sessions."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Charge(Generic[A]):
    """Charge for a disclosure to the partner.

    ``rows`` are sets of rows without a common one, each with what every row is charged. The session
    is charged once; it is empty in a forecast, and where there is nothing to resume. ``facts`` are
    recorded with the session.
    """

    rows: tuple[tuple[RowIds, A], ...]
    session: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowBudget(Generic[A]):
    """Disclosures of each row to a partner; ``limit`` is None for no limit."""

    namespace: ClassVar[Namespace]

    store: ConsentStore
    partner: str
    limit: float | None = None

    def require(self, charge: Charge[A]) -> None:
        """Insists that a charge is within the limit (else BudgetExceeded); charges nothing."""
        if self.limited:
            with self.store.reading() as records:
                account = self.account(records)
                if not self._is_charged(account, charge.session):
                    self._apply(records, charge, self._tags(account, charge), write=False)

    def charge(self, charge: Charge[A]) -> None:
        """Charge the budget; nothing is charged on BudgetExceeded.

        A training calls it before the first score or release leaves (``jobs.resumable``).
        """
        with closing(self.store.open()) as opened:
            with opened.transaction(write=False) as records:
                account = self.account(records)
                if self._is_charged(account, charge.session):
                    return
                # Before the lock: with many rows it takes longest, and other programs wait.
                tags = self._tags(account, charge)
            with opened.transaction() as records:
                account = self.account(records)
                if not self._is_charged(account, charge.session):
                    self._apply(records, charge, tags, write=True)
                    if charge.session:
                        account.write_entry(SESSION, charge.session, canonical_json(charge.facts))

    @property
    def limited(self) -> bool:
        """Whether a charge can be refused."""
        return self.limit is not None

    def sessions(self) -> tuple[str, ...]:
        """The sessions that were charged, the oldest first."""
        with self.store.reading() as records:
            return tuple(self.account(records).entries(SESSION))

    def account(self, records: Records) -> Account:
        """The partner's account."""
        return records.account(self.namespace.name, self.partner)

    @abstractmethod
    def _apply(
        self, records: Records, charge: Charge[A], tags: Sequence[Tags], *, write: bool
    ) -> None:
        """Charge rows by their tags, if ``write``; BudgetExceeded beyond the limit."""

    @staticmethod
    def _tags(account: Account, charge: Charge[A]) -> list[Tags]:
        # In order, which every search needs: each row of a set is charged the same.
        return [np.sort(account.tags(ids.series)) for ids, _ in charge.rows]

    @staticmethod
    def _is_charged(account: Account, session: str) -> bool:
        return bool(session) and account.entry(SESSION, session) is not None


@dataclass(frozen=True, slots=True)
class DisclosureBudget:
    """Disclosures to a partner that are counted one by one, such as tables of counts.

    Each is an entry of the kind ``entry``, which records what it was. ``limit`` is on their number.
    """

    namespace: ClassVar[Namespace]
    entry: ClassVar[str] = "disclosure"

    store: ConsentStore
    partner: str
    limit: int

    def require(self) -> None:
        """Require that one more is within the limit (else BudgetExceeded)."""
        with self.store.reading() as records:
            self._within(records)

    def charge(self, facts: DataclassInstance) -> int:
        """Charge the budget for one more before it is sent; returns the number with it.

        Nothing is charged on BudgetExceeded.
        """
        with self.store.writing() as records:
            account, number = self._within(records)
            account.write_entry(self.entry, str(number), canonical_json(asdict(facts)))
            return number

    def _within(self, records: Records) -> tuple[Account, int]:
        """The partner's account, and the number of one more."""
        account = records.account(self.namespace.name, self.partner)
        given = len(account.entries(self.entry))
        if given >= self.limit:
            raise self.namespace.exceeded(self.partner, given, given + 1, self.limit)
        return account, given + 1
