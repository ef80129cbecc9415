"""What a side publishes while it works, for whoever watches: a page, a file of figures.

Each kind is one frozen value. ``LedgerPlanned`` and ``GrowingTable`` are Bob's: a board for Alice
refuses them, and figures with losses too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from taciturn.privacy.statement import Statement
from taciturn.results.parties import Identity, PartyFigures

LinkState: TypeAlias = Literal["waiting", "connected", "broken", "closed"]
Cell: TypeAlias = str | int | float | None

QUALITY_LEARNT: Final = "quality learnt"
"""How a note begins that repeats to Alice what Bob told her of the model."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is about to run.

    Args:
        identity: Who this side is, and what it brings.
        solver: How weights are found.
    """

    identity: Identity
    solver: str


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """The link to a peer is in another state than before.

    Args:
        peer: Whose link it is.
        state: Waiting for the first connection, connected, broken and waiting for another, closed.
    """

    peer: str
    state: LinkState


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSeen:
    """What crossed since this start, and where the seconds since the first connection went."""

    bytes_sent: int
    bytes_received: int
    frames_sent: int
    frames_received: int
    waiting_seconds: float
    computing_seconds: float


@dataclass(frozen=True, slots=True)
class ScoresOpened:
    """What a training opens to Bob of Alice's rows: counts, which no label decides.

    Args:
        per_row: The most scores of one training row.
        in_all: Those of all rows, held-out rows included.
        given_before: The most of one row that her book says he was given before.
        limit: The most of one row that she allows; None for no limit.
    """

    per_row: int
    in_all: int
    given_before: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class LedgerPlanned:
    """Bob's ledger, as it will stand at the end.

    Args:
        statement: Its figures.
        budget: The most that he accepts; None for no limit.
    """

    statement: Statement
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One level of some work: model 7 of 48, or pass 3 of 12.

    Args:
        name: What is counted, in the singular.
        done: How many are finished; a part of one may be, too.
        total: How many there are; 0 where that is not known.
    """

    name: str
    done: float
    total: int


@dataclass(frozen=True, slots=True)
class Stages:
    """How far work of several levels is, the outermost first."""

    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class GrowingTable:
    """Results so far, of work that has many: Bob's, where they depend on labels.

    Args:
        title: What it shows.
        columns: Their headings.
        rows: One a result, of as many cells as there are columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


News: TypeAlias = (
    Setup
    | LinkChanged
    | PartyFigures
    | TrafficSeen
    | ScoresOpened
    | LedgerPlanned
    | Stages
    | GrowingTable
)
"""Whatever may be published."""
