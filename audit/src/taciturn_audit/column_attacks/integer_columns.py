"""``integer-columns``: counts and categories from scores of any precision, with no row known.

Before they were standardised, counts and indicators were small integers. Two searches:

- **Relations.** A short integer u with ``u 1 = 0`` and ``u Z`` next to zero, in all passes, is a
  relation of the integer columns themselves. The relations of a few dozen rows give the columns in
  these rows, by their orthogonal lattice; these give the weights by regression, and the weights
  every other row. Neither exact scores nor as many passes as columns are needed, but every column
  has to be one of small integers.
- **The span.** Where the span of her columns is known (as many passes as columns, or the table
  that ``lattice`` found), an integer vector next to it is a column, or a combination of columns,
  whatever the other columns are.

What is found has no name, unit or offset.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.errors import counted
from taciturn.protocol.bob.observations import BobSignal
from taciturn.rng import KeyedEntropy
from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.lattice import integer_rows, pairwise_reduced, whitened_table
from taciturn_audit.column_attacks.scores import table_scores, whitened
from taciturn_audit.lattice import by_length, kernel, reduce_rows
from taciturn_audit.views.bob_view import BobView

MOST_COLUMNS = 128
"""Maximum number of columns: beyond it a reduction takes minutes."""

# How far scores are taken to be off, one after the other: rounding, then noise.
_NOISES = (1e-4, 1e-3, 1e-2, 4e-2, 1e-1)
# Lattice entries are rounded to this fraction of their unit.
_GRAIN = 16
_ROWS_PER_COLUMN, _MORE_ROWS = 3, 12
_ROUNDS = 6
# A row's scores may be off by this many times the noise, and all of them by one on average:
# integers that are no columns explain the rows that they were found in, and the others less well.
_OFF = 4.0
_LEAST_SOLVED = 0.9
# A vector is one of integers where it is this near to some in all but a few rows.
_NEAR, _NEAR_ROWS = 0.2, 0.97
# How exactly the span is known: the rounding of the table, in units of its columns' deviation.
_SPAN_NOISE = 3e-4
_TRIALS = 3
_REDUCED_ROWS = 400
_SEED = 32


class IntegerColumnsAttack(ColumnAttack):
    """Short integer relations of the scores, or integer vectors in their span."""

    name = "integer-columns"
    reference = "integer relations [LLL82]"
    needs = frozenset({BobSignal.TABLE_SCORES})
    uses_known_rows = False
    works_without = True

    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        scores = table_scores(view)
        limited = view.columns > MOST_COLUMNS
        values = None if limited else _by_relations(scores, view.columns)
        way = "relations of rows"
        if values is None:
            span = None if limited else _span(view, scores)
            values = np.empty((len(scores), 0)) if span is None else _in_span(span)
            way = "the span of the scores"
        remark = f"{counted(values.shape[1], 'column')} of integers, by {way}"
        return ColumnEstimate(values, ambiguity=Ambiguity.SCALE, remark=remark, limited=limited)


def _order(rows: int, purpose: str) -> IndexArray:
    return KeyedEntropy.from_seed(_SEED).fork(purpose).permutation(rows)


# --- relations ----------------------------------------------------------------------------------


def _by_relations(scores: FloatArray, columns: int) -> FloatArray | None:
    size = _ROWS_PER_COLUMN * columns + _MORE_ROWS
    if len(scores) < 2 * size:
        return None
    for noise in _NOISES:
        chosen = _order(len(scores), "relations")[:size]
        best = 0.0
        for _ in range(_ROUNDS):
            continued = _continued(scores, chosen, columns, noise)
            if continued is None or continued[1].mean() <= best:
                break
            values, solved = continued
            best = float(solved.mean())
            if best == 1.0:
                break
            # Rows with a level that no chosen row has cannot be solved: some join the chosen ones.
            others = np.flatnonzero(~solved)
            joining = others[_order(len(others), "joining")[: size // 4]]
            chosen = np.unique(np.concatenate([joining, chosen[: size - len(joining)]]))
        if best >= _LEAST_SOLVED:
            return _reduced(values, solved)
    return None


def _continued(
    scores: FloatArray, chosen: IndexArray, columns: int, noise: float
) -> tuple[IntArray, BoolArray] | None:
    unit = noise / _GRAIN
    whole = np.rint(scores / unit).astype(np.int64)
    part, count = whole[chosen], len(chosen)
    constant = np.full((count, 1), round(1.0 / unit))
    beside = _GRAIN * np.eye(count, dtype=np.int64)
    reduced = by_length(reduce_rows(np.hstack([part, constant, beside])))
    relations = reduced[: count - columns - 1, part.shape[1] + 1 :] // _GRAIN
    basis = kernel(relations.T)[: columns + 1].T
    if basis.shape[1] < columns + 1 or np.abs(basis.astype(np.float64)).max() > 2.0**31:
        return None
    weights = np.linalg.lstsq(basis.astype(np.float64), part.astype(np.float64), rcond=None)[0]
    values, solved = integer_rows(whole, weights, 1, _GRAIN, tolerance=_OFF * _GRAIN)
    off = (whole - values @ weights)[solved] / _GRAIN
    return (values, solved) if solved.any() and np.mean(off**2) < 1.0 else None


# --- the span -----------------------------------------------------------------------------------


def _span(view: BobView, scores: FloatArray) -> FloatArray | None:
    table = whitened_table(view)
    if table is not None:
        return whitened(table.values.astype(np.float64), view.columns)
    components = whitened(scores, view.columns)
    return components if components.shape[1] == view.columns else None


def _in_span(span: FloatArray) -> FloatArray:
    rows, columns = span.shape
    size = _ROWS_PER_COLUMN * columns + _MORE_ROWS
    if rows <= size:
        return np.empty((rows, 0))
    order, vectors = _order(rows, "span"), []
    starts = range(0, min(rows, _TRIALS * (size + 1)) + 1, size + 1)
    for begin, end in pairwise(starts):
        chosen = order[begin:end]
        apart = span[chosen[1:]] - span[chosen[0]]
        axes, _ = np.linalg.qr(apart)
        outside = (np.eye(size) - axes @ axes.T) / _SPAN_NOISE
        entries = np.rint(_GRAIN * np.hstack([np.eye(size), outside])).astype(np.int64)
        for vector in reduce_rows(entries)[: columns + 3, :size]:
            factors = np.linalg.lstsq(apart, vector.astype(np.float64) / _GRAIN, rcond=None)[0]
            values = (span - span[chosen[0]]) @ factors
            near = np.abs(values - np.rint(values)) < _NEAR
            if near.mean() > _NEAR_ROWS and np.rint(values).std() > 0:
                vectors.append(np.rint(values).astype(np.int64))
    return (
        _reduced(np.column_stack(vectors), np.ones(rows, dtype=bool))
        if vectors
        else np.empty((rows, 0))
    )


def _reduced(values: IntArray, solved: BoolArray) -> FloatArray:
    """Independent columns of least variance in the lattice that columns span, offsets aside.

    Rows that are not solved get the columns' means.
    """
    known = values[solved].astype(np.float64)
    part = known[:: max(1, len(known) // _REDUCED_ROWS)]
    centred = np.rint(_GRAIN**2 * (part - part.mean(axis=0))).astype(np.int64)
    beside = np.eye(values.shape[1], dtype=np.int64)
    change = reduce_rows(np.hstack([centred.T, beside]))[:, len(part) :].astype(np.float64).T
    columns = known @ change
    columns = columns[:, np.argsort(columns.std(axis=0), kind="stable")]
    columns = pairwise_reduced(columns[:, _independent(columns)])
    reduced = np.tile(columns.mean(axis=0), (len(values), 1))
    reduced[solved] = columns
    return reduced


def _independent(columns: FloatArray) -> list[int]:
    rows, chosen = len(columns), list[int]()
    axes = np.full((rows, 1), 1.0 / np.sqrt(rows))
    for place, column in enumerate(columns.T):
        rest = column - axes @ (axes.T @ column)
        rest -= axes @ (axes.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > 1e-6 * float(np.linalg.norm(column)) and length > 1e-6:
            chosen.append(place)
            axes = np.column_stack([axes, rest / length])
    return chosen
