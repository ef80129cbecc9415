"""Bob's budget of label privacy: what trainings on the same labels have cost over time.

One training's ledger does not know of another's. The budget adds up, for each partner, label column
and row, over all sessions, begun anew or not, by basic composition. A training is charged as a
whole, for the most that it can release. Flipped labels are paid for once, since the same answers
given to the same partner again tell nothing new: they are charged under the name of the set that
holds them (``label_flips``), and the answers of another set cost again.

The value of a row is the number of its history: the releases that it has paid for, each with how
often. Most rows of a table have the same history. Rows are hashed with the party's state key, which
is elsewhere.

**Assumes.** What ``budget`` assumes; the state key stays, and a label column keeps its name.
Partners do not pool what they have: their totals would add up.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

import numpy as np

from taciturn.engine.callbacks import Announce, noop
from taciturn.errors import FileError
from taciturn.job_registry import Namespace
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import SESSION, Charge, RowBudget
from taciturn.party.consent.records import Account, Records, Tags, Values
from taciturn.party.consent.store import ConsentStore
from taciturn.party.state_store import key_place, state_key
from taciturn.privacy.events import NonPrivate, PrivacyEvent, Statement
from taciturn.privacy.ledger import DEFAULT_DELTA, Ledger
from taciturn.privacy.prices import EVENTS, price
from taciturn.privacy.registry import MECHANISMS
from taciturn.protocol.terms import Terms
from taciturn.results.cost_preview import LedgerAccount
from taciturn.setting_syntax import Hint

_HISTORY, _FACT, _KEY = "history", "fact", "key"
_ROUNDING = 1e-9
_ASSUMPTION = "trainings with one partner add up: basic composition"

Release: TypeAlias = tuple[PrivacyEvent, str]
"""A kind of release, and the set of flipped labels that it gives; empty where it gives none."""

Paid: TypeAlias = frozenset[tuple[Release, int]]
"""What a row has paid for, each with how often."""

LabelCharge: TypeAlias = Charge[Mapping[Release, int]]
"""The most that is about to be released of each row."""

_TOLD: Release = (NonPrivate(), "")


@dataclass(frozen=True, slots=True, repr=False)
class LabelBudget(RowBudget[Mapping[Release, int]]):
    """What labels have paid to a partner.

    ``key`` is 32 secret bytes, kept apart from the store; empty where there are none yet.
    ``limit`` is the largest total epsilon of a label; ``delta`` is that of the tighter totals.
    """

    namespace: ClassVar[Namespace] = Namespace("labels", "epsilon of a label", "budget_total")

    column: str = ""
    key: bytes = b""
    delta: float = DEFAULT_DELTA

    @classmethod
    def from_config(cls, config: PartyConfig, announce: Announce = noop) -> LabelBudget:
        """Bob's budget for this peer and his label; nothing is created here."""
        # A look must not make a key: without a store none is needed.
        key = state_key(config)[0] if key_place(config)[0].exists() else b""
        limits = config.privacy
        return cls(
            ConsentStore.from_config(config, announce),
            # Several Alices are one partner, in whatever order the agreement names them.
            ", ".join(sorted(config.peers)),
            limits.budget_total,
            config.data.label or "",
            key,
            limits.delta,
        )

    def statements(self, charge: LabelCharge) -> tuple[Statement, Statement]:
        """Privacy cost of the rows of a training, before and after it."""
        before, after = set[Paid](), set[Paid]()
        with self.store.reading() as records:
            account = self.account(records)
            histories = _histories(account)
            for ids, releases in charge.rows:
                numbers = np.unique(account.values(account.tags(ids.series)))
                paid = [histories[number] for number in numbers.tolist()]
                before.update(paid)
                after.update(_paid_after(history, releases) for history in paid)
        return self._statement(before), self._statement(after)

    def accounts(self) -> tuple[LedgerAccount, ...]:
        """Disclosures of every label to every partner, under any key."""
        listed = []
        with self.store.reading() as records:
            for account in records.accounts(self.namespace.name):
                partner, column = json.loads(account.name)
                histories, rows = _histories(account), account.distinct_values()
                listed.append(
                    LedgerAccount(
                        partner=partner,
                        label=column,
                        rows=sum(rows.values()),
                        trainings=len(account.entries(SESSION)),
                        ledger=self._statement(histories[number] for number in rows),
                    )
                )
        return tuple(sorted(listed, key=lambda entry: (entry.partner, entry.label)))

    def account(self, records: Records) -> Account:
        """The account of the partner and the label; FileError where it has another key."""
        name = json.dumps([self.partner, self.column])
        account = records.account(self.namespace.name, name, self.key)
        if account.entry(_FACT, _KEY) not in (None, key_name(self.key)):
            raise FileError(
                "what the labels have cost was charged under another state key, so that rows "
                "cannot be told apart",
                where=str(records.path),
                hint=Hint(
                    "restore the key ([state] key); or begin another file with {consent}, and add "
                    "by hand what taciturn ledger shows of this one",
                    consent="bob.second-consent.sqlite",
                ),
            )
        return account

    def _apply(
        self, records: Records, charge: LabelCharge, tags: Sequence[Tags], *, write: bool
    ) -> None:
        account = self.account(records)
        for of_rows, (_, amount) in zip(tags, charge.rows, strict=True):
            before = account.values(of_rows)
            after = self._added(account, before, amount, write=write)
            if write:
                account.write_values(of_rows, after)

    def _added(
        self, account: Account, before: Values, amount: Mapping[Release, int], *, write: bool
    ) -> Values:
        histories = _histories(account)
        numbers, places = np.unique(before, return_inverse=True)
        former = [histories[number] for number in numbers.tolist()]
        paid = [_paid_after(history, amount) for history in former]
        self._require_within(former, paid)
        if not write:
            return before
        account.write_entry(_FACT, _KEY, key_name(self.key))
        known = {history: number for number, history in histories.items() if number}
        for history in paid:
            if history not in known:
                known[history] = len(known) + 1
                account.write_entry(_HISTORY, str(known[history]), _text(history))
        return np.array([known[history] for history in paid], np.int64)[places]

    def _require_within(self, before: Iterable[Paid], after: Iterable[Paid]) -> None:
        if self.limit is None:
            return
        total = self._statement(after).label_epsilon_total
        if total > self.limit * (1 + _ROUNDING):
            so_far = self._statement(before).label_epsilon_total
            raise self.namespace.exceeded(self.partner, so_far, total, self.limit)

    def _statement(self, histories: Iterable[Paid]) -> Statement:
        """The figures of the history that cost most."""
        distinct = list(set(histories))
        ledger = Ledger(len(distinct), _ASSUMPTION, None, self.delta)
        for number, paid in enumerate(distinct):
            for (event, _), times in paid:
                ledger.charge(event, np.array([number]), times)
        return ledger.statement()


