"""``WoeJob``: one side of a weight of evidence.

The rows are the training rows of the agreement, under the ids that both sides have for them; no
held-out row is counted. Entropy and keys are drawn anew each time and no state is kept: after an
interruption both sides run the command again. Alice's budget is charged before a table is sent.

A table has, for each bin of her columns, a sum of Bob's labels over its rows. Two tables whose
labels differ in one row tell, by their difference, the bins of that row. A table is charged before
anything of her columns is sent; one that was begun and not finished stays charged, since the
partner may have received it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import polars as pl

from taciturn.crypto.base import DEFAULT_TABLE_MEMORY
from taciturn.crypto.registry import on_engine, scheme
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import ChosenRows
from taciturn.data.user_table import UserRows
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import AgreementError, ConfigError, rendering_errors_as
from taciturn.jobs.base import Consent, Job, SessionFacts, Side
from taciturn.party.agreement_check import own_side, require_begun_in_time
from taciturn.party.compute import engine_of
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import DisclosureBudget
from taciturn.party.consent.store import ConsentStore
from taciturn.party.credentials import credentials_of
from taciturn.party.log import Log
from taciturn.party.tables import chosen_rows, raw_table
from taciturn.party.training_inputs import require_agreed_rows, terms_for
from taciturn.privacy.sealed import ASSUMPTION
from taciturn.protocol.messages import Role
from taciturn.protocol.steps import Program
from taciturn.rng import Entropy
from taciturn.setting_syntax import COMMAND_LINE, Hint
from taciturn_risk.woe.bins import CutTable, cut_table, default_least, no_bins
from taciturn_risk.woe.declaration import TABLES, WEIGHT_OF_EVIDENCE
from taciturn_risk.woe.result import WoeColumn, WoeResult, WoeTables, woe_result
from taciturn_risk.woe.section import WoeSection
from taciturn_risk.woe.terms import BinsDue, Counts, WoeTerms
from taciturn_risk.woe.weights import DEFAULT_SMOOTHING, check_smoothing

if TYPE_CHECKING:
    from taciturn.privacy.ledger import Ledger
    from taciturn_risk.woe.alice import DisclosedColumn


@dataclass(frozen=True, slots=True)
class GivenTable:
    """The size of one table."""

    rows: int
    columns: int
    bins: int


@dataclass(frozen=True, slots=True)
class WoeBudget(DisclosureBudget):
    """The tables that a partner was given."""

    namespace: ClassVar = TABLES
    entry: ClassVar = "table"

    @classmethod
    def from_config(cls, config: PartyConfig) -> WoeBudget:
        """Alice's budget for this peer."""
        limit = config.section(WoeSection).tables
        return cls(ConsentStore.from_config(config), config.peer, limit)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WoeOptions:
    """Options that are not settings; None takes the party file's value, or the default.

    ``smoothing`` is Bob's: what he adds to both counts of a bin. Alice's are ``min_rows``, the
    least rows of a bin, and ``share_names``, whether Bob learns what columns and bins are called.
    """

    smoothing: float | None = None
    min_rows: int | None = None
    share_names: bool | None = None

    def __post_init__(self) -> None:
        check_smoothing(self.effective_smoothing)
        if self.min_rows is not None and self.min_rows < 1:
            raise ConfigError(
                f"invalid minimum of {self.min_rows} rows per bin",
                setting="min_rows",
                hint=Hint("use {min_rows}, say", min_rows=50),
            )

    @property
    def effective_smoothing(self) -> float:
        """The smoothing in use."""
        return DEFAULT_SMOOTHING if self.smoothing is None else self.smoothing

    def least(self, rows: int, configured: int | None = None) -> int:
        """The least rows of a bin: this option, else the file's, else the default."""
        return self.min_rows or configured or default_least(rows)

    def require_own(self, role: Role) -> None:
        """Refuse the other side's options."""
        alices = {"min_rows": self.min_rows, "share_names": self.share_names}
        foreign, owner = (
            (alices, "Alice") if role == "bob" else ({"smoothing": self.smoothing}, "Bob")
        )
        for name, value in foreign.items():
            if value is not None:
                raise ConfigError(
                    f"{name.replace('_', '-')} is {owner}'s to choose",
                    where=COMMAND_LINE.place(name),
                    hint=f"leave it out here; {owner} gives it on the other side",
                )


