"""Preparation: raw columns to finite numbers, fitted once, stored, and applied anywhere.

Fitting looks at the training rows only and leaves one rule per source column (see ``rules``). A
fitted preparation is plain data: it goes into a file beside the model and does the same to new
rows.

``fit`` and ``prepared_table`` have the table in memory. ``fit_and_prepare`` takes one of any size,
column by column: a raw column is read once, taken in the order of the rows, fitted by
``fit_column`` as any other, and written as it is prepared; at the end the columns are turned into
rows, a block at a time. So every median and every quantile is exact, and what is in memory at a
time is one column (80 MB for ten million numbers, and a few times that while it is fitted). Where
the table is large, columns and rows are in files (``taciturn.memmap``): twice its size for as long
as this takes, and once afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray, IndexArray
from taciturn.data.fitting import Fitted, fit_column
from taciturn.data.frames import fill_columns, require_column, require_distinct
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.lazy_table import Columns
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.recognition import usual_decimal_mark
from taciturn.data.rule_json import record_of, rule_from_json, rule_to_json
from taciturn.data.rules import Rule
from taciturn.data.tables import INTERCEPT, FeatureTable
from taciturn.errors import (
    ColumnError,
    ConfigError,
    DataError,
    FileError,
    ShapeError,
    TableError,
    nearest,
)
from taciturn.memmap import MEMORY, Scratch, drop_pages, row_blocks


class ErrorCollector:
    """Errors about a table, collected to be raised as one."""

    def __init__(self) -> None:
        self._noted: list[DataError] = []

    def __len__(self) -> int:
        return len(self._noted)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect a ``DataError`` that is raised meanwhile; a ``FileError`` is passed on."""
        try:
            yield
        except FileError:
            raise
        except DataError as problem:
            self._noted.append(problem)

    def error(self, where: str = "") -> DataError:
        """All errors as one; a single one unchanged."""
        return TableError.from_problems(self._noted, where=where)


_VERSION = 5


@dataclass(frozen=True, slots=True)
class Preparation:
    """A fitted preparation: one rule per source column, and remarks."""

    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_distinct(list(self.columns))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the output columns."""
        return tuple(name for rule in self.rules for name in rule.outputs)

    @property
    def sources(self) -> tuple[str, ...]:
        """Source column of each output column."""
        return tuple(rule.column for rule in self.rules for _ in rule.outputs)

    def apply(
        self,
        frame: pl.DataFrame,
        *,
        columns: Sequence[str] | None = None,
        ids: RowIds | None = None,
        rows: IndexArray | None = None,
        intercept: bool = False,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Prepare rows, with little memory besides the frame and the result.

        ``columns`` are the output columns to make and ``rows`` the rows to take, in this order; all
        where absent. ``ids`` are those of the rows that are taken, for the messages. With
        ``intercept`` a column of ones comes last. ``out`` takes the result, and may lie in a file.
        """
        outputs = self.columns
        wanted = outputs if columns is None else tuple(columns)
        require_distinct(list(wanted))
        places = {name: place for place, name in enumerate(wanted)}
        if unknown := places.keys() - {*outputs}:
            name = min(unknown, key=places.__getitem__)
            raise ColumnError(
                f"the preparation gives no column {name!r}", hint=nearest(name, outputs)
            )
        parts, positions = self._sources(frame, places), _positions(rows)
        height = frame.height if rows is None else len(rows)
        matrix = np.empty((height, len(wanted) + intercept)) if out is None else out
        try:
            for place, block in row_blocks(matrix):
                block[:, len(wanted) :] = 1.0
                for rule, series, due in parts:
                    for output, array in enumerate(rule.arrays(_rows(series, positions, place))):
                        if output in due:
                            block[:, due[output]] = array
        except DataError:
            # The message is about a whole column, and about the first that is not fit for use.
            for rule, series, _ in parts:
                deque(rule.arrays(_rows(series, positions, slice(0, height)), ids), maxlen=0)
            raise
        return matrix

    def _sources(
        self, frame: pl.DataFrame, places: Mapping[str, int]
    ) -> list[tuple[Rule, pl.Series, dict[int, int]]]:
        """Each rule that gives a wanted column, its raw column, and the place of each output."""
        # Asking a frame for its names makes them anew each time.
        present, sources = dict.fromkeys(frame.columns), []
        for rule in self.rules:
            due = {at: places[name] for at, name in enumerate(rule.outputs) if name in places}
            if due:
                require_column(present, rule.column)
                sources.append((rule, frame[rule.column], due))
        return sources

    def describe(self) -> list[str]:
        """Description of each source column's preparation, one line per column."""
        return [rule.describe() for rule in self.rules]

    def to_json(self) -> dict[str, Any]:
        """The preparation as plain data, for a file."""
        return {
            "version": _VERSION,
            "rules": [rule_to_json(rule) for rule in self.rules],
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: object) -> Preparation:
        """Read the preparation that ``to_json`` wrote."""
        record = record_of(data, ("version", "rules", "notes"), "preparation")
        version, rules, notes = (record[key] for key in ("version", "rules", "notes"))
        if type(version) is not int or version != _VERSION:
            raise ConfigError(
                f"the preparation is of version {str(version)[:20]}; this program reads {_VERSION}",
                where="preparation, version",
                hint="train again, or use it with the taciturn that wrote it",
            )
        lists = isinstance(rules, list) and isinstance(notes, list)
        if not lists or not all(isinstance(note, str) for note in notes):
            raise ConfigError(
                "the rules or notes are no list of them",
                where="preparation, rules and notes",
                hint="write the file again",
            )
        read = (rule_from_json(rule, f"rule {i}") for i, rule in enumerate(rules, start=1))
        return cls(tuple(read), tuple(notes))


