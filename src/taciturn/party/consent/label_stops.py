"""Count of the stops for labels that each partner has seen at Bob's side.

A partner who chooses the rows learns something about their labels where Bob's side does not begin
because of them, and where it does: with a rule that asks for twenty labels of each class, fourteen
sessions find a set of rows that is one short, and then each session tells a label. The message is
the same for every cause (``party.session``), and the stops are counted: after two, Bob's side does
not begin with this partner, whatever its labels are, until Bob's own command clears the count. So
the third stop needs his command.

**Guarantee.** A stop is on the disk before the partner is told that this side does not begin.

**Assumes.** What ``budget`` assumes of the store. Bob looks at his labels before he clears.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import BudgetExceeded, LabelValueError, MissingValueError, TableError
from taciturn.party.config import PartyConfig
from taciturn.party.consent.store import ConsentStore
from taciturn.results.cost_preview import LabelStopsAccount
from taciturn.setting_syntax import Hint

MOST_STOPS = 2
"""So many stops, and Bob's side does not begin with this partner until his command."""

# A label that is missing tells of its row too; so may another value of Bob's that is.
_COUNTED = (LabelValueError, MissingValueError)

_NAMESPACE, _KIND, _SINCE, _IN_ALL = "label-stops", "stops", "since", "in all"


@dataclass(frozen=True, slots=True)
class LabelStops:
    """Stops for labels that a partner has seen; ``partner`` is the name of the peer or peers."""

    store: ConsentStore
    partner: str

    @classmethod
    def from_config(cls, config: PartyConfig, announce: Announce = noop) -> LabelStops:
        """The stops with the peers of Bob's file; nothing is created here."""
        return cls(ConsentStore.from_config(config, announce), ", ".join(sorted(config.peers)))

    def count(self) -> int:
        """Stops since Bob's last command."""
        with self.store.reading() as records:
            account = records.account(_NAMESPACE, self.partner)
            return int(account.entry(_KIND, _SINCE) or 0)

    def charge(self) -> None:
        """Count one stop, on the disk."""
        with self.store.writing() as records:
            account = records.account(_NAMESPACE, self.partner)
            for name in (_SINCE, _IN_ALL):
                account.write_entry(_KIND, name, str(int(account.entry(_KIND, name) or 0) + 1))

    def clear(self) -> None:
        """Begin to count anew; the number in all stays."""
        if self.count():
            with self.store.writing() as records:
                records.account(_NAMESPACE, self.partner).write_entry(_KIND, _SINCE, "0")

    def require_few(self) -> None:
        """Raise BudgetExceeded where the partner has seen the last stop that it may."""
        count = self.count()
        if count >= MOST_STOPS:
            raise BudgetExceeded(
                f"this side has stopped {count} times because of its labels, and {self.partner} "
                "may learn of labels by choosing rows",
                setting="begin_anyway",
                hint=Hint(
                    "compare the rows of the last sessions with what was agreed on; if they are "
                    "in order, {begin_anyway} counts anew and begins",
                    begin_anyway=True,
                ),
            )

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count an error of labels that ends the block, before it passes on."""
        self.require_few()
        try:
            yield
        except _COUNTED:
            self.charge()
            raise
        except TableError as problem:
            if any(isinstance(one, _COUNTED) for one in problem.problems):
                self.charge()
            raise

    def accounts(self) -> tuple[LabelStopsAccount, ...]:
        """Stops of every partner."""
        with self.store.reading() as records:
            return tuple(
                LabelStopsAccount(
                    partner=account.name,
                    stops=int(account.entry(_KIND, _SINCE) or 0),
                    in_all=int(account.entry(_KIND, _IN_ALL) or 0),
                )
                for account in sorted(records.accounts(_NAMESPACE), key=lambda one: one.name)
            )
