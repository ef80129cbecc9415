"""``CountsJob``: one side of ``counts``.

Alice's budget counts the columns that a partner has received; it is charged before the counts are
sent, and a column that was asked for twice counts twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from taciturn.errors import ConfigError
from taciturn.jobs.base import Consent, Job, SessionFacts, Side
from taciturn.party.config import PartyConfig
from taciturn.party.consent.budget import DisclosureBudget
from taciturn.party.consent.store import ConsentStore
from taciturn.party.tables import raw_table
from taciturn.protocol.messages import Hello, Role
from taciturn.protocol.steps import Program
from taciturn.rng import Entropy
from taciturn.setting_syntax import Hint
from taciturn.version import PROTOCOL_VERSION
from taciturn_counts.alice import ColumnDue, answer
from taciturn_counts.bob import ask
from taciturn_counts.declaration import COLUMNS, COUNTING
from taciturn_counts.result import CountsResult
from taciturn_counts.section import CountsSection

OTHERS = "(others)"


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """Record of a column that was given."""

    column: str
    values: int


class CountsBudget(DisclosureBudget):
    """The columns whose counts a partner was given."""

    namespace: ClassVar = COLUMNS
    entry: ClassVar = "column"


@dataclass(frozen=True, slots=True)
class CountsJob(Job[CountsResult]):
    """Counts of one of Alice's columns."""

    purpose = COUNTING

    def prepare(self, config: PartyConfig) -> AliceSide | BobSide:
        """Read this side's section, and Alice's table."""
        section = config.section(CountsSection)
        if config.role == "alice":
            budget = CountsBudget(ConsentStore.from_config(config), config.peer, section.columns)
            budget.require()
            return AliceSide(shared_counts(config, section), budget)
        if section.column is None:
            raise ConfigError(
                "Bob's file does not say which column he asks for",
                setting="column",
                hint=Hint("write {column} in [counts], say", column="region"),
            )
        return BobSide(section.column)


def shared_counts(config: PartyConfig, section: CountsSection) -> dict[str, dict[str, int]]:
    """Counts of each column that Alice shares; rare values are counted together."""
    raw = raw_table(config)
    for name in section.share:
        if name not in raw.columns.columns:
            raise ConfigError(f"the table has no column {name!r}", setting="share")
    return {name: merged(raw.columns[name].to_list(), section.least) for name in section.share}


def merged(values: list[object], least: int) -> dict[str, int]:
    """How often each value occurs; those of fewer than ``least`` rows count as others.

    >>> merged(["a", "a", "b", "c"], 2)
    {'a': 2, '(others)': 2}
    """
    counts: dict[str, int] = {}
    for value in map(str, values):
        counts[value] = counts.get(value, 0) + 1
    kept = {value: count for value, count in counts.items() if count >= least}
    rest = len(values) - sum(kept.values())
    # One rare row among others would be told by what is missing.
    return kept | ({OTHERS: rest} if rest >= least else {})


def greeting(role: Role) -> Hello:
    """A greeting that says nothing of a table."""
    terms = '{"purpose":"counts"}'
    return Hello(PROTOCOL_VERSION, role, terms, 0, "", 0, 0)


@dataclass(slots=True)
class AliceSide(Side[ColumnDue, CountsResult]):
    """Alice's counts, and her budget."""

    shared: Mapping[str, Mapping[str, int]] = field(repr=False)
    budget: CountsBudget

    @property
    def consent(self) -> Consent[ColumnDue]:
        """Charge for one column, before its counts are sent."""
        return Consent(ColumnDue, self._charge)

    def _charge(self, due: ColumnDue) -> None:
        self.budget.charge(ColumnFacts(due.column, due.values))

    def program(self, entropy: Entropy) -> Program[ColumnDue]:
        """Answer one request."""
        return answer(greeting("alice"), self.shared)

    def conclude(self, outcome: ColumnDue, session: SessionFacts) -> CountsResult:
        """What Bob learnt."""
        return CountsResult(
            role=session.role,
            peer=session.peer,
            counted_column=outcome.column,
            counts=dict(outcome.counts),
        )


@dataclass(slots=True)
class BobSide(Side[dict[str, int], CountsResult]):
    """The column that Bob asks for."""

    column: str

    def program(self, entropy: Entropy) -> Program[dict[str, int]]:
        """Ask for the column."""
        return ask(greeting("bob"), self.column)

    def conclude(self, outcome: dict[str, int], session: SessionFacts) -> CountsResult:
        """The counts."""
        return CountsResult(
            role=session.role, peer=session.peer, counted_column=self.column, counts=outcome
        )
