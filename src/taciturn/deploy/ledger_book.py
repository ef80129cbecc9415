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
from numpy.typing import NDArray

from taciturn.arrays import WordArray
from taciturn.data.ids import RowIds
from taciturn.deploy.book_file import BookFile
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.keep import key_place, state_key
from taciturn.deploy.outlook import planned_ledger
from taciturn.deploy.tables import PartyTables
from taciturn.errors import BudgetExceeded, FileError, counted
from taciturn.faces import Hint
from taciturn.mapped import row_blocks
from taciturn.privacy.events import NonPrivate, PrivacyEvent
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.prices import EVENTS, price
from taciturn.privacy.registry import MECHANISMS
from taciturn.privacy.statement import Statement
from taciturn.privacy.told_quality import release_event
from taciturn.protocol.terms import Terms
from taciturn.results.ledger import LedgerAccount

_TAG_BYTES, _KEY_NAME_BYTES, _TAG = 8, 8, ">u8"
_ROUNDING = 1e-9
_ASSUMPTION = "trainings with one partner add up: basic composition"

Release: TypeAlias = tuple[PrivacyEvent, str]
"""A kind of release, and the flip book whose answers it is; empty where it is of no book."""

Paid: TypeAlias = frozenset[tuple[Release, int]]
"""What a row has paid for, each with how often."""

_Kinds: TypeAlias = NDArray[np.int32]

_NOTHING: Paid = frozenset()
_TOLD: Release = (NonPrivate(), "")