@dataclass(frozen=True, slots=True)
class WoeJob(Job[WoeResult]):
    """Weight of evidence between Bob and one Alice."""

    options: WoeOptions = WoeOptions()
    purpose = WEIGHT_OF_EVIDENCE
    reads_labels = True

    def prepare(self, config: PartyConfig) -> FeatureSide | LabelSide:
        """Read this side's table; BudgetExceeded where no table is left for the partner."""
        with rendering_errors_as(config.syntax):
            _require_two(config)
            self.options.require_own(config.role)
            require_begun_in_time(config)
            return self._labels(config) if config.role == "bob" else self._columns(config)

    def _labels(self, config: PartyConfig) -> LabelSide:
        # Only Bob loads what counts the privacy loss of labels.
        from taciturn.privacy.ledger import Ledger

        raw, rows, terms = _training_rows(config)
        if raw.labels is None:
            raise ConfigError("Bob's file names no label column", setting="label")
        labels = raw.labels.take(rows.rows, rows.ids)
        labels.require_classes()
        limits = config.privacy
        ledger = Ledger(labels.rows, ASSUMPTION, limits.budget, limits.delta)
        return LabelSide(terms, labels, ledger, self.options.effective_smoothing)

    def _columns(self, config: PartyConfig) -> FeatureSide:
        _require_allowed(config)
        budget = WoeBudget.from_config(config)
        budget.require()
        raw, rows, terms = _training_rows(config)
        section, shared = config.section(WoeSection), self.options.share_names
        least = self.options.least(len(rows.ids), section.min_rows)
        cut = cut_table(_agreed_columns(config, raw, rows), raw.settings, least, ids=rows.ids)
        if not cut.columns:
            raise no_bins(least)
        names = section.share_names if shared is None else shared
        memory = config.compute.table_memory << 20
        return FeatureSide(terms, rows.ids, cut, least, names, memory, budget)


@dataclass(slots=True)
class _WoeSide(Side[T, WoeResult]):
    terms: WoeTerms

    @contextmanager
    def at_work(self, config: PartyConfig, log: Log) -> Iterator[None]:
        """Compute on the engine that the party's file names."""
        with engine_of(config, log) as engine:
            self.terms = replace(self.terms, scheme=on_engine(self.terms.scheme, engine))
            yield


@dataclass(slots=True)
class FeatureSide(_WoeSide["tuple[DisclosedColumn, ...]"]):
    """Alice's columns in bins of at least ``least`` rows; ``memory`` is for her encoded table."""

    ids: RowIds = field(repr=False)
    cut: CutTable = field(repr=False)
    least: int = 0
    names: bool = False
    memory: int = DEFAULT_TABLE_MEMORY
    budget: WoeBudget | None = None
    tables: WoeTables | None = None

    def begin(self, log: Log, callbacks: Callbacks) -> None:
        """Let the budget log that it waits for another program."""
        if self.budget is not None:
            store = replace(self.budget.store, announce=log)
            self.budget = replace(self.budget, store=store)

    @property
    def consent(self) -> Consent[BinsDue]:
        """Charge for one table, before her first column is sent."""
        return Consent(BinsDue, self._charge)

    def _charge(self, event: BinsDue) -> None:
        if self.budget is not None:
            given = self.budget.charge(GivenTable(len(event.ids), event.columns, event.bins))
            self.tables = WoeTables(given, self.budget.limit)

    def program(self, entropy: Entropy) -> Program[tuple[DisclosedColumn, ...]]:
        """Sum Bob's encrypted labels in each bin."""
        # Each side loads its own programs only.
        from taciturn_risk.woe.alice import FeatureInputs, answer

        columns = self.cut.columns
        return answer(
            FeatureInputs(self.ids, columns, self.terms, entropy, self.names, self.memory)
        )

    def conclude(self, outcome: tuple[DisclosedColumn, ...], session: SessionFacts) -> WoeResult:
        """Alice's result: what Bob learnt, and no count."""
        columns = tuple(_sized(column, hidden=not self.names) for column in outcome)
        session.log("weights of evidence", rows=len(self.ids), columns=len(columns))
        return woe_result(
            columns,
            self.terms,
            role=session.role,
            peer=session.peer,
            rows=len(self.ids),
            names_hidden=not self.names,
            min_rows=self.least,
            label_epsilon=0.0,
            tables=self.tables,
            seconds=session.seconds,
            bytes_to_alice=session.traffic.bytes_received,
            bytes_to_bob=session.traffic.bytes_sent,
            notes=self.cut.notes,
        )


