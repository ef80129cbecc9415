"""``lattice``: her columns from the exact scores of whole-table training, with no row known.

**The integer table behind scores.** Scores are ``Z = T W`` with an integer table T, one row a
person, and weights W that nobody told. An integer relation u of some rows, ``u Z = 0``, that is
short is a relation of T itself [NguyenStern99]: otherwise ``u T`` would be a short vector of the
integers that W maps to zero, which has none. So the short relations of a few dozen rows give the
lattice of T's columns in these rows; where the columns are nearly orthogonal and of one length, as
whitened ones are, its reduced basis is T, up to the order and the signs of columns. T gives W, and
W gives every other row: the short integer row with these scores. With p scores of each row it works
for about 2p columns [CoronGini20, NotarnicolaWiese21].

**The whitening undone**, with nothing but what is public. T is the rounded ``X L^-T`` with
``X^T X / 4n + l2 I = L L^T``, so that::

    T^T T / 4n = I - l2 (L^T L)^-1

gives ``L^T L``. With the order of the columns that is L, and with L the columns X: the last column
first, then the others without it. In the right order every column is standardised, as numbers are
prepared: that finds the order. The tables of several Alices are not whitened: T is their columns,
in one public unit.

**Centred columns** (where there is an intercept). Indicators less their means are integers no more,
and the lattice of T hides behind one of a dimension more. The differences of rows to one of them
are as before: they give T up to an offset of each column, which is known, since its mean is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.errors import counted
from taciturn.protocol.bob.observations import BobSignal
from taciturn.rng import KeyedEntropy
from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.scores import integer_scores
from taciturn_audit.lattice import IntegerMatrix, by_length, kernel, nearest_residues, reduce_rows
from taciturn_audit.views.bob_view import BobView

MOST_COLUMNS = 48
"""Maximum number of columns: beyond it a reduction takes minutes."""

# The method reaches two columns for each score of a row in theory; a little more is tried.
_COLUMNS_PER_SCORE = 2.5
# Number of rows per column in the search for relations.
_ROWS_PER_COLUMN = (3, 4)
# The weight of a score beside a row's integers, where scores are exact.
_EXACT = 1 << 80
# The bits of the largest score with its weight: sums of a few of them are int64.
_LARGEST = 60
# The weight of a rounded score beside a row's integers, of which it has as many digits.
_ROUNDED = 1 << 12
# Maximum error of a rounded score in units, after rows were found from rounded weights.
_OFF = 8
_LEAST_EXPLAINED = 0.5
# Relations of the scores that are none of the table are longer, at least by this factor.
_GAP = 2.0
_SHORTENED_ROWS = 400
_STEPS, _NO_GAIN = 200, 1e-9
_SEED = 31


@dataclass(frozen=True, slots=True)
class HiddenTable:
    """A table that explains all scores, up to the order and the signs of its columns.

    Rows that are not solved are zero.
    """

    values: IntArray = field(repr=False)
    solved: BoolArray = field(repr=False)


def hidden_table(scores: IntArray, columns: int) -> HiddenTable | None:
    """The integer table behind scores, rows by passes; None where none is found.

    Scores are exact products, or products rounded to integers.
    """
    passes = scores.shape[1]
    if columns > min(MOST_COLUMNS, _COLUMNS_PER_SCORE * passes):
        return None
    distinct = np.unique(scores, axis=0, return_index=True)[1]
    order = KeyedEntropy.from_seed(_SEED).permutation(len(distinct))
    for exact in (True, False):
        for factor in _ROWS_PER_COLUMN:
            chosen = distinct[order[: factor * columns + 5]]
            table = _from_rows(scores, chosen, columns, exact=exact)
            if table is not None:
                return table
    return None


def _from_rows(
    scores: IntArray, chosen: IndexArray, columns: int, *, exact: bool
) -> HiddenTable | None:
    part, passes = scores[chosen], scores.shape[1]
    if len(chosen) <= columns:
        return None
    identity = np.eye(len(chosen), dtype=np.int64).astype(object)
    weighted = part.astype(object) * (_EXACT if exact else 1)
    reduced = by_length(reduce_rows(np.hstack([weighted, identity])))
    count = len(chosen) - columns
    longest, beyond = ((reduced[place] ** 2).sum() for place in (count - 1, count))
    if beyond < _GAP**2 * longest:
        return None
    basis = kernel(reduced[:count, passes:].T)[:columns].T
    weights = _weights(basis, part, exact=exact)
    if weights is None:
        return None
    room = _LARGEST - int(np.abs(scores).max(initial=1)).bit_length()
    weight = 1 << max(0, room) if exact else _ROUNDED
    values, solved = integer_rows(scores, weights, weight, tolerance=0 if exact else _OFF)
    if solved.mean() < _LEAST_EXPLAINED:
        return None
    table = np.zeros_like(values)
    short = (values[solved] @ _shortening(values[solved])).astype(np.float64)
    table[solved] = np.rint(pairwise_reduced(short))
    return HiddenTable(table, solved)


def _weights(basis: IntegerMatrix, scores: IntArray, *, exact: bool) -> FloatArray | None:
    """W of ``basis W = scores``; None where the basis does not explain the scores."""
    if basis.shape[1] == 0 or max(abs(entry) for entry in basis.ravel()) >= 1 << 53:
        return None
    table = basis.astype(np.int64)
    sizes = np.linalg.norm(table.astype(np.float64), axis=0)
    inverse = np.linalg.pinv(table / sizes) / sizes[:, None]
    weights = inverse @ scores
    if not exact:
        return weights if np.abs(scores - table @ weights).max() < _OFF else None
    whole = np.zeros(weights.shape, dtype=np.int64)
    # Exact integers by rounds: the differences are exact modulo 2^64, and small.
    for _ in range(4):
        whole += np.rint(inverse @ (scores - table @ whole)).astype(np.int64)
    return whole.astype(np.float64) if (table @ whole == scores).all() else None


def integer_rows(
    scores: IntArray, weights: FloatArray, weight: int, size: int = 1, tolerance: float = 0
) -> tuple[IntArray, BoolArray]:
    """The short integer row x with ``x W`` next to its scores, for every row; and which are solved.

    ``weights`` is W, columns by passes, in the unit of the scores. A unit of a score counts
    ``weight``, one of x ``size``. Scores of a solved row are off by at most ``tolerance``.
    """
    columns, passes = weights.shape
    rounded = np.array([list(map(int, row)) for row in np.rint(weights * weight)], dtype=object)
    beside = (size * np.eye(columns, dtype=np.int64)).astype(object)
    basis = reduce_rows(np.hstack([rounded, beside]))
    if max(abs(entry) for entry in basis.ravel()) >= 1 << _LARGEST:
        return np.zeros((len(scores), columns), dtype=np.int64), np.zeros(len(scores), dtype=bool)
    targets = np.hstack([scores * weight, np.zeros((len(scores), columns), dtype=np.int64)])
    residues = nearest_residues(basis.astype(np.int64), targets)
    solved: BoolArray = np.abs(residues[:, :passes]).max(axis=1) <= tolerance * weight
    return -residues[:, passes:] // size, solved


def _shortening(values: IntArray) -> IntArray:
    part = values[:: max(1, len(values) // _SHORTENED_ROWS)]
    short = reduce_rows(part.T)[: values.shape[1]].astype(np.float64)
    change = np.linalg.lstsq(part.astype(np.float64), short.T, rcond=None)[0]
    whole: IntArray = np.rint(change).astype(np.int64)
    return whole


def pairwise_reduced(columns: FloatArray) -> FloatArray:
    """Columns less multiples of single others, as long as that takes variance off them.

    LLL bounds how far its vectors are from the shortest; among few columns single steps get there.
    """
    columns = columns.copy()
    for _ in range(_STEPS):
        covariance = np.atleast_2d(np.cov(columns.T))
        variances = np.diagonal(covariance)
        steps = np.rint(covariance / np.maximum(variances, _NO_GAIN)[None, :])
        np.fill_diagonal(steps, 0.0)
        gains = 2.0 * steps * covariance - steps**2 * variances[None, :]
        place, other = np.unravel_index(int(np.argmax(gains)), gains.shape)
        if gains[place, other] <= _NO_GAIN:
            break
        columns[:, place] -= steps[place, other] * columns[:, other]
    return columns


# Whitening undone from a table with fewer solved rows than this would be another table's.
_LEAST_SOLVED = 0.98
# Whitened columns are of one length, up to this factor.
_ONE_LENGTH = 16.0
_TINY = 1e-12


class LatticeAttack(ColumnAttack):
    """The hidden lattice of the scores, and the whitening undone."""

    name = "lattice"
    reference = "hidden lattice [NguyenStern99], whitening undone"
    needs = frozenset({BobSignal.TABLE_SCORES})
    uses_known_rows = False
    works_without = True

    def _estimate(self, view: BobView, known: KnownRows) -> ColumnEstimate:
        hidden = whitened_table(view)
        if hidden is None:
            return ColumnEstimate(
                np.empty((view.features.rows, 0)),
                ambiguity=Ambiguity.SIGN,
                remark="no integer table behind the scores was found",
                limited=view.columns > MOST_COLUMNS,
            )
        several = view.agreement.alices > 1
        values = standardised(hidden) if several else unwhitened(hidden, view.agreement.l2)
        solved = counted(int(hidden.solved.sum()), "row")
        return ColumnEstimate(
            values,
            ambiguity=Ambiguity.SIGN,
            remark=f"an integer table with the exact scores of {solved}",
        )


def whitened_table(view: BobView) -> HiddenTable | None:
    """The integers that Alice's programs multiply with, as far as the scores give them."""
    scores = integer_scores(view)
    table = hidden_table(scores, view.columns)
    if table is not None or not view.agreement.intercept:
        return table
    apart = hidden_table(scores - scores[0], view.columns)
    if apart is None:
        return None
    solved = apart.solved
    offsets = np.rint(apart.values[solved].mean(axis=0)).astype(np.int64)
    return HiddenTable(np.where(solved[:, None], apart.values - offsets, 0), solved)