def key_name(key: bytes) -> str:
    """Name of a state key that does not reveal the key."""
    return hashlib.blake2b(b"name", digest_size=8, key=key, person=b"consent store").hexdigest()


def releases_of(
    config: PartyConfig, terms: Terms, planned: Ledger, row: int = 0
) -> dict[Release, int]:
    """Releases of a row in a planned ledger, as the budget counts them."""
    flips, answers = terms.mechanism.label_flips, ""
    if flips is not None:
        # Loaded here: most mechanisms flip nothing.
        from taciturn.party.consent.label_flips import LabelFlipStore

        answers = LabelFlipStore.from_config(config, flips, b"").name()
    releases = {
        (event, answers if flips is not None and event == flips.event else ""): times
        for event, times in planned.history(row).items()
        if price(event).label
    }
    if planned.tainted:
        # Labels reach other rows' releases: as good as told.
        releases.setdefault(_TOLD, 1)
    return releases


def _paid_after(paid: Paid, releases: Mapping[Release, int]) -> Paid:
    total = Counter(dict(paid))
    for (event, flips), times in releases.items():
        # The same answers again are no second release.
        if not (flips and total[event, flips]):
            total[event, flips] += times
    return frozenset(total.items())


def _histories(account: Account) -> dict[int, Paid]:
    """The histories of an account by their numbers; 0 is that of a row that was never charged."""
    histories: dict[int, Paid] = {0: frozenset()}
    for number, text in account.entries(_HISTORY).items():
        histories[int(number)] = frozenset(
            ((_event(name, values), flips), times)
            for name, values, flips, times in json.loads(text)
        )
    return histories


def _text(paid: Paid) -> str:
    return json.dumps(
        [
            [event.name, [getattr(event, field.name) for field in fields(event)], flips, times]
            for (event, flips), times in paid
        ]
    )


def _event(name: str, values: list[float]) -> PrivacyEvent:
    if name not in EVENTS:
        # One of another package's mechanism, which is known once that is loaded.
        for mechanism in MECHANISMS:
            _ = MECHANISMS[mechanism]
    if name not in EVENTS:
        raise FileError(
            f"labels have paid for a release of the kind {name!s:.40}, which no mechanism here "
            "knows",
            hint="install the package that adds it",
        )
    return EVENTS[name](*values)
