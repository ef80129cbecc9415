"""Influence of one row on the opened sums of ``mutual``: a Bob who knows all other rows.

Such a Bob trains in clear for each candidate of the unknown row and compares the results with the
opened numbers. What they tell him follows from by how many rows the candidates move each sum, and
from its noise (``taciturn.privacy.row_noise``): bits of further trainings add up.

Steps are those of ``mutual`` in real numbers, with its periodic sigmoid, so that scores beyond the
range wrap as they do there. The rounding of fixed point is left out; it only hides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from taciturn.arrays import EVERY_ROW, FloatArray, LabelArray
from taciturn.families.base import RowLikelihood
from taciturn.numerics.periodic_sigmoid import PeriodicSigmoid, half_range
from taciturn.numerics.whole_table import fit_on_schedule
from taciturn.privacy.row_noise import row_noise


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tables that differ in one row of Alice's, and the agreed settings of their trainings.

    The last ``free`` columns of Bob's are the intercept.
    """

    alice: FloatArray
    bob: FloatArray
    labels: LabelArray
    row: int
    values: FloatArray
    l2: float
    passes: int
    free: int = 1
    score_range: float = 64.0
    sigmoid_error: float = 3e-3

    def tables(self) -> Iterable[FloatArray]:
        """Alice's table with each candidate in the unknown row."""
        for values in self.values:
            table = self.alice.copy()
            table[self.row] = values
            yield table


@dataclass(frozen=True, slots=True)
class RowInfluence:
    """Range, in rows, over which the unknown row moves each opened sum."""

    rows: int
    change: float
    count: float

    def bits(self, trainings: int = 1) -> float:
        """Upper bound in bits on what the opened sums of so many trainings tell of the row."""
        change = row_noise("change of the loss", self.rows).bits(self.change, trainings)
        return change + row_noise("count of scores", self.rows).bits(self.count, trainings)


def measure_influence(candidates: Candidates) -> RowInfluence:
    """Measure by how many rows a row moves the opened sums; one training in clear a candidate."""
    opened = [_opened_sums(candidates, table) for table in candidates.tables()]
    changes, counts = (np.array(one) for one in zip(*opened, strict=True))
    return RowInfluence(len(candidates.alice), float(np.ptp(changes)), float(np.ptp(counts)))


def _opened_sums(candidates: Candidates, alice: FloatArray) -> tuple[float, int]:
    """Decrease of the summed loss in the last pass and count of scores beyond the range."""
    half = half_range(candidates.score_range, candidates.sigmoid_error)
    wave = PeriodicSigmoid.with_error(half, candidates.sigmoid_error)
    signs, seen = candidates.labels - 0.5, list[tuple[float, int]]()

    def likelihood(scores: FloatArray, place: slice = EVERY_ROW) -> RowLikelihood:
        odd = signs[place]
        value = odd * scores - wave.even_loss(scores)
        if len(scores) == len(alice):
            wrapped = (scores + half) % (2 * half) - half
            beyond = int(np.sum(np.abs(wrapped) > candidates.score_range))
            seen.append((-float(np.sum(value)), beyond))
        slope = odd + 0.5 - wave(scores)
        return RowLikelihood(value, slope, np.zeros(len(scores)))

    fit_on_schedule(
        alice, candidates.bob, likelihood, candidates.l2, candidates.free, candidates.passes
    )
    (before, _), (last, beyond) = seen[-2:]
    return before - last, beyond