def standardised(hidden: HiddenTable) -> FloatArray:
    """The columns in units of their own deviation."""
    values = hidden.values.astype(np.float64)
    spread = values[hidden.solved].std(axis=0)
    return values / np.where(spread > 0, spread, 1.0)


def unwhitened(hidden: HiddenTable, l2: float) -> FloatArray:
    """Alice's columns from the whitened table, up to order and signs; ``l2`` is the penalty."""
    lengths = np.linalg.norm(hidden.values.astype(np.float64), axis=0)
    if hidden.solved.mean() < _LEAST_SOLVED or lengths.max() > _ONE_LENGTH * lengths.min():
        # Shorter columns than whitened ones in the same lattice: integers, as they were counted.
        return standardised(hidden)
    table = _in_units(hidden.values)
    rows, columns = table.shape
    inner = np.eye(columns) - table.T @ table / (4.0 * rows)
    with np.errstate(all="ignore"):
        try:
            square = l2 * np.linalg.inv(inner)
        except np.linalg.LinAlgError:
            return standardised(hidden)
        return _by_columns(table, (square + square.T) / 2.0, 0.25 + l2)


def _in_units(values: IntArray) -> FloatArray:
    """The table in the power of two that makes its columns of length 2."""
    table = values.astype(np.float64)
    size = float(np.median(np.sqrt(np.mean(table**2, axis=0)))) / 2.0
    return table * float(2.0 ** -np.rint(np.log2(max(size, 1.0))))


def _by_columns(table: FloatArray, square: FloatArray, size: float) -> FloatArray:
    """Columns one by one, the last of the table's first; ``square`` is ``L^T L``.

    ``size`` is the sum of squares of a row of L whose column is standardised.
    """
    left = list(range(table.shape[1]))
    columns: list[FloatArray] = []
    while left:
        part = square[np.ix_(left, left)]
        pivots = np.maximum(np.diagonal(part), _TINY)
        misfit = np.abs(np.sum(part**2, axis=1) / pivots - size)
        last = int(np.argmin(np.nan_to_num(misfit, nan=np.inf)))
        row = part[last] / np.sqrt(pivots[last])
        columns.append(table[:, left] @ row)
        square[np.ix_(left, left)] -= np.outer(row, row)
        left.pop(last)
    values = np.nan_to_num(np.column_stack(columns[::-1]), posinf=0.0, neginf=0.0)
    spread = values.std(axis=0)
    # A column that was not standardised, or stood in another place, comes out at any size.
    return np.where(
        np.abs(np.log2(np.maximum(spread, _TINY))) < 1.0, values, values / (spread + _TINY)
    )