@dataclass(frozen=True, slots=True)
class Spending:
    """What a training is about to release.

    Args:
        rows: Sets of rows, each with the most that is released of every row.
        session: The session's name, charged once; empty in a forecast.
    """

    rows: tuple[tuple[RowIds, Mapping[Release, int]], ...]
    session: str = ""


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows with what they have paid, of which a table has few kinds.

    Args:
        tags: A number for each row, rising.
        kinds: Which of the histories is each row's.
        histories: What rows have paid; some may be no row's.
    """

    tags: WordArray = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)
    kinds: _Kinds = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    histories: tuple[Paid, ...] = ()

    @classmethod
    def of(cls, tags: WordArray, kinds: _Kinds, histories: Iterable[Paid]) -> _Rows:
        """The rows in order; of two with one tag the last counts."""
        order = np.argsort(tags, kind="stable")
        tags, kinds = tags[order], kinds[order]
        if np.any(again := tags[1:] == tags[:-1]):
            last = np.append(~again, [True])
            tags, kinds = tags[last], kinds[last]
        return cls(tags, kinds, tuple(histories))

    def __len__(self) -> int:
        return len(self.tags)

    def kinds_of(self, tags: WordArray) -> _Kinds:
        """The histories of some rows by their numbers; -1 for a row that is not here."""
        if not len(self):
            return np.full(len(tags), -1, np.int32)
        places = np.searchsorted(self.tags, tags)
        np.minimum(places, len(self) - 1, out=places)
        return np.where(self.tags[places] == tags, self.kinds[places], np.int32(-1))

    def paid(self) -> set[Paid]:
        """The histories that rows have."""
        return self.paid_by(self.tags)

    def paid_by(self, tags: WordArray) -> set[Paid]:
        """Those of some rows; nothing is paid by one that is not here."""
        histories = (_NOTHING, *self.histories)
        counts = np.bincount(self.kinds_of(tags) + 1, minlength=len(histories))
        return {histories[kind] for kind in np.flatnonzero(counts)}

    def updated(self, later: _Rows) -> _Rows:
        """These rows and others; what the others say counts."""
        others = later.kinds_of(self.tags) < 0
        histories, kinds = dict[Paid, int](), []
        for rows, kept in ((self, self.kinds[others]), (later, later.kinds)):
            numbers = [histories.setdefault(paid, len(histories)) for paid in rows.histories]
            kinds.append(np.array(numbers, np.int32)[kept])
        tags = np.concatenate([self.tags[others], later.tags])
        return _Rows.of(tags, np.concatenate(kinds), histories)


@dataclass(slots=True)
class _Account:
    """What one partner was told of one label."""

    rows: _Rows = _Rows()
    sessions: list[str] = field(default_factory=list)


_Page: TypeAlias = dict[tuple[str, str], _Account]
"""The accounts of a book, by partner and label column."""


@dataclass(frozen=True, slots=True, repr=False)
class LedgerBook:
    """What was paid, in a file.

    Args:
        file: The file.
        key: 32 secret bytes, kept apart from it; empty where there are none yet.
        partner: The peer's name.
        column: The name of the label's column.
        limit: The most that a label's epsilon may come to in all; None for no limit.
        delta: The probability at which the tighter totals are stated.
    """

    file: BookFile
    key: bytes
    partner: str
    column: str
    limit: float | None
    delta: float

    def require(self, spending: Spending) -> None:
        """Insists that a training is within the limit; nothing is written.

        Raises:
            BudgetExceeded: It is not.
            FileError: The book cannot be read, is altered, or made under another key.
        """
        if self.limit is not None:
            self._require_within(self._account(self._read()), spending)

    def charge(self, spending: Spending) -> None:
        """Adds a training; afterwards its releases may leave.

        Raises:
            BudgetExceeded: It would exceed the limit; nothing was added.
            FileError: The book cannot be read, is altered, or made under another key.
            OutputError: It cannot be written, or is being written by another program.
        """
        with self.file.alone():
            page = self._read()
            account = self._account(page)
            if spending.session in account.sessions:
                return
            self._require_within(account, spending)
            account.rows = account.rows.updated(self._after(account, spending))
            account.sessions.append(spending.session)
            self._write(page)

    def statements(self, spending: Spending) -> tuple[Statement, Statement]:
        """What the rows of a training have paid so far, and will have paid after it.

        Raises:
            FileError: The book cannot be read, is altered, or made under another key.
        """
        account = self._account(self._read())
        after = self._after(account, spending)
        before = account.rows.paid_by(after.tags)
        return self._statement(before), self._statement(after.paid())

    @property
    def trainings(self) -> int:
        """How many trainings with this partner were charged for this label."""
        return len(self._account(self._read()).sessions)

    def accounts(self) -> tuple[LedgerAccount, ...]:
        """Everything in the book.

        Raises:
            FileError: It cannot be read or is altered.
        """
        return tuple(
            LedgerAccount(
                partner=partner,
                label=column,
                rows=len(account.rows),
                trainings=len(account.sessions),
                ledger=self._statement(account.rows.paid()),
            )
            for (partner, column), account in sorted(self._read(any_key=True).items())
        )

    def _account(self, page: _Page) -> _Account:
        return page.setdefault((self.partner, self.column), _Account())

    def _after(self, account: _Account, spending: Spending) -> _Rows:
        """What each row of a training will have paid."""
        known, histories = account.rows, dict[Paid, int]()
        tags, kinds = [], []
        for ids, releases in spending.rows:
            # Most rows of a table have the same history: each is added up once.
            sums = [
                histories.setdefault(_added(paid, releases), len(histories))
                for paid in (_NOTHING, *known.histories)
            ]
            tags.append(self._tags(ids))
            kinds.append(np.array(sums, np.int32)[known.kinds_of(tags[-1]) + 1])
        return _Rows.of(np.concatenate(tags), np.concatenate(kinds), histories)

    def _require_within(self, account: _Account, spending: Spending) -> None:
        if self.limit is None or spending.session in account.sessions:
            return
        after = self._after(account, spending)
        total = self._statement(after.paid()).label_epsilon_total
        if total <= self.limit * (1 + _ROUNDING):
            return
        so_far = self._statement(account.rows.paid_by(after.tags))
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

    def _statement(self, histories: set[Paid]) -> Statement:
        """The figures of the history that cost most."""
        ledger = Ledger(len(histories), _ASSUMPTION, None, self.delta)
        for number, paid in enumerate(histories):
            for (event, _), times in paid:
                ledger.charge(event, np.array([number]), times)
        return ledger.statement()

    def _tags(self, ids: RowIds) -> WordArray:
        """A keyed digest of each id and the column, as a number."""
        column = self.column.encode()
        head = self._hashed(len(column).to_bytes(8, "big") + column, _TAG_BYTES)
        tags = np.empty(len(ids), np.uint64)
        for place, block in row_blocks(tags):
            digests = bytearray()
            for row in ids.series.slice(place.start, len(block)):
                digest = head.copy()
                digest.update(row.encode())
                digests += digest.digest()
            block[:] = np.frombuffer(digests, _TAG)
        return tags

    @property
    def _key_name(self) -> str:
        return self._hashed(b"name", _KEY_NAME_BYTES).hexdigest()

    def _hashed(self, data: bytes, size: int) -> hashlib.blake2b:
        return hashlib.blake2b(data, digest_size=size, key=self.key, person=b"ledger book")

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
                    _parsed(entry["rows"]), list(map(str, entry["sessions"]))
                )
                for entry in record["accounts"]
            }

    def _write(self, page: _Page) -> None:
        accounts = [
            {
                "partner": partner,
                "label": column,
                "sessions": account.sessions,
                "rows": _grouped(account.rows),
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
        config.link.peer,
        config.data.label or "",
        limits.budget_total,
        limits.delta,
    )


def spending(config: PartyConfig, tables: PartyTables, terms: Terms, session: str = "") -> Spending:
    """What a training is about to release of each row.

    Args:
        config: Bob's settings.
        tables: His rows.
        terms: The agreement in use.
        session: The session's name; empty in a forecast.

    Raises:
        BudgetExceeded: The training would end with this error on its way.
        PrivacyError: The flip book is another label's, or of another epsilon.
    """
    planned, flips = planned_ledger(config, tables, terms), terms.mechanism.label_flips
    answers = ""
    if flips is not None:
        # Loaded here: most mechanisms flip nothing.
        from taciturn.deploy.flip_book import flip_book

        answers = flip_book(config, flips, b"").name()
    releases = {
        (event, answers if flips is not None and event == flips.event else ""): times
        for event, times in planned.history(0).items()
        if price(event).label
    }
    if planned.tainted:
        # Labels reach other rows' releases: as good as told.
        releases.setdefault(_TOLD, 1)
    rows: list[tuple[RowIds, Mapping[Release, int]]] = [(tables.train.ids, releases)]
    if tables.held_out is not None and terms.agreement.patience is not None:
        # When Bob stops depends on these labels too.
        rows.append((tables.held_out.ids, {_TOLD: terms.agreement.epochs}))
    elif tables.held_out is not None and terms.agreement.tell_alice == "quality":
        release = release_event(terms.agreement.tell_epsilon)
        rows.append((tables.held_out.ids, {(release, ""): 1}))
    return Spending(tuple(rows), session)


def _added(paid: Paid, releases: Mapping[Release, int]) -> Paid:
    """What a row has paid once these are released too."""
    total = Counter(dict(paid))
    for (event, flip_book), times in releases.items():
        # The same answers again are no second release.
        if not (flip_book and total[event, flip_book]):
            total[event, flip_book] += times
    return frozenset(total.items())


def _grouped(rows: _Rows) -> list[dict[str, Any]]:
    """The rows of each history, one after the other: a table that is trained on has few."""
    return [
        {
            "paid": [
                [event.name, [getattr(event, part.name) for part in fields(event)], flips, times]
                for (event, flips), times in paid
            ],
            "rows": rows.tags[rows.kinds == kind].astype(_TAG).tobytes().hex(),
        }
        for kind, paid in enumerate(rows.histories)
        if kind in rows.kinds
    ]


def _parsed(groups: list[dict[str, Any]]) -> _Rows:
    tags = [np.frombuffer(bytes.fromhex(group["rows"]), _TAG).astype(np.uint64) for group in groups]
    kinds = [np.full(len(part), kind, np.int32) for kind, part in enumerate(tags)]
    histories = (
        frozenset(
            ((_event(name, values), str(flips)), int(times))
            for name, values, flips, times in group["paid"]
        )
        for group in groups
    )
    if not groups:
        return _Rows()
    return _Rows.of(np.concatenate(tags), np.concatenate(kinds), histories)


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
