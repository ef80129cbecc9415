"""Common values of one side's results and live metrics.

Each kind is one frozen value. ``LedgerPlanned`` and ``GrowingTable`` are Bob's: a board for Alice
refuses them, and figures with losses too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from taciturn.privacy.events import Statement
from taciturn.results.serialise import OMITTED, Subject, key

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Identity of this side: its name, role and table."""

    role: str
    peer: str
    mechanism: str
    scheme: str
    key_bits: int
    columns: int
    rows: int
    held_out_rows: int
    version: str

    def subject(self) -> Subject:
        """This side's rows, columns and mechanism."""
        columns = {self.role: self.columns}
        return Subject(None, self.mechanism, self.rows, self.held_out_rows, columns)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The model at the end of an epoch; held-out figures where they were looked at.

    ``row_change`` is the largest change of a training row's probability in this pass, and
    ``objective`` the penalised training loss of a search after it.
    """

    iteration: int
    train_loss: float | None = field(default=None, metadata=OMITTED)
    held_out_loss: float | None = field(default=None, metadata=OMITTED)
    held_out_auc: float | None = field(default=None, metadata=OMITTED)
    row_change: float | None = field(default=None, metadata=OMITTED)
    objective: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyFigures:
    """Progress, duration and traffic of one party's training.

    ``remaining_seconds`` is at the pace so far; None before there is one, and at the end.
    """

    iterations: int
    iterations_total: int | None
    loss_recent: float | None = field(default=None, metadata=OMITTED)
    curve: tuple[CurvePoint, ...]
    seconds: float
    waiting_seconds: float
    computing_seconds: float
    remaining_seconds: float | None = field(default=None, metadata=OMITTED)
    frames_sent: int
    frames_received: int
    bytes_sent: int
    bytes_received: int
    links: int


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row's log-odds, its probability, and the class at the prediction's threshold."""

    id: str
    score: float
    probability: float
    label: int = field(metadata=key("class"))


@dataclass(frozen=True, slots=True)
class MeanRow:
    """A row's linear predictor and mean, of other families than ``binomial``."""

    id: str
    score: float
    mean: float


LinkState: TypeAlias = Literal["waiting", "connected", "broken", "closed"]
Cell: TypeAlias = str | int | float | None

QUALITY_LEARNT: Final = "quality learnt"
"""How a note begins that repeats to Alice what Bob told her of the model."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Setup of the run that is about to start."""

    identity: Identity
    solver: str


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """The link to a peer is in another state than before."""

    peer: str
    state: LinkState


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSeen:
    """Traffic since this start, and the use of the seconds since the first connection."""

    bytes_sent: int
    bytes_received: int
    frames_sent: int
    frames_received: int
    waiting_seconds: float
    computing_seconds: float


@dataclass(frozen=True, slots=True)
class ScoresOpened:
    """Scores of Alice's rows that a training opens to Bob: counts that no label decides.

    ``per_row``, ``given_before`` and ``limit`` are the most of one row; ``in_all`` includes
    held-out rows. ``limit`` is None for no limit.
    """

    per_row: int
    in_all: int
    given_before: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class LedgerPlanned:
    """Bob's ledger as it will be at the end."""

    statement: Statement
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One level of some work: model 7 of 48, or pass 3 of 12.

    ``name`` is in the singular. ``done`` may be fractional; ``total`` is 0 where it is not known.
    """

    name: str
    done: float
    total: int


@dataclass(frozen=True, slots=True)
class Stages:
    """Progress of work with several levels, the outermost first."""

    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class GrowingTable:
    """Results so far, of work that has many: Bob's, where they depend on labels."""

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
