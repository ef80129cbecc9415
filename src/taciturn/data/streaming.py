"""Streaming: a party's table prepared column by column, whatever its size.

A raw column is read once, taken in the order of the rows, fitted by ``fit_column`` as any other,
and written as it is prepared; at the end the columns are turned into rows, a block at a time. So
every median and every quantile is exact, and what is in memory at a time is one column (80 MB for
ten million numbers, and a few times that while it is fitted).

Where the table is large, columns and rows are in files (``taciturn.mapped``): twice its size for as
long as this takes, and once afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.choices import PrepareSettings
from taciturn.data.fitting import fit_column
from taciturn.data.frames import fill_columns
from taciturn.data.ids import RowIds
from taciturn.data.parts import Columns
from taciturn.data.prepare import Preparation
from taciturn.data.problems import Problems
from taciturn.data.rules import Rule
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.errors import ColumnError
from taciturn.mapped import MEMORY, Scratch, forget, row_blocks


@dataclass(frozen=True, slots=True, eq=False)
class ChosenRows:
    """Rows that become a table.

    ``rows`` are positions in the raw table. ``name`` is that of the table's file; empty for one
    that nobody can open again.
    """

    ids: RowIds
    rows: IndexArray
    name: str = ""


def fit_and_prepare(
    columns: Columns,
    settings: PrepareSettings,
    chosen: Sequence[ChosenRows],
    *,
    intercept: bool = False,
    scratch: Scratch = MEMORY,
) -> tuple[Preparation, list[FeatureTable]]:
    """Fit a preparation on the first of the chosen rows; prepare these and the others.

    Returns the preparation and one table for each of ``chosen``. With ``intercept`` a column of
    ones comes last.

    >>> people = pl.DataFrame({"age": [30, 50, 70], "sex": ["M", "F", "M"]})
    >>> rows = ChosenRows(RowIds.of(["a", "b"]), np.array([1, 0]))
    >>> plan, (table,) = fit_and_prepare(people, PrepareSettings(), [rows])
    >>> table.columns, table.values.tolist()
    (('age', 'sex=M'), [[1.0, 0.0], [-1.0, 1.0]])
    """
    room = _room(scratch, chosen, len(columns.columns))
    plan, prepared = _prepared_columns(columns, settings, chosen, room)
    if intercept and INTERCEPT in plan.columns:
        raise ColumnError(f"the table already has {INTERCEPT}", hint="add it once only")
    names = (*plan.columns, INTERCEPT) if intercept else plan.columns
    room, tables, start = _room(scratch, chosen, len(names)), [], 0
    for part in chosen:
        shape = (len(part.rows), len(names))
        values: FloatArray = (
            room.empty(part.name, shape, np.float64)
            if part.name
            else room.unnamed(shape, np.float64)
        )
        _turn(prepared, start, values)
        tables.append(FeatureTable(part.ids, names, values))
        start += len(part.rows)
    return plan, tables


def _room(scratch: Scratch, chosen: Sequence[ChosenRows], width: int) -> Scratch:
    """Files for every array of a large table, however short it is: there are many of them."""
    rows = sum(len(part.rows) for part in chosen)
    large = rows * width * np.dtype(np.float64).itemsize >= scratch.least
    return replace(scratch, least=0) if large else MEMORY


def _prepared_columns(
    columns: Columns,
    settings: PrepareSettings,
    chosen: Sequence[ChosenRows],
    room: Scratch,
) -> tuple[Preparation, list[FloatArray]]:
    """The preparation, and for each raw column its outputs by rows, one set behind the other."""
    train = chosen[0]
    order = pl.Series(np.concatenate([part.rows for part in chosen]), dtype=pl.UInt32)
    rules: list[Rule] = []
    notes: list[str] = []
    prepared: list[FloatArray] = []
    # What is wrong with rows that were not fitted on is told where the fitting went well.
    problems, later = Problems(), Problems()
    for name in columns.columns:
        series = columns[name].gather(order)
        with problems.noted():
            fitted = fit_column(series.head(len(train.rows)), settings, None, train.ids)
            rules.extend(fitted.rules)
            notes.extend(fitted.notes)
            with later.noted():
                if fitted.rules and not problems and not later:
                    plan = Preparation(fitted.rules)
                    shape = (len(plan.columns), len(series))
                    outputs = room.unnamed(shape, np.float64)
                    _apply(plan, series, chosen, outputs)
                    prepared.append(outputs)
    for noted in (problems, later):
        if noted:
            raise noted.error()
    return Preparation(tuple(rules), tuple(notes)), prepared


def _apply(
    plan: Preparation, series: pl.Series, chosen: Sequence[ChosenRows], outputs: FloatArray
) -> None:
    start = 0
    for part in chosen:
        place = slice(start, start + len(part.rows))
        frame = series.slice(start, len(part.rows)).to_frame()
        plan.apply(frame, ids=part.ids, out=outputs.T[place])
        start = place.stop


def _turn(prepared: Sequence[FloatArray], start: int, values: FloatArray) -> None:
    columns = [column for outputs in prepared for column in outputs]
    for place, block in row_blocks(values):
        block[:, len(columns) :] = 1.0
        part = slice(start + place.start, start + place.stop)
        fill_columns(block, ((at, column[part]) for at, column in enumerate(columns)))
        for outputs in prepared:
            forget(outputs)
