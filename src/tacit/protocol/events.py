"""What programs report to their driver while they run."""

from __future__ import annotations

from dataclasses import dataclass, field

from tacit.arrays import FloatArray, IndexArray


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened on this side."""


@dataclass(frozen=True, slots=True)
class Progress(Event):
    """Bob has finished ``done`` of ``total`` iterations."""

    done: int
    total: int


@dataclass(frozen=True, slots=True)
class GradientSeen(Event):
    """Alice has unmasked the gradient of a batch: the heart of her view.

    ``gradient`` is ``X^T r`` summed over the batch (not averaged), in exact fixed-point integers:
    the real value is ``gradient / 2^(feature_bits + residue_bits)``. ``weights`` are those with
    which the batch was scored.
    """

    iteration: int
    epoch: int
    rows: IndexArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    gradient: IndexArray = field(repr=False)