def _positions(rows: IndexArray | None) -> pl.Series | None:
    """Positions in the type that polars needs, converted once for all columns."""
    return None if rows is None else pl.Series(rows, dtype=pl.UInt32)


def _rows(series: pl.Series, positions: pl.Series | None, part: slice) -> pl.Series:
    return series[part] if positions is None else series[positions[part]]


def prepared_table(
    plan: Preparation,
    frame: pl.DataFrame,
    ids: RowIds,
    *,
    columns: Sequence[str] | None = None,
    rows: IndexArray | None = None,
    intercept: bool = False,
) -> FeatureTable:
    """A party's table: prepared rows with these ids; the rest is as in ``Preparation.apply``."""
    names = plan.columns if columns is None else tuple(columns)
    if intercept and INTERCEPT in names:
        raise ColumnError(f"the table already has {INTERCEPT}", hint="add it once only")
    values = plan.apply(frame, columns=names, ids=ids, rows=rows, intercept=intercept)
    return FeatureTable(ids, (*names, INTERCEPT) if intercept else names, values)


def fit(
    frame: Columns,
    settings: PrepareSettings,
    vocabularies: Mapping[str, tuple[str, ...]] | None = None,
    *,
    ids: RowIds | None = None,
    rows: IndexArray | None = None,
) -> Preparation:
    """Fit a preparation on the training rows.

    Numbers and booleans become numeric columns, dates become days, text becomes categories. A
    column that is constant or entirely missing on these rows is kept as zeros, whatever the
    settings, and noted; so is free text, which is left out.

    Fixed ``vocabularies`` make the output columns independent of the rows. ``rows`` are the
    training rows among the frame's; all where absent.
    """
    taken, height = _positions(rows), frame.height if rows is None else len(rows)

    def column(name: str) -> pl.Series:
        # One column at a time: a frame of the rows would be a second copy of the table.
        return frame[name] if taken is None else frame[name][taken]

    fits = [fit for _, fit in _fits(frame.columns, column, height, settings, ids, vocabularies)]
    return _preparation(fits)


