"""Databases: the rows of a query or table in SQLite or PostgreSQL, read only.

A ``DatabaseQuery`` says where the rows are; ``open`` connects. An open ``Database`` gives all rows,
in chunks of one statement, or the rows of some ids.

**Guarantee.** Nothing is written. Errors and representations name the file or "PostgreSQL" and the
table, never the address, which may hold a password; nor what the server says, which may quote a
value.
"""

from __future__ import annotations

import datetime
import re
import sqlite3
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from taciturn.errors import ColumnError, DataError, FileError
from taciturn.extras import explained

Row: TypeAlias = tuple[Any, ...]
Record: TypeAlias = Mapping[str, Any]

MOST_ROWS = 50_000_000
"""A query of more rows is refused."""
CHUNK_ROWS = 1 << 14

_SQLITE = "sqlite:"
_SCHEMES = (_SQLITE, "postgresql:", "postgres:")
# Ids of one question to a database.
_ASKED = 500
# A lookup must not keep callers waiting; the first rows of a whole table may need a sort.
_LOOKUP_SECONDS, _READ_SECONDS = 10, 600
_WHOLE = re.compile(r"-?[1-9][0-9]{0,18}|0")
_LARGEST = 1 << 63
# Types of PostgreSQL by their numbers: int8, int2, int4; text and varchar.
_WHOLE_TYPES, _TEXT_TYPES = (20, 21, 23), (25, 1043)


def is_database(source: str) -> bool:
    """Whether a setting names a database rather than a file."""
    return source.startswith(_SCHEMES)


def has_password(address: str) -> bool:
    """Whether an address holds a password; one that cannot be parsed may.

    >>> has_password("postgresql://me:secret@db/crm"), has_password("postgresql://me@db/crm")
    (True, False)
    """
    try:
        parts = urlsplit(address)
        return parts.password is not None or bool(
            {"password", "sslpassword"} & {*parse_qs(parts.query)}
        )
    except ValueError:
        return True


@dataclass(frozen=True, slots=True)
class DatabaseQuery:
    """A table or query in a database.

    ``relation`` is the SQL after FROM; ``name`` is used in errors. A SQLite file in ``address`` is
    relative to ``folder``.
    """

    address: str = field(repr=False)
    relation: str = field(repr=False)
    name: str
    folder: Path = Path()

    @classmethod
    def from_table(cls, address: str, table: str, folder: Path = Path()) -> DatabaseQuery:
        """Query of a whole table, which may be ``schema.table`` in PostgreSQL."""
        parts = [table] if address.startswith(_SQLITE) else table.split(".")
        return cls(address, ".".join(map(_quoted, parts)), table, folder)

    @classmethod
    def from_select(cls, address: str, select: str, folder: Path = Path()) -> DatabaseQuery:
        """Query by a SELECT statement."""
        # On lines of its own: the statement may end with a comment.
        return cls(address, f"(\n{select.strip().rstrip(';')}\n) as selected", "query", folder)

    @property
    def where(self) -> str:
        """Database and table, for errors and reports."""
        base = "PostgreSQL" if self._file is None else str(self._file)
        return f"{base}, {self.name}"

    @property
    def _file(self) -> Path | None:
        name = self.address.removeprefix(_SQLITE)
        return None if name == self.address else self.folder / name

    def open(self) -> Database:
        """Connect; the caller closes."""
        if self._file is None:
            return PostgresDatabase(self.address, self.relation, self.where)
        return SqliteDatabase(self._file, self.relation, self.where)


class Database(ABC):
    """An open database, of which one relation is read.

    ``columns`` are those of the relation; ask for no others: SQLite would take the name of an
    absent column for a text.
    """

    columns: list[str]

    def __init__(self, relation: str, where: str) -> None:
        self._relation, self.where = relation, where

    def chunks(self, columns: Sequence[str]) -> Iterator[list[Row]]:
        """All rows in chunks of some thousands, from one snapshot."""
        rows = 0
        names = ", ".join(map(_quoted, columns))
        for chunk in self._chunks(f"select {names} from {self._relation}"):  # noqa: S608
            rows += len(chunk)
            if rows > MOST_ROWS:
                raise DataError(
                    f"the query has more than {MOST_ROWS:,} rows",
                    where=self.where,
                    hint="select fewer rows, or write the table as Parquet files",
                )
            yield chunk

    def lookup(
        self, ids: Sequence[str], id_column: str, columns: Sequence[str]
    ) -> tuple[dict[str, Record], set[str]]:
        """Rows of some ids, by id; and the ids that several rows have.

        An id is compared as text, or as the whole number that it is written as.
        """
        records: dict[str, Record] = {}
        repeated = set[str]()
        for start in range(0, len(ids), _ASKED):
            key, condition, values = self._matching(id_column, ids[start : start + _ASKED])
            names = ", ".join((key, *map(_quoted, columns)))
            select = f"select {names} from {self._relation} where {key} {condition}"  # noqa: S608
            for name, *row in self._rows(select, values):
                if str(name) in records:
                    repeated.add(str(name))
                records[str(name)] = dict(zip(columns, row, strict=True))
        return records, repeated

    @abstractmethod
    def _chunks(self, select: str) -> Iterator[list[Row]]: ...

    @abstractmethod
    def _matching(self, id_column: str, ids: Sequence[str]) -> tuple[str, str, list[Any]]:
        """Expression of the id, condition that it is one of these, and its values."""

    @abstractmethod
    def _rows(self, select: str, values: list[Any]) -> list[Row]: ...

    @abstractmethod
    def close(self) -> None:
        """End the connection."""


