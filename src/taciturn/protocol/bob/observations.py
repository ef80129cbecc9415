"""Bob's observations of Alice's columns: scores, and what he knows of their weights.

His programs emit the values; the view collects them, a column attack declares the kinds that it
needs, and an audit names them by the same words. A program that opens no score emits none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from taciturn.arrays import FloatArray, IndexArray
from taciturn.protocol.events import Event


class BobSignal(Enum):
    """Kind of Bob's observation of Alice's columns; its value is a description."""

    BATCH_SCORES = "the scores of Alice's columns in each batch"
    TABLE_SCORES = "the scores of Alice's columns in each pass"
    PREDICTIONS = "joint predictions of the rows"


@dataclass(frozen=True, slots=True)
class BobObservation(Event):
    """An observation of Bob's; ``signal`` is its kind."""

    signal: ClassVar[BobSignal]

    iteration: int


@dataclass(frozen=True, slots=True)
class BatchScored(BobObservation):
    """Bob has Alice's part of the scores of some rows, ``X w``, with her weights of that moment.

    Her weights then become ``shrink w + X^T step``, one number of ``step`` for each of the rows: he
    does not know them, but how they follow from her columns.
    """

    signal = BobSignal.BATCH_SCORES

    rows: IndexArray = field(repr=False)
    scores: FloatArray = field(repr=False)
    step: FloatArray = field(repr=False)
    shrink: float = 1.0


@dataclass(frozen=True, slots=True)
class DirectionScored(BobObservation):
    """Bob has ``T T^T a`` of all training rows, for a direction a of his; T is her whitened table.

    ``iteration`` is the number of the pass. Of several Alices T has all their columns, divided by a
    public number in place of whitening.
    """

    signal = BobSignal.TABLE_SCORES

    direction: FloatArray = field(repr=False)
    scores: FloatArray = field(repr=False)
