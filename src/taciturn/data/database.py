"""Databases: the rows of a SELECT statement in SQLite or PostgreSQL, read only.

A ``DatabaseQuery`` says where the rows are; ``open`` connects. An open ``Database`` gives all rows,
in chunks of one statement, or the rows of some ids.

**Guarantee.** Nothing is written. Errors and representations name the connection as the settings
do, never the address that it stands for, which may hold a password; nor what the server says, which
may quote a value.
"""

from __future__ import annotations

import datetime
import os
import re
import sqlite3
import threading
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from taciturn.data.addresses import ADDRESSES, FILE, POSTGRES, SQLITE, VARIABLE
from taciturn.errors import ColumnError, ConfigError, DataError, FileError
from taciturn.extras import explained
from taciturn.files import require_private
from taciturn.setting_syntax import Hint

Row: TypeAlias = tuple[Any, ...]
Record: TypeAlias = Mapping[str, Any]

MOST_ROWS = 50_000_000
"""A query of more rows is refused."""
CHUNK_ROWS = 1 << 14

# Ids of one question to a database.
_ASKED = 500
# A lookup must not keep callers waiting; the first rows of a whole table may need a sort.
_LOOKUP_SECONDS, _READ_SECONDS = 10, 600
_WHOLE = re.compile(r"-?[1-9][0-9]{0,18}|0")
_LARGEST = 1 << 63
# Types of PostgreSQL by their numbers: int8, int2, int4; text and varchar.
_WHOLE_TYPES, _TEXT_TYPES = (20, 21, 23), (25, 1043)


