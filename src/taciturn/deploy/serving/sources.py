"""Where the rows of a service come from: a table in memory, or a database that is asked.

A source gives prepared rows by their ids. What it cannot give it names: an id that it does not
have, or a row that the model's preparation does not take (``Taken``).
"""

from __future__ import annotations

import datetime
import re
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.files import MISSING
from taciturn.data.ids import RowIds
from taciturn.data.normalisation import AS_THEY_ARE
from taciturn.data.prepare import prepared_table
from taciturn.deploy.aligned import AlignedRows
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.new_rows import is_text, new_rows
from taciturn.errors import ColumnError, ConfigError, DataError, FileError, MissingValueError
from taciturn.extras import explained
from taciturn.faces import Hint
from taciturn.model.share import ModelShare

_SQLITE = "sqlite:"
# Ids of one question to a database.
_ASKED = 500
_STATEMENT_SECONDS = 10
# As a CSV file has numbers: no underscores, no digits of other scripts.
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"-?[1-9][0-9]{0,18}|0")
_LARGEST = 1 << 63
# Types of PostgreSQL by their numbers: int8, int2, int4; text and varchar.
_WHOLE_TYPES, _TEXT_TYPES = (20, 21, 23), (25, 1043)


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows that were asked for, prepared, a line for each; zeros where there is none.

    ``unknown`` are the places of those that the source does not have, ``unfit`` of those that
    cannot be prepared, each with the reason.
    """

    values: FloatArray = field(repr=False)
    unknown: frozenset[int] = frozenset()
    unfit: Mapping[int, str] = field(default_factory=dict)


class RowSource(Protocol):
    """Gives rows by id; ``at_once`` where nothing is waited for."""

    at_once: bool

    def take(self, ids: Sequence[str]) -> Taken:
        """Rows by the ids that both sides know; DataError where the source cannot be read now."""
        ...

    def close(self) -> None:
        """Lets go of it."""
        ...


class Preparer:
    """Raw values, as a database or a request has them, to prepared rows."""

    def __init__(self, model: ModelShare, null_words: Sequence[str] = MISSING) -> None:
        self._model, self._null = model, frozenset(null_words)
        rules = model.preparation.rules
        texts = {rule.column for rule in rules if is_text(rule)}
        # A date and its parts come from one column.
        self.columns = tuple(dict.fromkeys(rule.column for rule in rules))
        self._texts = {column: column in texts for column in self.columns}

    def rows(self, ids: Sequence[str], records: Sequence[Mapping[str, Any]]) -> Taken:
        """Prepares rows; a column that is absent from a record is missing."""
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
            return Taken(values, unfit=unfit)
        return Taken(values)

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
            self._model.preparation, frame, RowIds.of([*ids]), intercept=self._model.intercept
        )
        return table.values

    def _value(self, value: object, column: str) -> str | float | None:
        if value is None or (isinstance(value, str) and value.strip() in self._null):
            return None
        if self._texts[column]:
            return _text(value, column)
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


def _text(value: object, column: str) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return value.strip()
        case int() | Decimal():
            return str(value)
        case float():
            return repr(value)
        case datetime.datetime() | datetime.date():
            return value.isoformat()
    raise ColumnError(f"column {column!r} holds {type(value).__name__}, not text", where=column)


def _reason(problem: DataError) -> str:
    """Why a row is not fit, without its values: the kind and the place."""
    if isinstance(problem, MissingValueError):
        return "a value is missing, and the model's preparation fills no gaps"
    return f"a value is not what the model's preparation takes ({type(problem).__name__})"


class TableRows:
    """A table in memory, prepared once."""

    at_once = True

    def __init__(self, path: Path, config: PartyConfig, model: ModelShare) -> None:
        rows = new_rows(path, config.data, model, (), config.normalisation)
        self._values = rows.table.values
        self._places = {name: place for place, name in enumerate(rows.table.ids.series.to_list())}

    def take(self, ids: Sequence[str]) -> Taken:
        """Rows by id."""
        places = [self._places.get(name, -1) for name in ids]
        # The last line stands in for a row that is not there, and is blanked.
        values = self._values[places]
        unknown = frozenset(place for place, row in enumerate(places) if row < 0)
        values[[*unknown]] = 0.0
        return Taken(values, unknown)

    def close(self) -> None:
        """Nothing is to be let go of."""


class _Database:
    at_once = False

    def __init__(self, preparer: Preparer, id_column: str, where: str) -> None:
        self._preparer, self._id, self._where = preparer, id_column, where

    def take(self, ids: Sequence[str]) -> Taken:
        records: dict[str, Mapping[str, Any]] = {}
        twice = set[str]()
        for start in range(0, len(ids), _ASKED):
            for name, record in self._fetch(ids[start : start + _ASKED]):
                if name in records:
                    twice.add(name)
                records[name] = record
        known = [place for place, name in enumerate(ids) if name in records]
        names = [ids[place] for place in known]
        taken = self._preparer.rows(names, [records[name] for name in names])
        values = np.zeros((len(ids), taken.values.shape[1]))
        values[known] = taken.values
        unfit = {known[place]: reason for place, reason in taken.unfit.items()}
        unfit |= {place: "the table has it twice" for place in known if ids[place] in twice}
        return Taken(values, frozenset(range(len(ids))) - {*known}, unfit)

    def _fetch(self, ids: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
        raise NotImplementedError

    def close(self) -> None:
        """Lets go of the database."""

    def _records(self, rows: Sequence[Sequence[Any]]) -> list[tuple[str, Mapping[str, Any]]]:
        columns = self._preparer.columns
        return [(str(row[0]), dict(zip(columns, row[1:], strict=True))) for row in rows]

    def _require(self, present: Sequence[str]) -> None:
        """Insists that the table has the columns."""
        lacking = [name for name in (self._id, *self._preparer.columns) if name not in present]
        if lacking:
            self.close()
            raise ColumnError(
                f"the table has no column {lacking[0]!r}"
                + (f", and lacks {len(lacking) - 1} more" if lacking[1:] else ""),
                where=self._where,
                hint="the model was trained on these columns: add them, or name another table",
            )


class SqliteRows(_Database):
    """A table of a SQLite file, opened to be read only."""

    def __init__(self, path: Path, table: str, id_column: str, preparer: Preparer) -> None:
        super().__init__(preparer, id_column, f"{path}, {table}")
        if not path.is_file():
            raise FileError("there is no such database", where=str(path))
        self._base = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
        )
        self._base.text_factory = lambda data: data.decode(errors="replace")
        try:
            facts = self._base.execute(
                "select name, type from pragma_table_info(?)", (table,)
            ).fetchall()
        except sqlite3.DatabaseError:
            self.close()
            raise FileError("this is not a SQLite database", where=str(path)) from None
        if not facts:
            self.close()
            raise DataError(f"there is no table {table!r}", where=str(path))
        self._require([name for name, _ in facts])
        self._whole = "INT" in dict(facts)[id_column].upper()
        names = ", ".join(map(_quoted, (id_column, *preparer.columns)))
        self._select = f"select {names} from {_quoted(table)} where {_quoted(id_column)} in "  # noqa: S608

    def _fetch(self, ids: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
        asked = _whole_numbers(ids) if self._whole else [*ids]
        marks = ", ".join("?" * len(asked))
        try:
            rows = self._base.execute(f"{self._select}({marks})", asked).fetchall()
        except (sqlite3.Error, ValueError, OverflowError) as problem:
            kind = type(problem).__name__
            raise DataError(f"the database cannot be read ({kind})", where=self._where) from None
        return self._records(rows)

    def close(self) -> None:
        """Lets go of the file."""
        self._base.close()


class PostgresRows(_Database):
    """A table of PostgreSQL, over one read-only connection that is restored when lost."""

    def __init__(self, address: str, table: str, id_column: str, preparer: Preparer) -> None:
        # Without the address, which may hold a password.
        super().__init__(preparer, id_column, f"PostgreSQL, {table}")
        with explained():
            import psycopg

        self._psycopg, self._address, self._lock = psycopg, address, threading.Lock()
        self._base: Any = None
        quoted = ".".join(map(_quoted, table.split(".")))
        rows = self._asked(f"select * from {quoted} limit 0", None, describe=True)  # noqa: S608
        self._require([name for name, _ in rows])
        kind, name = dict(rows)[id_column], _quoted(id_column)
        self._whole = kind in _WHOLE_TYPES
        # A uuid, say, is compared as text: an id that is none is unknown, and no error.
        key = name if self._whole or kind in _TEXT_TYPES else f"{name}::text"
        names = ", ".join((key, *map(_quoted, preparer.columns)))
        self._select = f"select {names} from {quoted} where {key} = any(%s)"  # noqa: S608

    def _fetch(self, ids: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
        asked: list[Any] = _whole_numbers(ids) if self._whole else [*ids]
        return self._records(self._asked(self._select, [asked]))

    def _asked(self, text: str, values: Any, *, describe: bool = False) -> Any:  # noqa: ANN401
        # Asked a second time over a new connection, where the first was lost.
        try:
            return self._once(text, values, describe=describe)
        except self._psycopg.OperationalError:
            # A connection that was lost is noticed by asking.
            self.close()
        except self._psycopg.Error as problem:
            self.close()
            raise self._silent(problem) from None
        try:
            return self._once(text, values, describe=describe)
        except self._psycopg.Error as problem:
            self.close()
            raise self._silent(problem) from None

    def _once(self, text: str, values: Any, *, describe: bool) -> Any:  # noqa: ANN401
        # One connection: whoever asks waits for the one before.
        with self._lock:
            cursor = self._connected().execute(text, values)
            if describe:
                return [(column.name, column.type_code) for column in cursor.description]
            return cursor.fetchall()

    def _silent(self, problem: Exception) -> DataError:
        state = getattr(problem, "sqlstate", None) or type(problem).__name__
        return DataError(
            f"the database does not answer ({state})",
            where=self._where,
            hint="look whether it runs, whether the table is there, and whether this user may "
            "read it",
        )

    def _connected(self) -> Any:  # noqa: ANN401
        if self._base is None:
            self._base = self._psycopg.connect(
                self._address,
                autocommit=True,
                connect_timeout=5,
                keepalives_idle=10,
                options=f"-c statement_timeout={_STATEMENT_SECONDS * 1000}",
            )
            self._base.read_only = True
        return self._base

    def close(self) -> None:
        """Ends the connection."""
        if self._base is not None:
            self._base.close()
            self._base = None


def source_of(config: PartyConfig, model: ModelShare) -> RowSource:
    """The source that a party's file names."""
    serve, data = config.serve, config.data
    if not serve.is_database:
        return TableRows(config.path(serve.source or data.file), config, model)
    if config.normalisation != AS_THEY_ARE:
        raise ConfigError(
            "a database is asked for ids as they stand: how they are spelled cannot be ignored",
            setting="normalise",
            hint=Hint("leave {normalise} out, and keep ids spelled alike in the database"),
        )
    words = MISSING if data.null_words is None else ("", *data.null_words)
    preparer, table = Preparer(model, words), serve.table or ""
    source = serve.source or ""
    if source.startswith(_SQLITE):
        path = config.path(source.removeprefix(_SQLITE))
        return SqliteRows(path, table, data.id, preparer)
    return PostgresRows(source, table, data.id, preparer)


def common_ids(config: PartyConfig) -> frozenset[str] | None:
    """The rows that both sides have, where a list says so; None where any may be asked for."""
    if config.serve.common is None:
        return None
    path = config.path(config.serve.common)
    listed = AlignedRows.read(path, config.data.id, f"{config.where}, [serve] common")
    return frozenset(listed.common.series.to_list())


def _quoted(name: str) -> str:
    """A name in SQL: marks in it are doubled."""
    return '"' + name.replace('"', '""') + '"'


def _whole_numbers(ids: Sequence[str]) -> list[int]:
    """Those of the ids that are written as whole numbers are.

    >>> _whole_numbers(["7", "007", "--5", "9" * 20, "-5", "٧"])
    [7, -5]
    """
    numbers = (int(name) for name in ids if _WHOLE.fullmatch(name))
    return [number for number in numbers if -_LARGEST <= number < _LARGEST]
