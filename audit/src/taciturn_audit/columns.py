"""Judge of Bob's attacks: the only place that compares estimates with Alice's columns.

A value of a numeric column is *recovered* where the estimate is within a tenth of the column's
standard deviation; one of a category (a group of one-hot columns, or a column of two values) where
the estimate names the right one. ``r2`` is the mean over her numeric columns. Rows that the attack
knew are not judged.

An estimate may leave something open (``Ambiguity``): which of its columns is which of hers and its
sign, also unit and offset, or a whole linear map. The judge settles that on every second row and
judges the others: the figure then says what is left to be known, and a few known rows would give
it. The controls have at least as much freedom: their best constants are those of the rows judged,
and their regression is a linear map fitted on every second row.

**Guarantee.** ``recovered_low`` and ``recovered_high`` are the exact (Clopper-Pearson) 95 %
interval of the share of values recovered.

**Assumes.** Values are independent trials, for the share of one probability. Those of a row are not
quite: several seeds show how runs differ.

Without her columns explained says how well an estimate explains the scores that Bob saw. Her
weights are ``X^T a`` with numbers ``a`` of Bob's, so that a score is ``x S P``: a row of the
estimate, one matrix for the whole training, and the sums of his own steps over the estimate's rows.
The matrix is fitted on every second row and judged on the others. Noise, or another person's rows,
explain nothing of them. It does not say whose values the estimate's are: an estimate that explains
all scores may be hers up to a linear map, and that is for her columns to judge.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import LinearOperator, lsqr

from taciturn.arrays import BoolArray, FloatArray, IndexArray
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.parallel import one_thread
from taciturn_audit.column_attacks.base import Ambiguity, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.scores import Batches, table_scores, whitened
from taciturn_audit.exact_intervals import clopper_pearson
from taciturn_audit.results.columns import ColumnControl, ColumnScore
from taciturn_audit.views.bob_view import BobView

NEAR = 0.1
"""How many standard deviations off a recovered number may be."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Alice's columns, and the places of varying numeric columns and of each category's columns."""

    values: FloatArray = field(repr=False)
    names: tuple[str, ...]
    numeric: IndexArray
    categories: tuple[IndexArray, ...]

    @classmethod
    def from_table(cls, table: FeatureTable) -> Truth:
        """The truth of a prepared table: ``place=north`` and ``place=south`` are one category.

        >>> table = FeatureTable.from_data(np.array([[0.1, 1, 0], [0.2, 0, 1], [0.3, 0, 0]]),
        ...                         columns=["x", "place=n", "place=s"])
        >>> truth = Truth.from_table(table)
        >>> truth.numeric.tolist(), [group.tolist() for group in truth.categories]
        ([0], [[1, 2]])
        """
        groups = defaultdict[str, list[int]](list)
        numeric = []
        for place, (name, column) in enumerate(zip(table.columns, table.values.T, strict=True)):
            levels = np.unique(column)
            if len(levels) > 2:
                numeric.append(place)
            elif len(levels) == 2:
                groups[name.rpartition("=")[0] or f"{name}="].append(place)
        categories = tuple(
            part for places in groups.values() for part in _categories(table.values, places)
        )
        return cls(table.values, table.columns, np.array(numeric, dtype=np.int64), categories)

    @property
    def per_row(self) -> int:
        """The number of values of a row; a category counts once."""
        return len(self.numeric) + len(self.categories)

    def recovered(self, estimate: FloatArray, rows: IndexArray) -> BoolArray:
        """Which values of some rows are right, rows by values."""
        true_values = self.values[rows]
        spread = self.values[:, self.numeric].std(axis=0)
        near = np.abs(estimate[:, self.numeric] - true_values[:, self.numeric]) <= NEAR * spread
        right = [
            self._level(estimate, group) == self._level(true_values, group)
            for group in self.categories
        ]
        return np.column_stack([near, *right])

    def _level(self, values: FloatArray, group: IndexArray) -> IndexArray:
        """Which level of a category each row has; 0 is the one that has no column."""
        low, high = self.values[:, group].min(axis=0), self.values[:, group].max(axis=0)
        part = (values[:, group] - low) / (high - low)
        levels: IndexArray = np.argmax(np.column_stack([1.0 - part.sum(axis=1), part]), axis=1)
        return levels

    def r2(self, estimate: FloatArray, rows: IndexArray) -> float | None:
        """The mean share of variance explained, over numeric columns; None where there is none."""
        if not len(self.numeric):
            return None
        return float(np.mean(self.fits(estimate, rows)[self.numeric]))

    def fits(self, estimate: FloatArray, rows: IndexArray) -> FloatArray:
        """The share of each column's variance that an estimate of some rows explains."""
        true_values = self.values[rows]
        error = np.sum((estimate - true_values) ** 2, axis=0)
        varies = np.sum((true_values - true_values.mean(axis=0)) ** 2, axis=0)
        fits: FloatArray = 1.0 - error / np.maximum(varies, 1e-300)
        return np.where(varies > 0, fits, -np.inf)


