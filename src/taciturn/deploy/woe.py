"""One side of a weight of evidence between two machines: meets the peer, counts, keeps nothing.

The rows are the training rows of the agreement, under the ids that both sides have for them; no
held-out row is counted. Coins and keys are drawn anew each time, no state is kept, and whoever is
interrupted runs the command again. At Alice every table is charged before it leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from taciturn.crypto.engines import on_engine
from taciturn.crypto.registry import scheme
from taciturn.data.evidence_bins import CutTable, cut_table, default_least, no_bins
from taciturn.data.own import OwnRows, OwnTable, own_rows
from taciturn.data.parts import Columns
from taciturn.data.streaming import ChosenRows
from taciturn.data.tables import LabelTable
from taciturn.deploy.agreed import own_side, peer_keys, require_begun_in_time
from taciturn.deploy.compute import engine_of
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.consent.woe_budget import GivenTable, WoeBudget
from taciturn.deploy.identity import credentials_of
from taciturn.deploy.link import WOE
from taciturn.deploy.session import Meeting, PeerSession
from taciturn.deploy.side import require_agreed_rows, terms_for
from taciturn.deploy.tables import chosen_rows
from taciturn.deploy.way import way_to_peer
from taciturn.engine.callbacks import Callbacks
from taciturn.engine.channel import Endpoints
from taciturn.errors import (
    AgreementError,
    ConfigError,
    LocalProtocolError,
    TaciturnError,
    shown_by,
)
from taciturn.faces import COMMAND_LINE, Hint
from taciturn.numerics.weight_of_evidence import DEFAULT_SMOOTHING, check_smoothing
from taciturn.privacy.sealed import ASSUMPTION
from taciturn.protocol.events import BinsDue, Event
from taciturn.protocol.woe import Counts, WoeTerms
from taciturn.results.woe import (
    ALICE_LEARNS,
    WoeColumn,
    WoeResult,
    WoeTables,
    bob_learns,
    counts_told,
)
from taciturn.rng import KeyedEntropy

if TYPE_CHECKING:
    from taciturn.protocol.alice.woe import ToldColumn

FINISH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class OwnChoice:
    """What a side may choose on its command line; None for what its file says, or the default.

    ``smoothing`` is Bob's: what he adds to both counts of a bin. Alice's are ``min_rows``, the
    least rows of a bin, and ``names``, whether Bob learns what columns and bins are called.
    """

    smoothing: float | None = None
    min_rows: int | None = None
    names: bool | None = None

    def require_own(self, config: PartyConfig) -> None:
        """Refuses what is the other side's to choose."""
        hers = {"min_rows": self.min_rows, "names": self.names}
        foreign = hers if config.role == "bob" else {"smoothing": self.smoothing}
        owner = "Alice" if config.role == "bob" else "Bob"
        for name, value in foreign.items():
            if value is not None:
                raise ConfigError(
                    f"{name.replace('_', '-')} is {owner}'s to choose",
                    where=COMMAND_LINE.place(name),
                    hint=f"leave it out here; {owner} gives it on the other side",
                )
        check_smoothing(self.weight)

    @property
    def weight(self) -> float:
        """The smoothing in use."""
        return DEFAULT_SMOOTHING if self.smoothing is None else self.smoothing


