"""Hidden lattices: the integer table behind scores, from the scores alone.

Scores are ``Z = T W`` with an integer table T, one row a person, and weights W that nobody told.
An integer relation u of some rows, ``u Z = 0``, that is short is a relation of T itself
[NguyenStern99]: otherwise ``u T`` would be a short vector of the integers that W maps to zero,
which has none. So the short relations of a few dozen rows give the lattice of T's columns in these
rows; where the columns are nearly orthogonal and of one length, as whitened ones are, its reduced
basis is T, up to the order and the signs of columns. T gives W, and W gives every other row: the
short integer row with these scores.

With p scores of each row it works for about 2p columns [CoronGini20, NotarnicolaWiese21].
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from taciturn.arrays import BoolArray, FloatArray, IndexArray, IntArray
from taciturn.rng import KeyedEntropy
from taciturn_audit.lattice import (
    IntegerMatrix,
    by_length,
    kernel,
    nearest_residues,
    reduce_rows,
)

MOST_COLUMNS = 48
"""Beyond so many columns a reduction takes minutes."""

# The method reaches two columns for each score of a row in theory; a little more is tried.
_COLUMNS_PER_SCORE = 2.5
# Relations are looked for in so many rows for each column.
_ROWS_PER_COLUMN = (3, 4)
# The weight of a score beside a row's integers, where scores are exact.
_EXACT = 1 << 80
# The bits of the largest score with its weight: sums of a few of them are int64.
_LARGEST = 60
# The weight of a rounded score beside a row's integers, of which it has as many digits.
_ROUNDED = 1 << 12
# A rounded score may be off by so many units, after rows were found from rounded weights.
_OFF = 8
_LEAST_SOLVED = 0.5
# Relations of the scores that are none of the table are longer, at least by this factor.
_GAP = 2.0
_SHORTENED_ROWS = 400
_STEPS, _TINY = 200, 1e-9
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
    if solved.mean() < _LEAST_SOLVED:
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
        steps = np.rint(covariance / np.maximum(variances, _TINY)[None, :])
        np.fill_diagonal(steps, 0.0)
        gains = 2.0 * steps * covariance - steps**2 * variances[None, :]
        place, other = np.unravel_index(int(np.argmax(gains)), gains.shape)
        if gains[place, other] <= _TINY:
            break
        columns[:, place] -= steps[place, other] * columns[:, other]
    return columns