def _categories(values: FloatArray, places: list[int]) -> list[IndexArray]:
    """Columns of one source as one category, if no row has two of its levels; else one by one."""
    columns = values[:, places]
    # Levels may have been standardised: the larger value is the one that says yes.
    taken = np.sum(columns == columns.max(axis=0), axis=1)
    if taken.max(initial=0) <= 1:
        return [np.array(places)]
    return [np.array([place]) for place in places]


def judge_columns(
    name: str, estimate: ColumnEstimate, truth: Truth, known: KnownRows, seconds: float = 0.0
) -> ColumnScore:
    """The score of an estimate against her columns.

    >>> values = np.arange(20.0).reshape(10, 2)
    >>> truth = Truth.from_table(FeatureTable.from_data(values))
    >>> score = judge_columns("x", ColumnEstimate(values), truth, KnownRows.none(2))
    >>> score.r2, score.recovered, round(score.recovered_low, 3)
    (1.0, 1.0, 0.832)
    """
    values, rows = settled(estimate, truth, known)
    right = truth.recovered(values[rows], rows)
    low, high = clopper_pearson(int(right.sum()), max(1, right.size))
    return ColumnScore(
        name=name,
        known_rows=known.count,
        r2=truth.r2(values[rows], rows),
        recovered=float(right.mean()) if right.size else 0.0,
        recovered_low=low,
        recovered_high=high,
        seconds=seconds,
        values=right.size,
        remark=estimate.remark,
        ambiguity=estimate.ambiguity.value,
        limited=estimate.limited or None,
    )


def settled(
    estimate: ColumnEstimate, truth: Truth, known: KnownRows
) -> tuple[FloatArray, IndexArray]:
    """An estimate with nothing left open, of all rows; and the rows that it may be judged by."""
    rows = np.setdiff1d(np.arange(len(truth.values)), known.rows)
    values = np.nan_to_num(estimate.values, nan=0.0, posinf=0.0, neginf=0.0)
    if estimate.ambiguity is Ambiguity.NONE:
        return values, rows
    fitted, rows = rows[0::2], rows[1::2]
    if estimate.ambiguity is Ambiguity.LINEAR:
        return _mapped(values, truth.values, fitted), rows
    return _matched(values, truth.values, fitted, estimate.ambiguity), rows


def _matched(
    values: FloatArray, truth: FloatArray, fitted: IndexArray, ambiguity: Ambiguity
) -> FloatArray:
    """Each of her columns by a column of the estimate: those that agree best in some rows.

    The sign is that of the agreement; unit and offset are fitted too where they are left open. Her
    columns beyond those of the estimate are guessed to be constant.
    """
    guessed = np.tile(truth[fitted].mean(axis=0), (len(truth), 1))
    agreement = _correlations(values[fitted], truth[fitted])
    for estimated, actual in zip(*linear_sum_assignment(-np.abs(agreement)), strict=True):
        column = values[:, estimated]
        if ambiguity is Ambiguity.SCALE:
            inputs = np.column_stack([column, np.ones(len(column))])
            factors = np.linalg.lstsq(inputs[fitted], truth[fitted, actual], rcond=None)[0]
            guessed[:, actual] = inputs @ factors
        else:
            guessed[:, actual] = np.where(agreement[estimated, actual] < 0, -1.0, 1.0) * column
    return guessed


def _correlations(values: FloatArray, truth: FloatArray) -> FloatArray:
    centred = [part - part.mean(axis=0) for part in (values, truth)]
    lengths = [np.linalg.norm(part, axis=0) for part in centred]
    left, right = (
        part / np.where(size > 0, size, 1.0) for part, size in zip(centred, lengths, strict=True)
    )
    return np.asarray(left.T @ right, dtype=np.float64)


def _mapped(values: FloatArray, truth: FloatArray, fitted: IndexArray) -> FloatArray:
    inputs = np.column_stack([values, np.ones(len(values))])
    factors = np.linalg.lstsq(inputs[fitted], truth[fitted], rcond=1e-9)[0]
    mapped: FloatArray = inputs @ factors
    return mapped


def controls(
    truth: Truth, bob_table: FeatureTable, labels: LabelTable
) -> tuple[ColumnControl, ...]:
    """The controls: the best constants, and regression on all that Bob has.

    The regression knows every second row of hers, and is judged on the others. Bob's labels are a
    column like any other here.
    """
    everything = np.arange(len(truth.values))
    constant = np.tile(truth.values.mean(axis=0), (len(everything), 1))
    right = truth.recovered(constant, everything)
    shares = right.mean(axis=0)
    shares[: len(truth.numeric)] = [_most_alike(truth.values[:, place]) for place in truth.numeric]
    mean = ColumnControl("mean", truth.r2(constant, everything), float(shares.mean()))
    fitted, judged = everything[0::2], everything[1::2]
    inputs = np.column_stack([bob_table.values, labels.values])
    values = _mapped(inputs, truth.values, fitted)[judged]
    shares = truth.recovered(values, judged)
    return mean, ColumnControl("regression", truth.r2(values, judged), float(shares.mean()))


