"""How well an estimate of Alice's columns explains the scores that Bob saw, without her columns.

Her weights are ``X^T a`` with numbers ``a`` of Bob's, so that a score is ``x S P``: a row of the
estimate, one matrix for the whole training, and the sums of his own steps over the estimate's
rows. The matrix is fitted on every second row and judged on the others. Noise, or another person's
rows, explain nothing of them.

**Assumes.** Nothing of hers. So it does not say whose values the estimate's are: an estimate that
explains all scores may be hers up to a linear map, and that is for her columns to judge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse.linalg import LinearOperator, lsqr

from taciturn.arrays import BoolArray, FloatArray, IndexArray
from taciturn.parallel import one_thread
from taciturn_audit.column_attacks.linear import whitened
from taciturn_audit.column_attacks.scores import Batches, table_scores
from taciturn_audit.views.bob_view import BobView

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
    batches = Batches.of(view)
    times, places = np.nonzero(batches.scored)
    steps = np.where(batches.there, batches.steps, 0.0)
    moved = np.einsum("ij,ijk->ik", steps, basis[batches.rows])
    sums = np.zeros_like(moved)
    np.cumsum(moved[:-1], axis=0, out=sums[1:])
    return _scaled(batches.rows[times, places], times, batches.scores[times, places], sums)


def _scaled(rows: IndexArray, times: IndexArray, scores: FloatArray, sums: FloatArray) -> _Scored:
    """Each iteration in units of its own scores: late passes are smaller by many orders."""
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
