"""Events that programs report to their driver while they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.ids import RowIds
from taciturn.numerics.label_metrics import ModelMetrics
from taciturn.protocol.state import TrainingState


def _no_scores() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a program."""


@dataclass(frozen=True, slots=True)
class Advance(Event):
    """``done`` of ``total`` parts of some work are finished."""

    work: ClassVar[str] = "working"

    done: int
    total: int

    @property
    def reach(self) -> float:
        """Completed amount: ``done``, or a little more."""
        return self.done


@dataclass(frozen=True, slots=True)
class Progress(Advance):
    """Bob has finished ``done`` of ``total`` iterations.

    ``rows`` are the last one's true batch, and ``scores`` what they scored before its step. In
    newton, where a batch is the whole table, rows are None, and scores are those after it. Only a
    hidden batch may be empty. ``objective`` is the penalised loss, where a search knows it.
    """

    work: ClassVar[str] = "training"

    rows: IndexArray | None = field(repr=False, compare=False, default=None)
    scores: FloatArray = field(repr=False, compare=False, default_factory=_no_scores)
    objective: float | None = field(repr=False, compare=False, default=None)


@dataclass(frozen=True, slots=True)
class PartDone(Advance):
    """``done`` of ``total`` passes are finished, and the fraction ``part`` of the next one."""

    work: ClassVar[str] = "training"

    part: float = 0.0

    @property
    def reach(self) -> float:
        """Number of passes, with a fraction."""
        return self.done + self.part


@dataclass(frozen=True, slots=True)
class ClusterJoined(Event):
    """A cluster of this many workers computes; ``dashboard`` is its address, if it has one."""

    workers: int
    dashboard: str


@dataclass(frozen=True, slots=True)
class Aligning(Advance):
    """Number of both sides' ids that an alignment has processed."""

    work: ClassVar[str] = "aligning ids"


@dataclass(frozen=True, slots=True)
class RowsScored(Advance):
    """This side is done with ``done`` of ``total`` rows of a joint prediction."""

    work: ClassVar[str] = "scoring"


@dataclass(frozen=True, slots=True)
class ScoresDue(Event):
    """Both sides of a joint prediction match; Alice's scores of these rows are sent next."""

    ids: RowIds


@dataclass(frozen=True, slots=True)
class HeldOutDecided(Event):
    """Both sides know whether the held-out rows will be scored."""

    opened: bool


@dataclass(frozen=True, slots=True)
class Boundary(Event):
    """The program is between two iterations, and can be resumed from this state."""

    state: TrainingState


@dataclass(frozen=True, slots=True)
class HeldOutSeen(Event):
    """Bob knows how good the model is on the held-out rows after this iteration."""

    iteration: int
    metrics: ModelMetrics


@dataclass(frozen=True, slots=True)
class SimulatedStep(Event):
    """A simulation, which holds both sides, after an iteration: what crossed, and the loss.

    ``train_loss`` is the mean over an epoch's batches, at its end; None within it.
    """

    iteration: int
    bytes_to_alice: int
    bytes_to_bob: int
    frames_to_alice: int
    frames_to_bob: int
    train_loss: float | None = None