@dataclass(slots=True)
class LabelSide(_WoeSide[Counts]):
    """Bob's labels, and the ledger of what they pay."""

    labels: LabelTable = field(repr=False)
    ledger: Ledger = field(repr=False)
    smoothing: float = DEFAULT_SMOOTHING

    def program(self, entropy: Entropy) -> Program[Counts]:
        """Request the sums of Bob's labels in Alice's bins."""
        # Each side loads its own programs only.
        from taciturn_risk.woe.bob import LabelInputs, ask

        return ask(LabelInputs(self.labels, self.terms, self.ledger, entropy))

    def conclude(self, outcome: Counts, session: SessionFacts) -> WoeResult:
        """Bob's result; sums that cannot be counts are refused."""
        outcome.require_possible()
        columns = weighed(outcome, self.smoothing)
        session.log("weights of evidence", rows=self.labels.rows, columns=len(columns))
        return woe_result(
            columns,
            self.terms,
            role=session.role,
            peer=session.peer,
            rows=self.labels.rows,
            names_hidden=_all_hidden(columns),
            smoothing=self.smoothing,
            label_epsilon=self.ledger.statement().label_epsilon_total,
            seconds=session.seconds,
            bytes_to_alice=session.traffic.bytes_sent,
            bytes_to_bob=session.traffic.bytes_received,
        )


def weighed(counts: Counts, smoothing: float) -> tuple[WoeColumn, ...]:
    """The columns with the weights of evidence of their bins."""
    return tuple(
        WoeColumn.counted(
            column.column.name,
            column.column.labels,
            column.column.rows,
            column.ones,
            smoothing,
            ordered=column.column.ordered,
        )
        for column in counts.columns
    )


def _require_two(config: PartyConfig) -> None:
    if config.parties:
        raise ConfigError(
            "woe is between Bob and one Alice, and the agreement has several",
            setting="parties",
            hint="write a file without them for each pair, and run woe with one Alice at a time",
        )


def _require_allowed(config: PartyConfig) -> None:
    if not config.section(WoeSection).allow:
        # The peer receives the same words.
        raise AgreementError(
            "Alice's file does not allow weights of evidence of her columns",
            setting="allow",
            hint=Hint(
                "write {allow} in [woe] if Bob may learn how his labels spread over the bins of "
                "your columns; risk/docs/woe.md says what that tells him",
                allow=True,
            ),
        )


def _training_rows(config: PartyConfig) -> tuple[UserRows, ChosenRows, WoeTerms]:
    raw = raw_table(config)
    rows, _, _ = chosen_rows(config, raw.ids)
    require_agreed_rows(config, len(rows.ids))
    return raw, rows, _terms(config, len(rows.ids))


def _terms(config: PartyConfig, rows: int) -> WoeTerms:
    session_config = config.first
    agreed = terms_for(
        session_config, session_config.alice_columns or 1, rows
    ).agreement.canonical()
    settings = session_config.settings()
    # Not the agreement's own: a mechanism that encrypts nothing has none there.
    return WoeTerms.for_scheme(scheme(settings.scheme), settings.key_bits, agreed)


def _agreed_columns(config: PartyConfig, raw: UserRows, rows: ChosenRows) -> Iterator[pl.Series]:
    """Alice's raw columns; of an agreement that names columns, only those."""
    agreement, listed = config.agreement_file, None
    if agreement is not None:
        listed = own_side(config, agreement, credentials_of(config)).columns
    for name in raw.columns.columns:
        if listed is None or name in listed:
            yield raw.columns[name].gather(rows.rows)


def _sized(given: DisclosedColumn, *, hidden: bool) -> WoeColumn:
    """A column as Alice described it, with her own names where those are hidden from Bob."""
    column = given.sized
    alice_names = (given.name, given.labels) if hidden else None
    return WoeColumn.sized(
        column.name, column.labels, column.rows, alice_names, ordered=column.ordered
    )


def _all_hidden(columns: tuple[WoeColumn, ...]) -> bool:
    """Whether Alice sent numbers in place of names."""
    return all(column.name.startswith("alice.") and not column.ordered for column in columns)
