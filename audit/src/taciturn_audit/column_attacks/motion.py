"""Alice's columns from a training by batches, whose weights Bob does not know but can track.

He knows how the weights move: ``w_(i+1) = w_i + sum of step x`` over the rows of a batch, with
steps of his own making. A known row tells him something of ``w_i`` each time it is scored; rows
that he does not know move the weights at random, as far as he can say. So the weights are the state
of a linear Gaussian system, which a Kalman filter and its smoother estimate, and each row follows
from its own scores. Better rows make better weights: some rounds of it, in which also the rows'
mean and covariance are learnt (expectation maximisation), and in the later of which the other rows
observe the weights too.

**Guarantee.** None: a better solver may recover more.

**Assumes.** Work is counted, never timed. Iterations are joined to stretches, in which the weights
move as expected, so that a round takes ``MOST_WORK`` multiplications at most; where a table has
more than ``MOST_VALUES`` scores times columns, rows that are evenly spaced stand for all in the
rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.column_attacks.scores import Batches, Prior, Visits

ROUNDS_OF_KNOWN, ROUNDS = 4, 8
"""How often known rows alone, and then all rows, observe the weights."""

MOST_WORK = 3.0e7
MOST_VALUES = 1.6e7
# What a stretch costs besides, whatever the number of columns.
_EACH_STRETCH = 150_000
_BLOCK = 1 << 21
# An estimate that was made from a score is no independent witness of the weights behind it.
_DISTRUST = 3.0
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Followed:
    """The estimate of each row; ``limited`` where iterations were joined or rows left out."""

    values: FloatArray = field(repr=False)
    limited: bool


def follow(
    batches: Batches, rows: int, columns: int, known: KnownRows, start: FloatArray | None = None
) -> Followed:
    """The columns of all rows.

    There may be no known row where ``start`` is given: a first estimate of each row, in any basis.
    """
    search = _Search(batches, rows, known, Prior.from_known_rows(known, columns))
    if start is not None:
        search.values[:] = start
    for _ in range(ROUNDS_OF_KNOWN if known.count else 0):
        search.improve(search.known)
    for _ in range(ROUNDS):
        search.improve(search.learning)
    search.complete()
    return Followed(search.values, search.limited)


@dataclass(frozen=True, slots=True)
class _Path:
    """The weights at the beginning of each stretch."""

    mean: FloatArray
    covariance: FloatArray


class _Search:
    def __init__(self, batches: Batches, rows: int, known: KnownRows, prior: Prior) -> None:
        columns = len(prior.mean)
        self._batches, self._prior, self._given = batches, prior, known
        self._visits = Visits.from_batches(batches, rows)
        self.known: BoolArray = np.zeros(rows, dtype=bool)
        self.known[known.rows] = True
        self.learning = self._spaced(rows, columns)
        self._stretches = self._joined(columns)
        self.values: FloatArray = np.tile(prior.mean, (rows, 1))
        self.values[known.rows] = known.values
        # How far a row that is estimated may be from its estimate, on average.
        self._spread = prior.covariance
        # How much such rows, and those that are not estimated, move the weights at random before
        # each iteration.
        self._moved = self._variance(self.learning & ~self.known)
        self._swayed = self._variance(~self.learning)

    @property
    def limited(self) -> bool:
        joined = len(self._stretches) < self._batches.iterations
        return bool(joined or not self.learning.all())

    def _spaced(self, rows: int, columns: int) -> BoolArray:
        visits = self._visits.times.shape[1]
        most = max(1, int(MOST_VALUES / (visits * max(visits, columns))))
        looked = np.ones(rows, dtype=bool)
        if rows > most:
            looked[:] = False
            looked[np.arange(most) * rows // most] = True
        return looked | self.known

    def _joined(self, columns: int) -> IndexArray:
        iterations = self._batches.iterations
        most = max(1, int(MOST_WORK / (columns**2 * (columns + 40) + _EACH_STRETCH)))
        count = min(iterations, most)
        return np.arange(count) * iterations // count

    def _variance(self, moving: BoolArray) -> FloatArray:
        steps = np.where(moving[self._batches.rows], self._batches.steps, 0.0)
        return np.concatenate([[0.0], np.cumsum(np.sum(steps**2, axis=1))[:-1]])

    def improve(self, observing: BoolArray) -> None:
        rows, drift = np.flatnonzero(self.learning), self._drift()
        path = self._smooth(observing, drift)
        total = np.zeros_like(self._spread)
        for part in self._parts(rows):
            total += self._estimate_rows(part, path, drift)
        self.values[self._given.rows] = self._given.values
        spread = total / len(rows)
        self._spread = (spread + spread.T) / 2 + _TINY * np.eye(len(spread))
        mean = self.values[rows].mean(axis=0)
        apart = self.values[rows] - mean
        self._prior = Prior(mean, apart.T @ apart / len(rows) + self._spread)
        self.values[~self.learning] = mean

    def complete(self) -> None:
        rows = np.flatnonzero(~self.learning)
        if not len(rows):
            return
        drift = self._drift()
        path = self._smooth(self.learning, drift)
        for part in self._parts(rows):
            self._estimate_rows(part, path, drift)

    def _parts(self, rows: IndexArray) -> list[IndexArray]:
        visits, columns = self._visits.times.shape[1], self.values.shape[1]
        size = max(1, _BLOCK // (visits * max(visits, columns)))
        return [rows[first : first + size] for first in range(0, len(rows), size)]

    def _drift(self) -> FloatArray:
        """The expected movement of the weights before each iteration."""
        batches, columns = self._batches, self.values.shape[1]
        moved = np.empty((batches.iterations, columns))
        size = max(1, _BLOCK // (batches.rows.shape[1] * columns))
        for first in range(0, batches.iterations, size):
            part = slice(first, first + size)
            values = self.values[batches.rows[part]]
            moved[part] = np.einsum("ib,ibd->id", batches.steps[part], values)
        drift = np.zeros_like(moved)
        np.cumsum(moved[:-1], axis=0, out=drift[1:])
        return drift

    def _smooth(self, observing: BoolArray, drift: FloatArray) -> _Path:
        """Kalman's filter forwards and the smoother of Rauch, Tung and Striebel backwards."""
        stretches, columns = self._stretches, self.values.shape[1]
        shape = len(stretches), columns
        before, after = np.zeros(shape), np.zeros(shape)
        sure, surer = np.zeros((*shape, columns)), np.zeros((*shape, columns))
        mean, covariance = np.zeros(columns), np.zeros((columns, columns))
        ends = np.append(stretches[1:], self._batches.iterations)
        last = 0
        for place, (start, end) in enumerate(zip(stretches, ends, strict=True)):
            mean = mean + drift[start] - drift[last]
            covariance = covariance + (self._moved[start] - self._moved[last]) * self._spread
            covariance += (self._swayed[start] - self._swayed[last]) * self._prior.covariance
            before[place], sure[place], last = mean, covariance, start
            mean, covariance = self._observed(slice(start, end), observing, drift, mean, covariance)
            after[place], surer[place] = mean, covariance
        for place in range(len(stretches) - 2, -1, -1):
            ahead = sure[place + 1] + _TINY * np.eye(columns)
            gain = np.linalg.solve(ahead, surer[place]).T
            after[place] += gain @ (after[place + 1] - before[place + 1])
            surer[place] += gain @ (surer[place + 1] - sure[place + 1]) @ gain.T
        return _Path(after, surer)

    def _observed(
        self,
        stretch: slice,
        observing: BoolArray,
        drift: FloatArray,
        mean: FloatArray,
        covariance: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        batches, start = self._batches, stretch.start
        seen = batches.scored[stretch] & observing[batches.rows[stretch]]
        if not seen.any():
            return mean, covariance
        numbers, places = np.nonzero(seen)
        times = numbers + start
        rows = batches.rows[times, places]
        witnesses = self.values[rows]
        scores = batches.scores[times, places]
        # What the weights are expected to have moved since the beginning is taken off.
        scores = scores - np.einsum("md,md->m", witnesses, drift[times] - drift[start])
        doubt = _DISTRUST * max(float(mean @ self._spread @ mean), 0.0)
        noise = batches.noise[times] + self._swing(times) - self._swing(np.array([start]))
        noise += np.where(self.known[rows], 0.0, doubt)
        weighted = witnesses / noise[:, None]
        information = weighted.T @ witnesses
        surprise = weighted.T @ (scores - witnesses @ mean)
        gain = np.eye(len(mean)) + covariance @ information
        reduced = np.linalg.solve(gain, covariance)
        reduced = (reduced + reduced.T) / 2
        return mean + reduced @ surprise, reduced

    def _swing(self, times: IndexArray) -> FloatArray:
        """The variance of a score due to the random movement of the weights up to then."""
        prior = self._prior.covariance
        moved = self._moved[times] * float(np.sum(self._spread * prior))
        swing: FloatArray = moved + self._swayed[times] * float(np.sum(prior * prior))
        return swing

    def _weights_at(
        self, times: IndexArray, path: _Path, drift: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The weights of iterations within stretches, and the variance of a score with them."""
        stretches = self._stretches
        place = np.searchsorted(stretches, times, side="right") - 1
        ahead = np.minimum(place + 1, len(stretches) - 1)
        first, second = stretches[place], stretches[ahead]
        between = self._swing(second) - self._swing(first)
        passed = self._swing(times) - self._swing(first)
        # Beyond the last stretch's beginning the weights only drift.
        inner = ahead > place
        part = np.where(inner, np.clip(passed / np.maximum(between, 1e-300), 0.0, 1.0), 0.0)
        sway = path.mean[ahead] - path.mean[place] - drift[second] + drift[first]
        weights = path.mean[place] + drift[times] - drift[first] + part[..., None] * sway
        doubt = np.einsum("sde,de->s", path.covariance, self._prior.covariance)
        bridge = np.where(inner, part * (1.0 - part) * between, passed)
        variance = (1.0 - part) * doubt[place] + part * doubt[ahead] + bridge
        return weights, np.maximum(variance, 0.0)

    def _estimate_rows(self, rows: IndexArray, path: _Path, drift: FloatArray) -> FloatArray:
        """Write the estimates of some rows, and return the sum of their covariances."""
        visits, prior = self._visits.take(rows), self._prior
        weights, variance = self._weights_at(visits.times, path, drift)
        weights[~visits.there] = 0.0
        noise = variance + self._batches.noise[visits.times]
        spread = weights @ prior.covariance
        products = spread @ weights.transpose(0, 2, 1)
        diagonal = np.arange(products.shape[1])
        products[:, diagonal, diagonal] += noise
        surprise = np.where(visits.there, visits.scores - weights @ prior.mean, 0.0)
        solved = np.linalg.solve(products, np.concatenate([spread, surprise[..., None]], axis=2))
        self.values[rows] = prior.mean + np.einsum("itd,it->id", spread, solved[..., -1])
        # The sum over rows and visits of outer products, as one product of matrices.
        size = len(prior.mean)
        less = spread.reshape(-1, size).T @ solved[..., :-1].reshape(-1, size)
        total: FloatArray = len(rows) * prior.covariance - less
        return total