@dataclass(frozen=True, slots=True)
class WoeSide:
    """What one side brings: its rows, and Bob's labels or Alice's columns in bins.

    ``rows`` are the training rows, under the ids that both sides have for them; ``least`` is the
    least rows of a bin.
    """

    rows: ChosenRows = field(repr=False)
    terms: WoeTerms
    labels: LabelTable | None = field(default=None, repr=False)
    cut: CutTable | None = field(default=None, repr=False)
    least: int = 0
    names: bool = False

    @classmethod
    def read(cls, config: PartyConfig, choice: OwnChoice) -> WoeSide:
        """Reads this side's table; BudgetExceeded where the partner has had all its tables."""
        with shown_by(config.face):
            _require_two(config)
            choice.require_own(config)
            require_begun_in_time(config)
            if config.role == "alice":
                _require_allowed(config)
                WoeBudget.from_config(config).require()
            section = config.data
            raw = own_rows(
                config.path(section.file),
                label_column=section.label,
                id_column=section.id,
                table=OwnTable.of(section),
            )
            rows, _, _ = chosen_rows(config, raw.ids)
            require_agreed_rows(config, len(rows.ids))
            side = cls(rows, _terms(config, len(rows.ids)))
            if raw.labels is not None:
                labels = LabelTable(rows.ids, raw.labels.values[rows.rows])
                labels.require_both_classes()
                return replace(side, labels=labels)
            return side._with_bins(config, raw, choice)

    def _with_bins(self, config: PartyConfig, raw: OwnRows[Columns], choice: OwnChoice) -> WoeSide:
        given = choice.min_rows or config.woe.min_rows
        least = default_least(len(self.rows.ids)) if given is None else given
        columns = _columns(config, raw, self.rows)
        cut = cut_table(columns, raw.settings, least, ids=self.rows.ids)
        if not cut.columns:
            raise no_bins(least)
        names = config.woe.names if choice.names is None else choice.names
        return replace(self, cut=cut, least=least, names=names)


def _columns(config: PartyConfig, raw: OwnRows[Columns], rows: ChosenRows) -> Iterator[pl.Series]:
    """Alice's raw columns, as far as an agreement that names columns has them."""
    agreement, listed = config.agreement_file, None
    if agreement is not None:
        listed = own_side(config, agreement, credentials_of(config)).columns
    for name in raw.columns.columns:
        if listed is None or name in listed:
            yield raw.columns[name].gather(rows.rows)


def _require_two(config: PartyConfig) -> None:
    if config.parties:
        raise ConfigError(
            "woe is between Bob and one Alice, and the agreement has several",
            setting="parties",
            hint="write a file without them for each pair, and run woe with one Alice at a time",
        )


def _require_allowed(config: PartyConfig) -> None:
    if not config.woe.allow:
        # In these words it is told to the peer too.
        raise AgreementError(
            "Alice's file does not allow weights of evidence of her columns",
            setting="allow",
            hint=Hint(
                "write {allow} in [woe] if Bob may learn how his labels spread over the bins of "
                "your columns; docs/woe.md says what that tells him",
                allow=True,
            ),
        )


def _terms(config: PartyConfig, rows: int) -> WoeTerms:
    one = config.first
    agreed = terms_for(one, one.alice_columns or 1, rows).agreement.canonical()
    settings = one.settings()
    # Not the agreement's own: a mechanism that encrypts nothing has none there.
    return WoeTerms.of(scheme(settings.scheme), settings.key_bits, agreed)