def _most_alike(column: FloatArray) -> float:
    """The largest share of a column that one constant recovers.

    >>> _most_alike(np.array([0.0, 0.0, 0.0, 1.0]))
    0.75
    """
    ordered = np.sort(column)
    width = 2 * NEAR * float(column.std())
    ends = np.searchsorted(ordered, ordered + width * (1 + 1e-12), side="right")
    return float((ends - np.arange(len(ordered))).max() / len(ordered))


_ITERATIONS = 300


@dataclass(frozen=True, slots=True)
class _Scored:
    """Scores one by one, in units of the root mean square of their iteration.

    ``sums`` are Bob's steps over the estimate's rows, up to each iteration, in the same units.
    """

    rows: IndexArray = field(repr=False)
    times: IndexArray = field(repr=False)
    scores: FloatArray = field(repr=False)
    sums: FloatArray = field(repr=False)


def explained(view: BobView, values: FloatArray) -> float:
    """The share of the scores' variance that an estimate of any width explains; at most 1."""
    constant = np.ones((len(values), 1))
    width = values.shape[1] + 1
    basis = whitened(np.column_stack([np.nan_to_num(values), constant]), width)
    with one_thread():
        scored = _of_passes(view, basis) if view.directions else _of_batches(view, basis)
        fitted = scored.rows % 2 == 0
        expected = _expected(basis, scored, fitted)
    judged = scored.scores[~fitted]
    varies = float(np.sum(judged**2))
    error = float(np.sum((judged - expected[~fitted]) ** 2))
    return 1.0 - error / varies if varies > 0 else 0.0


def _of_passes(view: BobView, basis: FloatArray) -> _Scored:
    scores = table_scores(view)
    sums = np.stack([basis.T @ event.direction for event in view.directions])
    rows, times = (axis.ravel() for axis in np.indices(scores.shape))
    return _scaled(rows, times, scores.ravel(), sums)


def _of_batches(view: BobView, basis: FloatArray) -> _Scored:
    batches = Batches.from_view(view)
    times, places = np.nonzero(batches.scored)
    steps = np.where(batches.there, batches.steps, 0.0)
    moved = np.einsum("ij,ijk->ik", steps, basis[batches.rows])
    sums = np.zeros_like(moved)
    np.cumsum(moved[:-1], axis=0, out=sums[1:])
    return _scaled(batches.rows[times, places], times, batches.scores[times, places], sums)


def _scaled(rows: IndexArray, times: IndexArray, scores: FloatArray, sums: FloatArray) -> _Scored:
    """Each iteration in units of its scores; late passes are smaller by many orders."""
    counts = np.maximum(np.bincount(times, minlength=len(sums)), 1)
    sizes = np.sqrt(np.bincount(times, weights=scores**2, minlength=len(sums)) / counts)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return _Scored(rows, times, scores / sizes[times], sums / sizes[:, None])


def _expected(basis: FloatArray, scored: _Scored, fitted: BoolArray) -> FloatArray:
    width, rows, times = basis.shape[1], scored.rows, scored.times
    # In these coordinates the sums are as uncorrelated as the rows are.
    left, sizes, _ = np.linalg.svd(scored.sums, full_matrices=False)
    count = int(np.count_nonzero(sizes > 1e-9 * sizes.max(initial=1e-300)))
    sums = left[:, :count] * np.sqrt(len(left))

    def forward(flat: FloatArray) -> FloatArray:
        return _products(basis @ flat.reshape(width, count), rows[fitted], sums[times[fitted]])

    def backward(scores: FloatArray) -> FloatArray:
        per_row = np.zeros((len(basis), count))
        np.add.at(per_row, rows[fitted], scores[:, None] * sums[times[fitted]])
        gathered: FloatArray = (basis.T @ per_row).ravel()
        return gathered

    shape = int(fitted.sum()), width * count
    operator = LinearOperator(shape, matvec=forward, rmatvec=backward, dtype=np.float64)
    flat = lsqr(operator, scored.scores[fitted], atol=1e-10, btol=1e-10, iter_lim=_ITERATIONS)[0]
    return _products(basis @ flat.reshape(width, count), rows, sums[times])


def _products(turned: FloatArray, rows: IndexArray, sums: FloatArray) -> FloatArray:
    products: FloatArray = np.einsum("vk,vk->v", turned[rows], sums)
    return products
