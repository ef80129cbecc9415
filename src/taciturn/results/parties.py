"""What the results and the live figures of one side have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from taciturn.results.serialise import OMITTED, Subject, key

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this side is, and what it brings."""

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
    """The model at the end of an epoch; held-out figures where they were looked at."""

    iteration: int
    train_loss: float | None = field(default=None, metadata=OMITTED)
    held_out_loss: float | None = field(default=None, metadata=OMITTED)
    held_out_auc: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyFigures:
    """How a training went: how far, how long, how much was said.

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