class WoeParty:
    """One side of a weight of evidence, ready to meet the other."""

    def __init__(self, config: PartyConfig, endpoint: Endpoints, callbacks: Callbacks) -> None:
        self._config, self._observe = config, callbacks.observe
        self._session = PeerSession(config, endpoint, callbacks)
        self._tables: WoeTables | None = None
        # What the labels paid, at Bob.
        self._paid = 0.0

    def run(self, side: WoeSide, choice: OwnChoice) -> WoeResult:
        """Counts with the peer."""
        start = time.perf_counter()
        with engine_of(self._config, self._session.log) as engine:
            terms = replace(side.terms, scheme=on_engine(side.terms.scheme, engine))
            with self._session.meet(WOE) as meeting:
                meeting.connect()
                heard = self._converse(meeting, replace(side, terms=terms))
                meeting.finish(FINISH_SECONDS)
        columns = _weighed(heard, choice.weight) if isinstance(heard, Counts) else heard
        self._session.log("weights of evidence", rows=len(side.rows.ids), columns=len(columns))
        return self._result(side, choice, columns, meeting, time.perf_counter() - start)

    def _converse(self, meeting: Meeting, side: WoeSide) -> tuple[WoeColumn, ...] | Counts:
        """What this side has at the end: Alice what she told, Bob his counts."""
        coins = KeyedEntropy.from_system()
        if side.cut is not None:
            # Each side loads its own programs only.
            from taciturn.protocol.alice.woe import WoeInputs, answer

            memory = self._config.compute.table_memory << 20
            hers = WoeInputs(side.rows.ids, side.cut.columns, side.terms, coins, side.names, memory)
            said = meeting.run(answer(hers), observe=self._counting)
            return tuple(_sized(column, hidden=not side.names) for column in said)
        if side.labels is None:
            raise LocalProtocolError("a side of weights of evidence has labels, or columns")
        from taciturn.privacy.ledger import Ledger
        from taciturn.protocol.bob import woe

        limits = self._config.privacy
        ledger = Ledger(side.labels.rows, ASSUMPTION, limits.budget, limits.delta)
        counts = meeting.run(woe.ask(woe.WoeInputs(side.labels, side.terms, ledger, coins)))
        self._paid = ledger.statement().label_epsilon_total
        return counts

    def _counting(self, event: Event) -> None:
        """Counts Alice's table before it leaves, and passes events on."""
        if isinstance(event, BinsDue):
            budget = WoeBudget.from_config(self._config)
            given = budget.charge(GivenTable(len(event.ids), event.columns, event.bins))
            self._tables = WoeTables(given, budget.limit)
        self._observe(event)

    def _result(
        self,
        side: WoeSide,
        choice: OwnChoice,
        columns: tuple[WoeColumn, ...],
        meeting: Meeting,
        seconds: float,
    ) -> WoeResult:
        alice = side.cut is not None
        hidden = not side.names if alice else _all_hidden(columns)
        sent, received = meeting.traffic.bytes_sent, meeting.traffic.bytes_received
        return WoeResult(
            role=self._config.role,
            peer=self._config.peer,
            rows=len(side.rows.ids),
            columns=columns,
            names_hidden=hidden,
            smoothing=None if alice else choice.weight,
            min_rows=side.least if alice else None,
            scheme=side.terms.scheme.name,
            key_bits=side.terms.key_bits,
            counts_told=counts_told(columns),
            label_epsilon=self._paid,
            assumption=ASSUMPTION,
            alice_learns=ALICE_LEARNS,
            bob_learns=bob_learns(columns, names_hidden=hidden),
            tables=self._tables,
            seconds=seconds,
            bytes_to_alice=received if alice else sent,
            bytes_to_bob=sent if alice else received,
            notes=side.cut.notes if side.cut is not None else (),
        )

    def refuse(self, problem: TaciturnError) -> None:
        """Tells the peer, where it is there, that this side cannot begin."""
        self._session.refuse(WOE, problem)


def _sized(given: ToldColumn, *, hidden: bool) -> WoeColumn:
    """A column as Alice told it, with her own names where those are hidden from Bob."""
    column = given.sized
    own = (given.name, given.labels) if hidden else None
    return WoeColumn.sized(column.name, column.labels, column.rows, own, ordered=column.ordered)


def _weighed(counts: Counts, smoothing: float) -> tuple[WoeColumn, ...]:
    """Bob's columns; what cannot be counts is refused after the last word."""
    counts.require_possible()
    return tuple(
        WoeColumn.counted(
            one.column.name,
            one.column.labels,
            one.column.rows,
            one.ones,
            smoothing,
            ordered=one.column.ordered,
        )
        for one in counts.columns
    )


def _all_hidden(columns: tuple[WoeColumn, ...]) -> bool:
    """Whether Alice told numbers in place of names."""
    return all(column.name.startswith("alice.") and not column.ordered for column in columns)


def weigh(
    config: PartyConfig,
    choice: OwnChoice,
    callbacks: Callbacks,
    read: Callable[[PartyConfig, OwnChoice], WoeSide] = WoeSide.read,
) -> WoeResult:
    """Reads this side's table, meets the peer and counts.

    What ``read`` raises is sent to the peer, where it is there already.
    """
    keys = peer_keys(config)
    try:
        side = read(config, choice)
    except TaciturnError as problem:
        if config.parties:
            raise
        # What keeps us from telling is of less interest than what is told.
        with suppress(TaciturnError), way_to_peer(config, callbacks.announce, keys) as endpoint:
            callbacks.announce(f"aborting, and notifying {config.peer} if it is connected")
            WoeParty(config, endpoint, callbacks).refuse(problem)
        raise
    with way_to_peer(config, callbacks.announce, keys) as endpoint:
        return WoeParty(config, endpoint, callbacks).run(side, choice)
