"""Row sources of a service: a table in memory, or a database.

A source gives prepared rows by their ids. What it cannot give it names: an id that it does not
have, or a row that the model's preparation does not take (``FetchedRows``).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.csv_files import MISSING
from taciturn.data.database import Database, DatabaseQuery, as_text
from taciturn.data.ids import AS_THEY_ARE, RowIds
from taciturn.data.number_formats import number_text
from taciturn.data.prepare import prepared_table
from taciturn.data.source import TableSource
from taciturn.errors import ColumnError, ConfigError, DataError, MissingValueError
from taciturn.model.share import ModelShare
from taciturn.party.aligned_rows import AlignedRows
from taciturn.party.config import PartyConfig
from taciturn.party.new_rows import is_text, new_rows
from taciturn.protocol.outcome import WeightShare
from taciturn.setting_syntax import Hint
from taciturn_ops.serve.rounds import HEADROOM_BITS
from taciturn_ops.serve.section import ServeSection

ABSENT = "this side has none"
# As a CSV file has numbers: no underscores, no digits of other scripts.
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class FetchedRows:
    """Rows that were asked for, prepared, a line for each; zeros where there is none.

    ``unknown`` has the places of those that this side does not have, ``unfit`` of those that cannot
    be scored, each with the reason.
    """

    values: FloatArray = field(repr=False)
    unknown: Mapping[int, str] = field(default_factory=dict)
    unfit: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def merged(cls, parts: Sequence[tuple[Sequence[int], FetchedRows]]) -> FetchedRows:
        """Rows from several sources, each with the positions of its rows."""
        if len(parts) == 1:
            return parts[0][1]
        rows = sum(len(places) for places, _ in parts)
        values = np.zeros((rows, parts[0][1].values.shape[1]))
        unknown, unfit = dict[int, str](), dict[int, str]()
        for places, part in parts:
            values[[*places]] = part.values
            unknown |= {places[at]: reason for at, reason in part.unknown.items()}
            unfit |= {places[at]: reason for at, reason in part.unfit.items()}
        return cls(values, unknown, unfit)


class RowSource(Protocol):
    """Rows by id."""

    @property
    def at_once(self) -> bool:
        """Whether a lookup does not wait."""

    def take(self, ids: Sequence[str]) -> FetchedRows:
        """Rows by the ids that both sides know; DataError where the source cannot be read now."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class ServedRows:
    """Prepared rows, made ready for the weights.

    ``share`` is this side's share of its weights, None where it has them in clear. ``common`` are
    the rows that both sides have, None where any may be asked for. No value may exceed
    ``2^size``; 0 where the size does not matter.
    """

    def __init__(self, share: WeightShare | None, common: frozenset[str] | None = None) -> None:
        self._common, self.size = (
            common,
            0 if share is None else share.magnitude_bits + HEADROOM_BITS,
        )
        whitening = None if share is None else share.whitening
        self._transform = None if whitening is None else whitening.of_rows()

    def restrict(self, common: frozenset[str] | None) -> None:
        """Replace the list of common rows."""
        self._common = common

    def checked(self, fetched: FetchedRows, ids: Sequence[str]) -> FetchedRows:
        """Rows in the coordinates of the weights; those are named that must not be scored."""
        values = fetched.values if self._transform is None else self._transform(fetched.values)
        unknown, unfit, common = {**fetched.unknown}, {**fetched.unfit}, self._common
        if common is not None:
            for place, name in enumerate(ids):
                if name not in common:
                    unknown[place] = "not among the rows that both have"
        if self.size and values.size:
            over = ~(np.abs(values).max(axis=1) <= 2.0**self.size)
            for place in {*np.flatnonzero(over).tolist()} - unknown.keys():
                unfit.setdefault(place, "a value is far beyond those of training")
        return FetchedRows(values, unknown, unfit)


class Preparer:
    """Raw values, as a database or a request has them, to prepared rows."""

    def __init__(self, model: ModelShare, na_values: Sequence[str] = MISSING) -> None:
        self._model, self._null = model, frozenset(na_values)
        rules = model.preparation.rules
        texts = {rule.column for rule in rules if is_text(rule)}
        self._decimals = {rule.column: rule.reading.decimal for rule in rules}
        # A date and its parts come from one column.
        self.columns = tuple(dict.fromkeys(rule.column for rule in rules))
        self._texts = {column: column in texts for column in self.columns}

    def rows(self, ids: Sequence[str], records: Sequence[Mapping[str, Any]]) -> FetchedRows:
        """Prepare rows; a column that is absent from a record is missing."""
        values = np.zeros((len(ids), len(self._model.columns)))
        try:
            values[:] = self._prepared(ids, records)
        except DataError:
            # Which of them it is: one by one.
            unfit = {}
            for place, record in enumerate(records):
                try:
                    values[place] = self._prepared([ids[place]], [record])
                except DataError as problem:
                    unfit[place] = _reason(problem)
            return FetchedRows(values, unfit=unfit)
        return FetchedRows(values)

    def _prepared(self, ids: Sequence[str], records: Sequence[Mapping[str, Any]]) -> FloatArray:
        frame = pl.DataFrame(
            {
                column: pl.Series(
                    column,
                    [self._value(record.get(column), column) for record in records],
                    pl.String if text else pl.Float64,
                )
                for column, text in self._texts.items()
            }
        )
        table = prepared_table(
            self._model.preparation,
            frame,
            RowIds.from_values([*ids]),
            intercept=self._model.intercept,
        )
        return table.values

    def _value(self, value: object, column: str) -> str | float | None:
        if value is None or (isinstance(value, str) and value.strip() in self._null):
            return None
        if self._texts[column]:
            text, decimal = as_text(value, column), self._decimals[column]
            return text if isinstance(value, str) else number_text(text, decimal)
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            raise _no_number(value, column)
        try:
            if isinstance(value, str | int | float | Decimal):
                return float(value)
        except OverflowError:
            pass
        raise _no_number(value, column)