def _has_password(address: str) -> bool:
    """Whether an address holds a password; one that cannot be parsed may.

    >>> _has_password("postgresql://me:secret@db/crm"), _has_password("postgresql://me@db/crm")
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
class Connection:
    """How to connect to a database: its address, or where the address is kept.

    ``text`` is ``sqlite:FILE``, ``postgresql://…`` without a password, ``env:NAME`` for an
    environment variable or ``file:PATH`` for a private file. The latter two hold an address, with
    or without a password. Paths are relative to ``folder``.
    """

    text: str
    folder: Path = Path()

    def require_usable(self) -> None:
        """Raise ``ConfigError`` for a text that names no connection, or that holds a password."""
        if _has_password(self.text):
            raise ConfigError(
                "the address of the database holds a password",
                setting="connection",
                hint=Hint(
                    "keep the address in an environment variable ({connection}), in a file of mode "
                    "600 (file:PATH), or the password where libpq reads it (PGPASSFILE)",
                    connection="env:CRM_DATABASE",
                ),
            )
        if not self.text.startswith((*ADDRESSES, VARIABLE, FILE)):
            raise ConfigError(
                "this names no database",
                setting="connection",
                hint="write sqlite:FILE, postgresql://USER@HOST/DATABASE, or env:NAME or "
                "file:PATH for where such an address is kept",
            )

    @property
    def where(self) -> str:
        """The database, for errors and reports, without its address."""
        if self.text.startswith(SQLITE):
            return str(self._path(self.text.removeprefix(SQLITE)))
        return "PostgreSQL" if self.text.startswith(POSTGRES) else self.text

    def files(self) -> tuple[Path, ...]:
        """Files that are read: the database of SQLite, and the file that holds its address."""
        kept = self.text.startswith(FILE)
        files = [self.folder / self.text.removeprefix(FILE)] if kept else []
        # What is missing or not fit for use is reported where it is opened.
        with suppress(DataError):
            if (address := self._address()).startswith(SQLITE):
                files.append(self._path(address.removeprefix(SQLITE)))
        return tuple(files)

    def open(self, select: str) -> Database:
        """Connect; the caller closes."""
        address = self._address()
        if not address.startswith(SQLITE):
            return PostgresDatabase(self, select)
        return SqliteDatabase(self._path(address.removeprefix(SQLITE)), select, self.where)

    def postgres(self, library: Any) -> Any:  # noqa: ANN401
        """A connection to PostgreSQL by psycopg, with the address that holds now."""
        return library.connect(
            self._address(),
            autocommit=True,
            connect_timeout=5,
            keepalives_idle=10,
            # Its parameters are $1: a percent sign in a query is what it is.
            cursor_factory=library.RawCursor,
            # By the server: what psycopg calls read_only concerns no single statement, and a
            # query may call a function that writes.
            options=f"-c statement_timeout={_LOOKUP_SECONDS * 1000} "
            "-c default_transaction_read_only=on "
            "-c default_transaction_isolation=repeatable\\ read",
        )

    def _path(self, name: str) -> Path:
        # SQLAlchemy writes sqlite:///crm.db, and a fourth slash for an absolute path.
        return self.folder / name.removeprefix("///")

    def _address(self) -> str:
        address = self.text
        if address.startswith(VARIABLE):
            address = os.environ.get(address.removeprefix(VARIABLE), "")
        elif address.startswith(FILE):
            address = self._kept(self.folder / address.removeprefix(FILE))
        if address.startswith(ADDRESSES):
            return address
        raise DataError(
            "there is no address of a database" if address else "it is empty, or not set",
            where=self.where,
            hint="it holds sqlite:FILE or postgresql://USER:PASSWORD@HOST/DATABASE",
        )

    def _kept(self, path: Path) -> str:
        require_private(path, "the address of the database")
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            raise FileError(
                "the file with the address of the database cannot be read",
                where=str(path),
                hint="it is a text file of one line",
            ) from None


@dataclass(frozen=True, slots=True)
class DatabaseQuery:
    """A SELECT statement, and the database that it is for."""

    connection: Connection
    select: str = field(repr=False)
    name = "query"

    @property
    def where(self) -> str:
        """The database, for errors and reports."""
        return f"{self.connection.where}, query"

    def open(self) -> Database:
        """Connect; the caller closes."""
        return self.connection.open(self.select)


class Database(ABC):
    """An open database, of which one relation is read.

    ``columns`` are those of the relation; ask for no others: SQLite would take the name of an
    absent column for a text.
    """

    columns: list[str]

    def __init__(self, select: str, where: str) -> None:
        self.where = f"{where}, query"
        # On lines of its own: the statement may end with a comment.
        self._select = select.strip().rstrip(";")
        self._relation = f"(\n{self._select}\n) as selected"

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

    def _require_distinct(self, repeated: Sequence[str]) -> None:
        if repeated:
            self.close()
            raise ColumnError(
                f"the query gives column {repeated[0]!r} more than once",
                where=self.where,
                hint="list the columns, and give each a different name (AS), id included",
            )

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

    def __init__(self, path: Path, select: str, where: str) -> None:
        super().__init__(select, where)
        if not path.is_file():
            raise FileError("the database does not exist", where=str(path), hint="check the path")
        self._base = sqlite3.connect(
            f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
        )
        self._base.text_factory = lambda data: data.decode(errors="replace")
        try:
            with self._reporting():
                described = self._base.execute(f"select * from {self._relation} limit 0")  # noqa: S608
            self.columns = [name for name, *_ in described.description]
            # SQLite calls the second column a of a query "a:1".
            renamed = (name.rpartition(":")[0] for name in self.columns)
            self._require_distinct([name for name in renamed if name in self.columns])
        except DataError:
            self.close()
            raise

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as problem:
            kind = getattr(problem, "sqlite_errorname", type(problem).__name__)
            text = str(problem)
            # One code for every fault of a statement; the texts are SQLite's own, in English.
            fault = next((fault for start, fault in _SQLITE_TEXTS.items() if start in text), kind)
            raise _database_error(fault, kind, self.where) from None

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

    def __init__(self, connection: Connection, select: str) -> None:
        super().__init__(select, connection.where)
        with explained():
            import psycopg

        # One connection, used by one caller at a time.
        self._psycopg, self._connection, self._lock = psycopg, connection, threading.Lock()
        self._base: Any = None
        described = self._asked(f"select * from {self._relation} limit 0", []).description  # noqa: S608
        names = [column.name for column in described]
        self._require_distinct([name for name, times in Counter(names).items() if times > 1])
        self._types = {column.name: column.type_code for column in described}
        self.columns = names

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
        state = getattr(problem, "sqlstate", None)
        connected = state is not None or not isinstance(problem, self._psycopg.OperationalError)
        text = "" if connected else str(problem)
        # Before a session there is no code but the server's text, which may be in any language.
        fault = next(
            (fault for part, fault in _POSTGRES_TEXTS.items() if part in text), state or ""
        )
        return _database_error(fault, state or type(problem).__name__, self.where)

    def _connected(self) -> Any:  # noqa: ANN401
        if self._base is None:
            self._base = self._connection.postgres(self._psycopg)
        return self._base

    def close(self) -> None:
        """End the connection."""
        if self._base is not None:
            self._base.close()
            self._base = None


_REACH = (
    "cannot connect to the database",
    "look whether it runs and can be reached from here, and whether the address is right",
)
_SYNTAX = (
    "the query is not one SELECT statement",
    "try it in the database's own shell; one statement, which only reads",
)
_TABLE = (
    "the query names a table that the database does not have",
    "check its name and schema, and that the connection is to the right database",
)
_COLUMN = (
    "the query names a column that its tables do not have",
    "check the names of the columns in the query",
)
# By the beginning of SQLSTATE, or by SQLite's name of the error: the longest that fits.
_FAULTS: Mapping[str, tuple[str, str]] = {
    "": _REACH,
    "22": ("a value does not fit what the query computes with it", "select the column as it is"),
    "25006": ("the query writes, and the database is only read", "leave out what writes"),
    "28": (
        "the database refuses the user or the password",
        "check both in the address, and the server's rules for this machine (pg_hba.conf)",
    ),
    "3D": ("the server has no database of that name", "check the end of the address"),
    "42": _SYNTAX,
    "42501": ("this user may not read what the query names", "grant it SELECT"),
    "42703": _COLUMN,
    "42P01": _TABLE,
    "57014": (
        "the database took too long",
        f"a table may take {_READ_SECONDS} seconds to its first rows, a lookup by id "
        f"{_LOOKUP_SECONDS}: select less, or add an index",
    ),
    "SQLITE": _SYNTAX,
    "SQLITE_BUSY": ("another program holds the database", "try again once it has written"),
    "SQLITE_CANTOPEN": ("the database cannot be opened", "check that this user may read the file"),
    "SQLITE_CORRUPT": ("the database is damaged", "restore the file"),
    "SQLITE_NOTADB": ("this is not a SQLite database", "check the path"),
    "SQLITE_READONLY": ("the query writes, and the database is only read", "leave out what writes"),
    "Warning": _SYNTAX,
    "ProgrammingError": _SYNTAX,
}
_SQLITE_TEXTS = {"no such table": "42P01", "no such column": "42703"}
_POSTGRES_TEXTS = {
    "password": "28",
    "pg_hba.conf": "28",
    "role ": "28",
    "database ": "3D",
}


def _database_error(fault: str, kind: str, where: str) -> DataError:
    """Error of a fault in ``_FAULTS``; ``kind`` is its code, as the database has it."""
    known = max((name for name in _FAULTS if fault.startswith(name)), key=len)
    message, hint = _FAULTS[known]
    return DataError(f"{message} ({kind})", where=where, hint=hint)


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
