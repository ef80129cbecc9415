"""Budgets: what a partner may be given, charged to the consent store before it is sent.

**Guarantee.** What was sent is never more than what was charged, and what was charged never exceeds
the limit, also with two programs at the same time. A charge is on the disk before anything leaves.
A session is charged once, also where it is resumed. What exceeds the limit is refused, and nothing
of it is charged.

**Assumes.** What ``store`` assumes; and that a row keeps its id, and a partner its name.

Alice's budget of opened scores: how many scores of each of her rows a partner was given.

A score is a linear function of a row, and enough of them determine the row
(``taciturn.engine.exposure``). Trainings, held-out rows, predictions and services charge the same
account. A training is charged as a whole, for the most scores that it can open; a prediction and a
service are charged one score a row.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from taciturn.data.ids import RowIds
from taciturn.engine.callbacks import Announce, noop
from taciturn.engine.exposure import OpenedScores
from taciturn.errors import BudgetExceeded
from taciturn.files import canonical_json
from taciturn.party.config import PartyConfig
from taciturn.party.consent.records import Account, Records, Tags, Values
from taciturn.party.consent.store import ConsentStore
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import ExposedSession
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


ScoreCharge: TypeAlias = Charge[int]
"""The number of scores of each row that are about to be opened."""


def opening_facts(terms: Terms, opened: OpenedScores) -> dict[str, Any]:
    """Record of a training: its mechanism, and the most scores of one training row."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "mechanism": terms.agreement.mechanism,
        "scores_per_row": opened.per_row,
    }


@dataclass(frozen=True, slots=True)
class ScoreBudget(RowBudget[int]):
    """The scores of each row that a partner was given."""

    namespace: ClassVar[Namespace] = Namespace("scores", "scores of a row", "scores_per_row")

    limit: int | None = None

    @classmethod
    def from_config(cls, config: PartyConfig, announce: Announce = noop) -> ScoreBudget:
        """Alice's budget for this peer."""
        store = ConsentStore.from_config(config, announce)
        return cls(store, config.peer, config.privacy.scores_per_row)

    def most_given(self) -> int:
        """The most scores of one row that the partner was given so far."""
        with self.store.reading() as records:
            return max(self.account(records).distinct_values(), default=0)

    def exposed_sessions(self) -> tuple[ExposedSession, ...]:
        """The sessions, with any partner, that opened scores of training rows, the oldest first."""
        with self.store.reading() as records:
            listed = [
                ExposedSession(partner=account.name, session=session, **json.loads(facts))
                for account in records.accounts(self.namespace.name)
                for session, facts in account.entries(SESSION).items()
            ]
        return tuple(session for session in listed if session.scores_per_row != 0)

    def _added(self, account: Account, before: Values, amount: int, *, write: bool) -> Values:
        after = before + amount
        over = 0 if self.limit is None else int(np.count_nonzero(after > self.limit))
        if self.limit is not None and over:
            rows, most = f" for {over:,} of {len(before):,} rows", int(before.max())
            raise self.namespace.exceeded(self.partner, most, most + amount, self.limit, rows)
        return after
