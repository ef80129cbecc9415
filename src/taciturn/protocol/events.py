"""What programs report to their driver while they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np

from taciturn.arrays import FloatArray, IndexArray, IntArray
from taciturn.numerics.metrics import Metrics
from taciturn.protocol.scales import Scales
from taciturn.protocol.state import TrainingState


def _no_rows() -> IndexArray:
    return np.empty(0, dtype=np.int64)


def _no_scores() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened on this side."""


@dataclass(frozen=True, slots=True)
class Advance(Event):
    """``done`` of ``total`` parts of some work are finished."""

    work: ClassVar[str] = "working"

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Progress(Advance):
    """Bob has finished ``done`` of ``total`` iterations.

    ``rows`` are the last one's true batch, and ``scores`` what they scored before its step.
    """

    work: ClassVar[str] = "training"

    rows: IndexArray = field(repr=False, compare=False, default_factory=_no_rows)
    scores: FloatArray = field(repr=False, compare=False, default_factory=_no_scores)


@dataclass(frozen=True, slots=True)
class Aligning(Advance):
    """So many of both sides' ids are through an alignment."""

    work: ClassVar[str] = "aligning ids"


@dataclass(frozen=True, slots=True)
class RowsScored(Advance):
    """This side is done with ``done`` of ``total`` rows of a joint prediction."""

    work: ClassVar[str] = "scoring"


@dataclass(frozen=True, slots=True)
class Boundary(Event):
    """The program stands between two iterations: from this state it can be started again."""

    state: TrainingState


@dataclass(frozen=True, slots=True)
class HeldOutSeen(Event):
    """Bob knows how good the model is on the held-out rows after this iteration."""

    iteration: int
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Redrawn(Event):
    """Bob threw so many draws of a hidden batch away before one was long enough."""

    iteration: int
    draws: int


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """Bob ended the training before its last iteration."""

    iteration: int
    reason: str


@dataclass(frozen=True, slots=True)
class WrapsSuspected(Event):
    """So many of Bob's decrypted scores lie near the end of their range: some may have wrapped.

    It depends on labels. Bob's program goes on as if nothing were, and only he may know.
    """

    iteration: int
    scores: int


@dataclass(frozen=True, slots=True)
class ShareKept(Event):
    """A training that leaves Alice's weights shared has ended; this side's share."""

    role: Literal["alice", "bob"]
    share: IntArray = field(repr=False)
    scales: Scales