class SqliteDatabase(Database):
    """A SQLite file, opened read-only."""

    def __init__(self, path: Path, relation: str, where: str) -> None:
        super().__init__(relation, where)
        if not path.is_file():
            raise FileError("the database does not exist", where=str(path), hint="check the path")
        self._base = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
        )
        self._base.text_factory = lambda data: data.decode(errors="replace")
        try:
            with self._reporting():
                described = self._base.execute(f"select * from {relation} limit 0").description  # noqa: S608
        except DataError:
            self.close()
            raise
        self.columns = [name for name, *_ in described]

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as problem:
            kind = getattr(problem, "sqlite_errorname", type(problem).__name__)
            if kind == "SQLITE_NOTADB":
                raise FileError("this is not a SQLite database", where=self.where) from None
            raise _database_error(kind, self.where) from None

    def _chunks(self, select: str) -> Iterator[list[Row]]:
        with self._reporting():
            cursor = self._base.execute(select)
            while chunk := cursor.fetchmany(CHUNK_ROWS):
                yield chunk

    def _matching(self, id_column: str, ids: Sequence[str]) -> tuple[str, str, list[Any]]:
        # Both as text and as numbers: which of them a column compares with, SQLite decides by its
        # declared type. An id that it takes for another one ("007") comes back as the other.
        values = [*ids, *_whole_numbers(ids)]
        return _quoted(id_column), f"in ({', '.join('?' * len(values))})", values

    def _rows(self, select: str, values: list[Any]) -> list[Row]:
        with self._reporting():
            return self._base.execute(select, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._base.close()


class PostgresDatabase(Database):
    """PostgreSQL over one read-only connection; a lookup reconnects where it was lost."""

    def __init__(self, address: str, relation: str, where: str) -> None:
        super().__init__(relation, where)
        with explained():
            import psycopg

        # One connection, used by one caller at a time.
        self._psycopg, self._address, self._lock = psycopg, address, threading.Lock()
        self._base: Any = None
        described = self._asked(f"select * from {relation} limit 0", []).description  # noqa: S608
        self._types = {column.name: column.type_code for column in described}
        self.columns = [*self._types]

    def _chunks(self, select: str) -> Iterator[list[Row]]:
        try:
            with self._lock, self._connected().transaction():
                self._base.execute(f"set local statement_timeout = {_READ_SECONDS * 1000}")
                with self._base.cursor(name="taciturn") as cursor:
                    cursor.execute(select)
                    while chunk := cursor.fetchmany(CHUNK_ROWS):
                        yield chunk
        except self._psycopg.Error as problem:
            self.close()
            raise self._failure(problem) from None

    def _matching(self, id_column: str, ids: Sequence[str]) -> tuple[str, str, list[Any]]:
        kind, key = self._types[id_column], _quoted(id_column)
        whole = kind in _WHOLE_TYPES
        if not whole and kind not in _TEXT_TYPES:
            # A uuid, say, is compared as text: an id that is none is unknown, and no error.
            key = f"{key}::text"
        return key, "= any($1)", [_whole_numbers(ids) if whole else [*ids]]

    def _rows(self, select: str, values: list[Any]) -> list[Row]:
        rows: list[Row] = self._asked(select, values).fetchall()
        return rows

    def _asked(self, text: str, values: list[Any]) -> Any:  # noqa: ANN401
        # A connection that was lost is noticed by asking: then once more, over a new one.
        for last in (False, True):
            try:
                with self._lock:
                    return self._connected().execute(text, values)
            except self._psycopg.Error as problem:
                self.close()
                if last or not isinstance(problem, self._psycopg.OperationalError):
                    raise self._failure(problem) from None
        return None

    def _failure(self, problem: Exception) -> DataError:
        return _database_error(
            getattr(problem, "sqlstate", None) or type(problem).__name__, self.where
        )

    def _connected(self) -> Any:  # noqa: ANN401
        if self._base is None:
            self._base = self._psycopg.connect(
                self._address,
                autocommit=True,
                connect_timeout=5,
                keepalives_idle=10,
                # Its parameters are $1: a percent sign in a query is what it is.
                cursor_factory=self._psycopg.RawCursor,
                # By the server: what psycopg calls read_only concerns no single statement, and a
                # query may call a function that writes.
                options=f"-c statement_timeout={_LOOKUP_SECONDS * 1000} "
                "-c default_transaction_read_only=on",
            )
        return self._base

    def close(self) -> None:
        """End the connection."""
        if self._base is not None:
            self._base.close()
            self._base = None


def _database_error(kind: str, where: str) -> DataError:
    return DataError(
        f"the database does not answer ({kind})",
        where=where,
        hint="look whether it runs, whether the table and its columns are there, and whether this "
        "user may read it",
    )


def as_text(value: object, column: str) -> str:
    """A value of a database or a request in the form of a CSV file.

    >>> as_text(True, "paid"), as_text(datetime.date(2026, 1, 31), "since")
    ('true', '2026-01-31')
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return value.strip()
        case int() | Decimal() | uuid.UUID():
            return str(value)
        case float():
            return repr(value)
        case datetime.datetime() | datetime.date():
            return value.isoformat()
    raise ColumnError(
        f"column {column!r} holds {type(value).__name__}, not text",
        where=column,
        hint="leave it out of the query, or select it as text or as a number",
    )


def _quoted(name: str) -> str:
    """An SQL identifier, with quotes in it doubled."""
    return '"' + name.replace('"', '""') + '"'


def _whole_numbers(ids: Sequence[str]) -> list[int]:
    """The ids that are canonical whole numbers, as such.

    >>> _whole_numbers(["7", "007", "--5", "9" * 20, "-5", "٧"])
    [7, -5]
    """
    numbers = (int(name) for name in ids if _WHOLE.fullmatch(name))
    return [number for number in numbers if -_LARGEST <= number < _LARGEST]
