"""``LedgerBook``: what trainings on the same labels have cost over time, in a file of Bob's.

One training's ledger does not know of another's, and a label that was released twice has paid
twice. The book adds up, for each partner, label column and row, over all sessions, begun anew or
not; and refuses what would exceed ``[privacy] budget-total``.

A training is charged as a whole, for the most that it can release, before the first release leaves;
resumed, it is not charged again, and one that begins anew is. Flipped labels are paid for once:
the same answers, given to the same partner again, tell nothing new. So they are charged under the
name of the flip book that keeps them; the answers of another book are others, and cost again.

The file (``book_file``) has for each partner and column the sessions that were charged, and the
rows by what they have paid: kinds of release, each with its number. Rows stand in it as keyed
digests of their ids, of 64 bits; the key is the party's state key, which is elsewhere.

**Guarantee.** With ``budget-total`` no label's epsilon exceeds it over all trainings of the book
with one partner, by basic composition. What was released is never more than what was charged, also
by two programs at the same time.

**Assumes.** The file is not deleted, restored from an older copy or used beside another one; the
state key stays; a row keeps its id, a label its column's name and a partner its own. Partners do
not pool what they have: their totals would add up.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np

from taciturn.data.ids import RowIds
from taciturn.deploy.book_file import BookFile
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.keep import key_place, state_key
from taciturn.deploy.outlook import planned_ledger
from taciturn.deploy.tables import PartyTables
from taciturn.deploy.tagged import TaggedRows, Tags, tags_of
from taciturn.errors import BudgetExceeded, FileError, counted
from taciturn.faces import Hint
from taciturn.privacy.events import NonPrivate, PrivacyEvent
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.prices import EVENTS, price
from taciturn.privacy.registry import MECHANISMS
from taciturn.privacy.statement import Statement
from taciturn.privacy.told_quality import release_event
from taciturn.protocol.terms import Terms
from taciturn.results.ledger import LedgerAccount

_KEY_NAME_BYTES = 8
_PERSON = b"ledger book"
_ROUNDING = 1e-9
_ASSUMPTION = "trainings with one partner add up: basic composition"

Release: TypeAlias = tuple[PrivacyEvent, str]
"""A kind of release, and the flip book whose answers it is; empty where it is of no book."""

Paid: TypeAlias = frozenset[tuple[Release, int]]
"""What a row has paid for, each with how often."""

_NOTHING: Paid = frozenset()
_TOLD: Release = (NonPrivate(), "")


@dataclass(frozen=True, slots=True)
class Spending:
    """What a training is about to release: sets of rows, each with the most released of every row.

    The name of the session is charged once; it is empty in a forecast.
    """

    rows: tuple[tuple[RowIds, Mapping[Release, int]], ...]
    session: str = ""


@dataclass(slots=True)
class _Account:
    # Most rows of a table have paid the same: a row has the number of its history. 0 is nothing.
    rows: TaggedRows = field(default_factory=TaggedRows)
    histories: list[Paid] = field(default_factory=lambda: [_NOTHING])
    sessions: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Change:
    account: _Account
    before: set[Paid]
    after: set[Paid]


_Page: TypeAlias = dict[tuple[str, str], _Account]
"""The accounts of a book, by partner and label column."""


@dataclass(frozen=True, slots=True, repr=False)
class LedgerBook:
    """What was paid, in a file.

    ``key`` is 32 secret bytes, kept apart from the file; empty where there are none yet. ``limit``
    is the largest total epsilon of a label, None for no limit; ``delta`` is that of the tighter
    totals.
    """

    file: BookFile
    key: bytes
    partner: str
    column: str
    limit: float | None
    delta: float

    def require(self, spending: Spending) -> None:
        """Insists that a training is within the limit (else BudgetExceeded); nothing is written."""
        if self.limit is not None:
            self._within(self._account(self._read()), spending)

    def charge(self, spending: Spending) -> None:
        """Charges a training before its releases leave; adds nothing on BudgetExceeded."""
        with self.file.alone():
            page = self._read()
            account = self._account(page)
            if spending.session in account.sessions:
                return
            change = self._within(account, spending)
            change.account.sessions.append(spending.session)
            page[self.partner, self.column] = change.account
            self._write(page)

    def statements(self, spending: Spending) -> tuple[Statement, Statement]:
        """What the rows of a training have paid so far, and will have paid after it."""
        change = self._after(self._account(self._read()), spending)
        return self._statement(change.before), self._statement(change.after)

    def charged(self, session: str) -> bool:
        """Whether a session of this name was charged."""
        return session in self._account(self._read()).sessions

    @property
    def trainings(self) -> int:
        """How many trainings with this partner were charged for this label."""
        return len(self._account(self._read()).sessions)

    def accounts(self) -> tuple[LedgerAccount, ...]:
        """Everything in the book."""
        return tuple(
            LedgerAccount(
                partner=partner,
                label=column,
                rows=len(account.rows),
                trainings=len(account.sessions),
                ledger=self._statement(
                    account.histories[code] for code in np.unique(account.rows.codes)
                ),
            )
            for (partner, column), account in sorted(self._read(any_key=True).items())
        )

    def _account(self, page: _Page) -> _Account:
        return page.setdefault((self.partner, self.column), _Account())

    def _after(self, account: _Account, spending: Spending) -> _Change:
        rows, histories = account.rows, list(account.histories)
        numbers = {paid: code for code, paid in enumerate(histories)}
        before: set[Paid] = set()
        after: set[Paid] = set()
        for ids, releases in spending.rows:
            tags = self._tags(ids)
            codes = rows.codes_of(tags)
            changed = np.zeros(len(histories), np.int64)
            for code in np.unique(codes).tolist():
                paid = _added(histories[code], releases)
                if paid not in numbers:
                    numbers[paid] = len(histories)
                    histories.append(paid)
                changed[code] = numbers[paid]
                before.add(histories[code])
                after.add(paid)
            rows = rows.with_codes(tags, changed[codes])
        return _Change(_Account(rows, histories, list(account.sessions)), before, after)

    def _within(self, account: _Account, spending: Spending) -> _Change:
        """The account after a training; BudgetExceeded where it is not within the limit."""
        change = self._after(account, spending)
        if self.limit is None or spending.session in account.sessions:
            return change
        total = self._statement(change.after).label_epsilon_total
        if total <= self.limit * (1 + _ROUNDING):
            return change
        so_far = self._statement(change.before)
        raise BudgetExceeded(
            f"with {self.partner} a label's epsilon is {so_far.label_epsilon_total:g} after "
            f"{counted(len(account.sessions), 'training')}; this one would take it to {total:g}, "
            f"and the limit is {self.limit:g}",
            setting="budget_total",
            hint=Hint(
                "use a mechanism or an epsilon that costs less, or raise {budget_total}; nothing "
                "was sent"
            ),
        )

    def _statement(self, histories: Iterable[Paid]) -> Statement:
        """The figures of the history that cost most."""
        distinct = list(set(histories))
        ledger = Ledger(len(distinct), _ASSUMPTION, None, self.delta)
        for number, paid in enumerate(distinct):
            for (event, _), times in paid:
                ledger.charge(event, np.array([number]), times)
        return ledger.statement()

    def _tags(self, ids: RowIds) -> Tags:
        head = self.column.encode()
        head = len(head).to_bytes(8, "big") + head
        return tags_of(ids, key=self.key, person=_PERSON, head=head)

    @property
    def _key_name(self) -> str:
        digest = hashlib.blake2b(b"name", digest_size=_KEY_NAME_BYTES, key=self.key, person=_PERSON)
        return digest.hexdigest()

    def _read(self, *, any_key: bool = False) -> _Page:
        with self.file.reading() as record:
            if record is None:
                return {}
            if record["key"] != self._key_name and not any_key:
                raise FileError(
                    "the ledger book was made under another state key, so that its rows cannot be "
                    "told apart",
                    where=str(self.file.path),
                    hint=Hint(
                        "restore the key ([state] key); or begin another book with {ledger}, and "
                        "add by hand what taciturn ledger shows of this one",
                        ledger="bob.second-ledger.json",
                    ),
                )
            return {
                (str(entry["partner"]), str(entry["label"])): _Account(
                    *_parsed(entry["rows"]), list(map(str, entry["sessions"]))
                )
                for entry in record["accounts"]
            }

    def _write(self, page: _Page) -> None:
        accounts = [
            {
                "partner": partner,
                "label": column,
                "sessions": account.sessions,
                "rows": _grouped(account),
            }
            for (partner, column), account in page.items()
        ]
        self.file.write({"key": self._key_name, "accounts": accounts})


def ledger_book(config: PartyConfig) -> LedgerBook:
    """Where Bob adds up what his labels have cost; nothing is made here."""
    limits = config.privacy
    # A look must not make a key: without a book none is needed.
    key = state_key(config)[0] if key_place(config)[0].exists() else b""
    return LedgerBook(
        BookFile(
            config.path(limits.ledger),
            "ledger book",
            "without it what the labels have cost is not counted",
        ),
        key,
        config.peer,
        config.data.label or "",
        limits.budget_total,
        limits.delta,
    )


def spending(config: PartyConfig, tables: PartyTables, terms: Terms, session: str = "") -> Spending:
    """What a training is about to release of each row; ``session`` is empty in a forecast."""
    planned = planned_ledger(config, tables, terms)
    releases = releases_of(config, terms, planned)
    rows: list[tuple[RowIds, Mapping[Release, int]]] = [(tables.train.ids, releases)]
    if tables.held_out is not None and terms.agreement.patience is not None:
        # When Bob stops depends on these labels too.
        rows.append((tables.held_out.ids, {_TOLD: terms.agreement.epochs}))
    elif tables.held_out is not None and terms.agreement.tell_alice == "quality":
        release = release_event(terms.agreement.tell_epsilon)
        rows.append((tables.held_out.ids, {(release, ""): 1}))
    return Spending(tuple(rows), session)


def releases_of(
    config: PartyConfig, terms: Terms, planned: Ledger, row: int = 0
) -> dict[Release, int]:
    """What a planned ledger releases of a row, as a book counts it."""
    flips, answers = terms.mechanism.label_flips, ""
    if flips is not None:
        # Loaded here: most mechanisms flip nothing.
        from taciturn.deploy.flip_book import flip_book

        answers = flip_book(config, flips, b"").name()
    releases = {
        (event, answers if flips is not None and event == flips.event else ""): times
        for event, times in planned.history(row).items()
        if price(event).label
    }
    if planned.tainted:
        # Labels reach other rows' releases: as good as told.
        releases.setdefault(_TOLD, 1)
    return releases


def _added(paid: Paid, releases: Mapping[Release, int]) -> Paid:
    total = Counter(dict(paid))
    for (event, flip_book), times in releases.items():
        # The same answers again are no second release.
        if not (flip_book and total[event, flip_book]):
            total[event, flip_book] += times
    return frozenset(total.items())


def _grouped(account: _Account) -> list[dict[str, Any]]:
    """The rows of each history, one after the other: a table that is trained on has few."""
    return [
        {
            "paid": [
                [event.name, [getattr(event, part.name) for part in fields(event)], flips, times]
                for (event, flips), times in account.histories[code]
            ],
            "rows": tags,
        }
        for code, tags in account.rows.groups()
    ]


def _parsed(groups: list[dict[str, Any]]) -> tuple[TaggedRows, list[Paid]]:
    histories = [_NOTHING]
    rows: list[tuple[int, str]] = []
    for group in groups:
        paid = frozenset(
            ((_event(name, values), str(flips)), int(times))
            for name, values, flips, times in group["paid"]
        )
        rows.append((len(histories), str(group["rows"])))
        histories.append(paid)
    return TaggedRows.of_groups(rows), histories


def _event(name: str, values: list[float]) -> PrivacyEvent:
    if name not in EVENTS:
        # One of another package's mechanism, which is known once that is loaded.
        for mechanism in MECHANISMS:
            _ = MECHANISMS[mechanism]
    if name not in EVENTS:
        raise FileError(
            f"the ledger book has releases of the kind {name!s:.40}, which no mechanism here knows",
            hint="install the package that adds it",
        )
    return EVENTS[name](*values)
