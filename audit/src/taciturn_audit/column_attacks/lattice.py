"""``lattice``: her columns from the exact scores of whole-table training, with no row known.

First the rounded, whitened table T, exactly (``hidden_lattice``). Then the whitening is undone,
with nothing but what is public. T is ``X L^-T`` with ``X^T X / 4n + l2 I = L L^T``, so that::

    T^T T / 4n = I - l2 (L^T L)^-1

gives ``L^T L``. With the order of the columns that is L, and with L the columns X: the last column
first, then the others without it. In the right order every column is standardised, as numbers are
prepared: that finds the order.

The tables of several Alices are not whitened: T is their columns, in one public unit.
"""

from __future__ import annotations

import numpy as np

from taciturn.arrays import FloatArray, IntArray
from taciturn.errors import counted
from taciturn.protocol.bob.observations import BobSignal
from taciturn_audit.column_attacks.base import Ambiguity, ColumnAttack, ColumnEstimate, KnownRows
from taciturn_audit.column_attacks.hidden_lattice import MOST_COLUMNS, HiddenTable, hidden_table
from taciturn_audit.column_attacks.scores import integer_scores
from taciturn_audit.views.bob_view import BobView

# Whitening undone from a table with fewer solved rows than this would be another table's.
_LEAST_SOLVED = 0.98
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
    return hidden_table(integer_scores(view), view.columns)


def standardised(hidden: HiddenTable) -> FloatArray:
    """The columns in units of their own deviation."""
    values = hidden.values.astype(np.float64)
    spread = values[hidden.solved].std(axis=0)
    return values / np.where(spread > 0, spread, 1.0)


def unwhitened(hidden: HiddenTable, l2: float) -> FloatArray:
    """Her columns from the whitened table, up to order and signs; ``l2`` is the agreed penalty."""
    if hidden.solved.mean() < _LEAST_SOLVED:
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