def _fits(
    names: Sequence[str],
    column: Callable[[str], pl.Series],
    training: int,
    settings: PrepareSettings,
    ids: RowIds | None,
    vocabularies: Mapping[str, tuple[str, ...]] | None = None,
) -> Iterator[tuple[pl.Series, Fitted]]:
    """Each column with its fit on the first rows; all errors at the end."""
    # Looked for where a column leaves its decimal mark open, and once only.
    mark = cache(lambda: usual_decimal_mark(column(name).head(training) for name in names))
    problems = ErrorCollector()
    for name in names:
        fitted = None
        with problems.collecting():
            series, fixed = column(name), (vocabularies or {}).get(name)
            fitted = fit_column(series.head(training), settings, fixed, ids, mark)
        if fitted is not None:
            yield series, fitted
    if problems:
        raise problems.error()


def _preparation(fits: Sequence[Fitted]) -> Preparation:
    return Preparation(
        tuple(rule for fit in fits for rule in fit.rules),
        tuple(note for fit in fits for note in fit.notes),
    )


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
    """
    room = _scratch_for(scratch, chosen, len(columns.columns))
    plan, prepared = _prepared_columns(columns, settings, chosen, room)
    if intercept and INTERCEPT in plan.columns:
        raise ColumnError(f"the table already has {INTERCEPT}", hint="add it once only")
    names = (*plan.columns, INTERCEPT) if intercept else plan.columns
    room, tables, start = _scratch_for(scratch, chosen, len(names)), [], 0
    for part in chosen:
        shape = (len(part.rows), len(names))
        values: FloatArray = (
            room.empty(part.name, shape, np.float64)
            if part.name
            else room.unnamed(shape, np.float64)
        )
        _transpose_into(prepared, start, values)
        tables.append(FeatureTable(part.ids, names, values))
        start += len(part.rows)
    return plan, tables


def _scratch_for(scratch: Scratch, chosen: Sequence[ChosenRows], width: int) -> Scratch:
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
    """The preparation, and each raw column's outputs by rows, for all of ``chosen``."""
    ids = chosen[0].ids
    order = pl.Series(np.concatenate([part.rows for part in chosen]), dtype=pl.UInt32)
    fits, prepared, later = list[Fitted](), list[FloatArray](), ErrorCollector()
    read = _fits(columns.columns, lambda name: columns[name].gather(order), len(ids), settings, ids)
    for series, fitted in read:
        fits.append(fitted)
        # Errors in rows outside the fit are reported only if the fit succeeded.
        with later.collecting():
            if fitted.rules and not later:
                plan, start = Preparation(fitted.rules), 0
                outputs = room.unnamed((len(plan.columns), len(series)), np.float64)
                for part in chosen:
                    stop = start + len(part.rows)
                    out = outputs.T[start:stop]
                    plan.apply(series[start:stop].to_frame(), ids=part.ids, out=out)
                    start = stop
                prepared.append(outputs)
    if later:
        raise later.error()
    return _preparation(fits), prepared


def _transpose_into(prepared: Sequence[FloatArray], start: int, values: FloatArray) -> None:
    columns = [column for outputs in prepared for column in outputs]
    for place, block in row_blocks(values):
        block[:, len(columns) :] = 1.0
        part = slice(start + place.start, start + place.stop)
        fill_columns(block, ((at, column[part]) for at, column in enumerate(columns)))
        for outputs in prepared:
            drop_pages(outputs)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RawData:
    """A dataset before any preparation.

    ``whole`` trains on every row, unprepared: none is held out. ``own`` marks a user's table, which
    nobody has looked over.
    """

    name: str
    frame: pl.DataFrame
    ids: RowIds
    labels: LabelTable
    settings: PrepareSettings
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: bool = False
    own: bool = False

    def __post_init__(self) -> None:
        if not self.frame.height == len(self.ids) == self.labels.rows:
            raise ShapeError(
                f"{self.name}: {self.frame.height} rows, {len(self.ids)} ids and "
                f"{self.labels.rows} labels",
                hint="give one id and one label per row",
            )

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.frame.height

    def __repr__(self) -> str:
        return f"RawData({self.name}, {self.rows} rows, {self.frame.width} raw columns)"
