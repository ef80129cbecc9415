"""Bob's observations of Alice's columns as arrays, and estimates from few known rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn_audit.column_attacks.base import KnownRows
from taciturn_audit.views.bob_view import BobView

LEAST_NOISE = 1e-6
"""The variance of a score's error that an attack assumes: fixed-point rounding, and the noise that
each Alice adds to scores opened after training (2e-8)."""

# Integers up to two to this are float64's.
_MOST_BITS = 53


def table_scores(view: BobView) -> FloatArray:
    """The scores of the passes of a whole-table training, rows by passes."""
    return np.stack([event.scores for event in view.directions], axis=1)


def integer_scores(view: BobView) -> IntArray:
    """The scores as integers, in their own unit, or in the least that float64 has for all of them.

    Scores are products of fixed-point numbers: whole multiples of a power of two.
    """
    scores = table_scores(view)
    largest = max(float(np.abs(scores).max(initial=0.0)), 2.0**-_MOST_BITS)
    room = _MOST_BITS - int(np.ceil(np.log2(largest)))
    for bits in range(room):
        scaled = np.ldexp(scores, bits)
        if (scaled == np.rint(scaled)).all():
            break
    return np.rint(scaled).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Batches:
    """A training by batches, one line for each iteration, in coordinates without a penalty.

    With the penalty's factor c taken out of weights, scores and steps, weights only move by steps:
    ``w_(i+1) = w_i + sum of step x``. ``rows`` is padded with 0, and ``there`` says where a batch
    has a row. The first batch is not ``scored``: its weights are 0. ``noise`` is the variance of an
    iteration's scores.
    """

    rows: IndexArray = field(repr=False)
    there: BoolArray = field(repr=False)
    scored: BoolArray = field(repr=False)
    scores: FloatArray = field(repr=False)
    steps: FloatArray = field(repr=False)
    noise: FloatArray = field(repr=False)

    @classmethod
    def from_view(cls, view: BobView) -> Batches:
        """The batches of a view."""
        events = view.batches
        shape = len(events), max(len(event.rows) for event in events)
        rows, there = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        scores, steps, noise = np.zeros(shape), np.zeros(shape), np.zeros(len(events))
        shrunk = 1.0
        for number, event in enumerate(events):
            size = len(event.rows)
            rows[number, :size], there[number, :size] = event.rows, True
            scores[number, :size] = event.scores / shrunk
            noise[number] = LEAST_NOISE / shrunk**2
            # A penalty that takes everything off in one step leaves nothing to divide by.
            shrunk = max(shrunk * event.shrink, 1e-12)
            steps[number, :size] = event.step / shrunk
        scored = there.copy()
        scored[0] = False
        return cls(rows, there, scored, scores, steps, noise)

    @property
    def iterations(self) -> int:
        """The number of batches."""
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Visits:
    """The same scores, row by row; ``times``, the iterations of a row, is padded with 0."""

    times: IndexArray = field(repr=False)
    there: BoolArray = field(repr=False)
    scores: FloatArray = field(repr=False)

    @classmethod
    def from_batches(cls, batches: Batches, rows: int) -> Visits:
        """The visits of a table of ``rows`` rows.

        >>> batches = Batches(
        ...     np.array([[0, 1], [1, 0]]), np.ones((2, 2), bool), np.ones((2, 2), bool),
        ...     np.array([[0.5, 0.6], [0.7, 0.8]]), np.zeros((2, 2)), np.zeros(2),
        ... )
        >>> Visits.from_batches(batches, 2).scores.tolist()
        [[0.5, 0.8], [0.6, 0.7]]
        """
        iterations, places = np.nonzero(batches.scored)
        owners = batches.rows[iterations, places]
        order = np.argsort(owners, kind="stable")
        owners, iterations, places = owners[order], iterations[order], places[order]
        counts = np.bincount(owners, minlength=rows)
        # The number of a visit among those of its row.
        ranks = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        shape = rows, max(1, int(counts.max(initial=0)))
        times, scores = np.zeros(shape, dtype=np.int64), np.zeros(shape)
        there = np.zeros(shape, dtype=bool)
        times[owners, ranks] = iterations
        scores[owners, ranks] = batches.scores[iterations, places]
        there[owners, ranks] = True
        return cls(times, there, scores)

    def take(self, rows: IndexArray) -> Visits:
        """The visits of some rows."""
        return Visits(self.times[rows], self.there[rows], self.scores[rows])


_RIDGES = tuple(10.0**power for power in range(-8, 3))
# Scores whose part in all that varies is below this are rounding.
_LEAST_SPREAD = 1e-7


@dataclass(frozen=True, slots=True)
class Prior:
    """Gaussian prior of a row of Alice's columns."""

    mean: FloatArray = field(repr=False)
    covariance: FloatArray = field(repr=False)

    @classmethod
    def from_known_rows(cls, known: KnownRows, columns: int) -> Prior:
        """The prior of the known rows, drawn to uncorrelated columns of deviation 1.

        Preparation standardises columns, which both parties know. With no row known it is that.
        """
        if not known.count:
            return cls(np.zeros(columns), np.eye(columns))
        count = known.count
        mean = known.values.mean(axis=0) * count / (count + 3)
        apart = known.values - mean
        products = apart.T @ apart
        alone = np.diag((np.diagonal(products) + 1.0) / (count + 1))
        covariance = (products + columns * alone) / (count + columns)
        return cls(mean, covariance)


def whitened(scores: FloatArray, columns: int) -> FloatArray:
    """The principal components of scores, each of mean square 1, without those that are rounding.

    At most ``columns`` components: that many columns made the scores. Not centred: scores of a row
    of zeros are zero.
    """
    sizes = np.sqrt(np.mean(scores**2, axis=0))
    left, spread, _ = np.linalg.svd(scores / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    least = _LEAST_SPREAD * max(float(spread.max(initial=0.0)), 1e-300)
    count = min(int(np.count_nonzero(spread > least)), columns)
    components: FloatArray = left[:, :count] * np.sqrt(len(scores))
    return components


def ridge(features: FloatArray, known: KnownRows, columns: int) -> FloatArray:
    """Alice's columns by regression on the features of known rows, with the best ridge.

    Best at predicting known rows left out one by one, over all columns together; the smallest where
    there are as many features and known rows as columns. There is no constant: where a row's
    features are zero, so are its columns.

    >>> features = np.arange(12.0).reshape(6, 2) % 5
    >>> truth = features @ np.array([[1.0], [2.0]])
    >>> known = KnownRows(np.arange(4), truth[:4])
    >>> bool(np.abs(ridge(features, known, 2) - truth).max() < 1e-3)
    True
    """
    inputs, targets = features[known.rows], known.values
    values, vectors = np.linalg.eigh(inputs @ inputs.T)
    scale = max(float(values.max(initial=0.0)), 1e-300)
    values = np.maximum(values, 0.0)
    turned = vectors.T @ targets
    best, smallest = np.zeros_like(targets), np.inf
    determined = min(inputs.shape) >= columns
    for size in _RIDGES[:1] if determined else _RIDGES:
        shrunk = vectors / (values + size * scale)
        dual = shrunk @ turned
        # The residual of a row left out is its dual entry over the inverse's diagonal.
        diagonal = np.einsum("ij,ij->i", shrunk, vectors)
        error = float(np.sum((dual / diagonal[:, None]) ** 2))
        if error < smallest:
            best, smallest = dual, error
    estimate: FloatArray = features @ (inputs.T @ best)
    return estimate
