"""Bob's partners: one Alice, or several that he asks at once.

What is said to one Alice stands in the files of the conversations; here is what it means to say it
to all. Scores of several Alices come under masks (``taciturn.protocol.masks``) and add up:
only their sum is a score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.numerics.fixedpoint import FixedPoint
from taciturn.protocol.messages import (
    MaskedScores,
)
from taciturn.protocol.scores import receive_scores
from taciturn.protocol.state import TrainingState
from taciturn.protocol.steps import (
    ONLY,
    Program,
    gather,
    receive_at,
    require_entries,
)
from taciturn.rng import Entropy

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Partner:
    """One Alice, with the ``place`` of her columns among those of all Alices."""

    name: str
    place: slice

    @property
    def columns(self) -> int:
        """Number of her columns."""
        width: int = self.place.stop - self.place.start
        return width

    def entropy(self, entropy: Entropy) -> Entropy:
        """Bob's entropy for what he sends to her: no two vectors are encrypted with the same."""
        return entropy if self.name == ONLY else entropy.fork(f"for {self.name}")


@dataclass(frozen=True, slots=True)
class Partners:
    """All Alices, in the agreement's order."""

    all: tuple[Partner, ...]

    @classmethod
    def from_widths(cls, names: Sequence[str], widths: Sequence[int]) -> Partners:
        """Partners with these names and numbers of columns.

        >>> [partner.place for partner in Partners.from_widths(["alice-1", "alice-2"], [3, 2]).all]
        [slice(0, 3, None), slice(3, 5, None)]
        """
        stops = np.cumsum(widths).tolist()
        starts = [0, *stops[:-1]]
        places = (slice(start, stop) for start, stop in zip(starts, stops, strict=True))
        return cls(tuple(Partner(*pair) for pair in zip(names, places, strict=True)))

    @classmethod
    def for_training(cls, names: Sequence[str], state: TrainingState) -> Partners:
        """Partners of a training, after the greetings."""
        return cls.from_widths(names, state.widths or (state.columns,))

    @property
    def names(self) -> tuple[str, ...]:
        """Under which Bob speaks to them."""
        return tuple(partner.name for partner in self.all)

    @property
    def widest(self) -> int:
        """The most columns that one of them has."""
        return max(partner.columns for partner in self.all)

    def ask(self, question: Callable[[Partner], Program[R]]) -> Program[list[R]]:
        """The answers of all Alices to the same conversation, held with all at once."""
        programs = {partner.name: question(partner) for partner in self.all}
        return [*(yield from gather(programs)).values()]


def receive_all_scores(
    names: Sequence[str], iteration: int, rows: int, grid: FixedPoint
) -> Program[FloatArray]:
    """The Alices' part of the scores of this many rows; ``grid`` is the scale of masked scores."""
    if [*names] == [ONLY]:
        return (yield from receive_scores(iteration, rows))
    return grid.decode((yield from _masked_sum(names, iteration, rows)))


def _masked_sum(names: Sequence[str], iteration: int, rows: int) -> Program[IntArray]:
    """Scores modulo 2^64: the masks of all Alices cancel."""
    answers = yield from gather({name: _one_masked(iteration, rows) for name in names})
    total = np.zeros(rows, dtype=np.int64)
    for numbers in answers.values():
        total += numbers
    return total


def _one_masked(iteration: int, rows: int) -> Program[IntArray]:
    scores = (yield from receive_at(MaskedScores, iteration)).scores
    require_entries("scores", len(scores), rows)
    return scores
