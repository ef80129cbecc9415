"""What programs report to their driver while they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from tacit.arrays import FloatArray, IndexArray, IntArray


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened on this side."""


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """Bob has finished ``done`` of ``total`` iterations."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Observation(Event):
    """Something Alice could note down; ``signal`` says in words what kind of thing it is."""

    signal: ClassVar[str]


@dataclass(frozen=True, slots=True)
class GradientSeen(Observation):
    """Alice has unmasked the gradient of a batch: the heart of her view.

    ``gradient`` is ``X^T r`` summed over the batch (not averaged), in exact fixed-point integers:
    the real value is ``gradient / 2^(feature_bits + residue_bits)``. ``weights`` are those with
    which the batch was scored.
    """

    signal = "the gradient of each batch in clear"

    iteration: int
    epoch: int
    rows: IndexArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    gradient: IntArray = field(repr=False)
