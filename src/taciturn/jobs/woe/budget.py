"""Alice's budget of weight-of-evidence tables: how many of them a partner was given.

A table has, for each bin of her columns, a sum of Bob's labels over its rows. Two tables whose
labels differ in one row tell, by their difference, the bins of that row. A table is charged before
anything of her columns is sent; one that was begun and not finished stays charged, since the
partner may have received it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from taciturn.files import canonical_json
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import Namespace
from taciturn.party.consent.records import Account, Records
from taciturn.party.consent.store import ConsentStore

_TABLE = "table"


@dataclass(frozen=True, slots=True)
class GivenTable:
    """The size of one table."""

    rows: int
    columns: int
    bins: int


@dataclass(frozen=True, slots=True)
class WoeBudget:
    """The tables that a partner was given."""

    namespace: ClassVar[Namespace] = Namespace("woe-tables", "tables", "tables")

    store: ConsentStore
    partner: str
    limit: int

    @classmethod
    def from_config(cls, config: PartyConfig) -> WoeBudget:
        """Alice's budget for this peer."""
        return cls(ConsentStore.from_config(config), config.peer, config.woe.tables)

    def require(self) -> None:
        """Insists that one more table is within the limit (else BudgetExceeded)."""
        with self.store.reading() as records:
            self._within(records)

    def charge(self, table: GivenTable) -> int:
        """Charges the budget for one table before it is sent; returns how many there are with it.

        Nothing is charged on BudgetExceeded.
        """
        with self.store.writing() as records:
            account, number = self._within(records)
            account.write_entry(_TABLE, str(number), canonical_json(asdict(table)))
            return number

    def _within(self, records: Records) -> tuple[Account, int]:
        """The partner's account, and the number of one more table."""
        account = records.account(self.namespace.name, self.partner)
        given = len(account.entries(_TABLE))
        if given >= self.limit:
            raise self.namespace.exceeded(self.partner, given, given + 1, self.limit)
        return account, given + 1
