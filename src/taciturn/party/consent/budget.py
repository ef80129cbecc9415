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
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from taciturn.data.ids import RowIds
from taciturn.errors import BudgetExceeded
from taciturn.files import canonical_json
from taciturn.party.consent.records import Account, Records, Tags, Values
from taciturn.party.consent.store import ConsentStore
from taciturn.setting_syntax import Hint

SESSION = "session"
"""The kind of the entries that name charged sessions."""

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Namespace:
    """One thing that a party counts.

    ``unit`` is what is charged, in the plural; ``setting`` limits it for each partner, and is empty
    where no setting does.
    """

    name: str
    unit: str
    setting: str = ""

    def exceeded(
        self, partner: str, before: float, after: float, limit: float, rows: str = ""
    ) -> BudgetExceeded:
        """The error of a charge that would exceed the limit; ``rows`` says of how many rows."""
        return BudgetExceeded(
            f"{partner} was given {before:g} {self.unit}; with this it would be {after:g}{rows}, "
            f"and the limit is {limit:g}",
            setting=self.setting,
            hint=Hint(
                f"give less, or raise {{{self.setting}}} if this partner may learn more; nothing "
                "was sent"
            ),
        )


@dataclass(frozen=True, slots=True)
class Charge(Generic[A]):
    """What is about to be given to the partner.

    ``rows`` are sets of rows without a common one, each with what every row is charged. The session
    is charged once; it is empty in a forecast, and where there is nothing to resume. ``facts`` are
    recorded with the session.
    """

    rows: tuple[tuple[RowIds, A], ...]
    session: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowBudget(Generic[A]):
    """What a partner was given of each row; ``limit`` is None for no limit."""

    namespace: ClassVar[Namespace]

    store: ConsentStore
    partner: str
    limit: float | None = None

    def require(self, charge: Charge[A]) -> None:
        """Insists that a charge is within the limit (else BudgetExceeded); charges nothing."""
        if self.limit is not None:
            with self.store.reading() as records:
                account = self.account(records)
                if not self._is_charged(account, charge.session):
                    self._apply(account, charge, self._tags(account, charge), write=False)

    def charge(self, charge: Charge[A]) -> None:
        """Charges the budget before anything is sent; nothing is charged on BudgetExceeded."""
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
                    self._apply(account, charge, tags, write=True)
                    if charge.session:
                        account.write_entry(SESSION, charge.session, canonical_json(charge.facts))

    def sessions(self) -> tuple[str, ...]:
        """The sessions that were charged, the oldest first."""
        with self.store.reading() as records:
            return tuple(self.account(records).entries(SESSION))

    def account(self, records: Records) -> Account:
        """The partner's account."""
        return records.account(self.namespace.name, self.partner)

    @abstractmethod
    def _added(self, account: Account, before: Values, amount: A, *, write: bool) -> Values:
        """The values of rows after a charge; BudgetExceeded where it is not within the limit."""

    def _apply(
        self, account: Account, charge: Charge[A], tags: Sequence[Tags], *, write: bool
    ) -> None:
        for of_rows, (_, amount) in zip(tags, charge.rows, strict=True):
            before = account.values(of_rows)
            after = self._added(account, before, amount, write=write)
            if write:
                account.write_values(of_rows, after)

    @staticmethod
    def _tags(account: Account, charge: Charge[A]) -> list[Tags]:
        return [account.tags(ids.series) for ids, _ in charge.rows]

    @staticmethod
    def _is_charged(account: Account, session: str) -> bool:
        return bool(session) and account.entry(SESSION, session) is not None