def _no_number(value: object, column: str) -> ColumnError:
    return ColumnError(
        f"column {column!r} holds {type(value).__name__}, not a number", where=column
    )


def _reason(problem: DataError) -> str:
    """Reason why a row is invalid, without its values: the kind and the place."""
    if isinstance(problem, MissingValueError):
        return "a value is missing, and the model's preparation fills no gaps"
    return f"a value is not what the model's preparation takes ({type(problem).__name__})"


class TableRows:
    """A table in memory, prepared once."""

    at_once = True

    def __init__(self, source: TableSource, config: PartyConfig, model: ModelShare) -> None:
        rows = new_rows(source, config.data.id, model, normalisation=config.normalisation)
        self._values = rows.table.values
        self._places = {name: place for place, name in enumerate(rows.table.ids.series.to_list())}

    def take(self, ids: Sequence[str]) -> FetchedRows:
        """Rows by id."""
        places = [self._places.get(name, -1) for name in ids]
        # The last line stands in for a row that is not there, and is blanked.
        values = self._values[places]
        unknown = {place: ABSENT for place, row in enumerate(places) if row < 0}
        values[[*unknown]] = 0.0
        return FetchedRows(values, unknown)

    def close(self) -> None:
        """Do nothing: no resource is open."""


class DatabaseRows:
    """Rows of a database, queried by id."""

    at_once = False

    def __init__(self, database: Database, id_column: str, preparer: Preparer) -> None:
        self._database, self._id, self._preparer = database, id_column, preparer
        wanted = (id_column, *preparer.columns)
        lacking = [name for name in wanted if name not in database.columns]
        if lacking:
            self.close()
            raise ColumnError(
                f"the query gives no column {lacking[0]!r}"
                + (f", and lacks {len(lacking) - 1} more" if lacking[1:] else ""),
                where=database.where,
                hint="the model was trained on these columns: select them too",
            )

    def take(self, ids: Sequence[str]) -> FetchedRows:
        """Rows by id."""
        records, repeated = self._database.lookup(ids, self._id, self._preparer.columns)
        known = [place for place, name in enumerate(ids) if name in records]
        names = [ids[place] for place in known]
        prepared = self._preparer.rows(names, [records[name] for name in names])
        values = np.zeros((len(ids), prepared.values.shape[1]))
        values[known] = prepared.values
        unfit = {known[place]: reason for place, reason in prepared.unfit.items()}
        unfit |= {place: "the query gives it twice" for place in known if ids[place] in repeated}
        absent = dict.fromkeys({*range(len(ids))} - {*known}, ABSENT)
        return FetchedRows(values, absent, unfit)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


class ReplaceableRows:
    """A source that another one may replace between two lookups."""

    def __init__(self, source: RowSource) -> None:
        self._source, self._lock = source, threading.Lock()

    @property
    def at_once(self) -> bool:
        """Whether a lookup does not wait."""
        return self._source.at_once

    def take(self, ids: Sequence[str]) -> FetchedRows:
        """Rows by id."""
        # A database has one connection: nothing is lost by one lookup at a time.
        with self._lock:
            return self._source.take(ids)

    def replace(self, source: RowSource) -> None:
        """Take rows from another source, and close this one."""
        with self._lock:
            former, self._source = self._source, source
            former.close()

    def close(self) -> None:
        """Close the source."""
        self._source.close()


def open_source(config: PartyConfig, model: ModelShare) -> RowSource:
    """The source that a party's file names."""
    source = config.section(ServeSection).table(config)
    if not isinstance(source.location, DatabaseQuery):
        return TableRows(source, config, model)
    if config.normalisation != AS_THEY_ARE:
        raise ConfigError(
            "ids cannot be normalised in a database query",
            setting="normalise_ids",
            hint=Hint(
                "leave {normalise_ids} out, and keep ids spelled in the same way in the database"
            ),
        )
    preparer = Preparer(model, source.dialect.missing)
    return DatabaseRows(source.location.open(), config.data.id, preparer)


def common_ids(config: PartyConfig) -> frozenset[str] | None:
    """Common ids of both sides by a list; None if any id may be requested."""
    aligned = config.section(ServeSection).aligned
    if aligned is None:
        return None
    path = config.path(aligned)
    listed = AlignedRows.read(path, config.data.id, f"{config.where}, [serve] aligned")
    return frozenset(listed.common.series.to_list())
