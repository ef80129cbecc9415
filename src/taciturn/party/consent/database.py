"""The SQLite file of a consent store: its errors name the file and the way out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from taciturn.engine.callbacks import Announce
from taciturn.errors import FileError, OutputError

KIND = "consent store"
# A shorter wait for another program is not announced.
_UNANNOUNCED_SECONDS = 1.0
_MAY_WRITE = "this account must be able to write the file and its folder; nothing was charged"
_WAIT = "wait until that program is done, and try again; nothing was charged"
# Of these the surroundings are the cause, and not what the file holds.
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: ("another program is writing it", _WAIT),
    sqlite3.SQLITE_PROTOCOL: ("other programs are opening it", _WAIT),
    sqlite3.SQLITE_FULL: ("the disk is full", "free some space; nothing was charged"),
    sqlite3.SQLITE_READONLY: ("it is read-only", _MAY_WRITE),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", _MAY_WRITE),
    sqlite3.SQLITE_PERM: ("access is denied", _MAY_WRITE),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "look at the disk and the system's log, then check the file with taciturn doctor",
    ),
}


class Database:
    """A connection; every error of SQLite becomes one that names the file."""

    def __init__(self, path: Path, name: str = ":memory:") -> None:
        self.path = path
        with explained(path):
            # It begins no transaction by itself.
            self._connection = sqlite3.connect(
                name, isolation_level=None, uri=True, check_same_thread=False
            )

    @classmethod
    def connect(cls, path: Path, mode: str = "rw") -> Database:
        """Open a file that exists; it is not created where another program just removed it."""
        return cls(path, f"{path.absolute().as_uri()}?mode={mode}")

    def ask(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement gives."""
        with explained(self.path):
            return self._connection.execute(statement, values).fetchall()

    def write(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table, or replace those of the same key."""
        with explained(self.path):
            for row in rows:
                marks = ", ".join("?" * len(row))
                # The table is one that this package names.
                statement = f"insert or replace into {table} values ({marks})"  # noqa: S608
                self._connection.execute(statement, row)

    def begin(self, write: bool, wait_seconds: float, announce: Announce) -> None:
        """Begin a transaction; a wait for another program's is announced."""
        short = min(_UNANNOUNCED_SECONDS, wait_seconds)
        with explained(self.path):
            try:
                self._begin(short, write=write)
            except sqlite3.OperationalError as problem:
                if _code(problem) != sqlite3.SQLITE_BUSY or short == wait_seconds:
                    raise
                announce(f"waiting for another program that writes {self.path}")
                self._begin(wait_seconds - short, write=write)

    def _begin(self, wait_seconds: float, *, write: bool) -> None:
        self._connection.execute(f"pragma busy_timeout = {int(1000 * wait_seconds)}")
        self._connection.execute("begin immediate" if write else "begin")

    def roll_back(self) -> None:
        """Undo the transaction, after an error that its caller reports."""
        # Where the disk was full SQLite itself has undone it.
        with suppress(sqlite3.Error):
            self._connection.rollback()

    def serialize(self) -> bytes:
        """The file of a database in memory."""
        return self._connection.serialize()

    def close(self) -> None:
        """Release the file."""
        self._connection.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the system into errors that name the file and the way out."""
    try:
        yield
    except sqlite3.ProgrammingError:
        # A mistake of this program.
        raise
    except sqlite3.Error as problem:
        if _code(problem) not in _UNAVAILABLE:
            raise damaged(path) from problem
        why, way_out = _UNAVAILABLE[_code(problem)]
        raise _unavailable(path, why, way_out) from problem
    except OSError as problem:
        raise _unavailable(path, str(problem.strerror), _MAY_WRITE) from problem


def damaged(path: Path) -> FileError:
    """The error of a file whose records are not those that were written."""
    return FileError(
        f"this is not a {KIND}, or it is damaged",
        where=str(path),
        hint=f"restore the newest copy, and remove {path.name}-wal: without a copy what was given "
        "away is not counted",
    )


def _unavailable(path: Path, why: str, way_out: str) -> OutputError:
    return OutputError(f"the {KIND} cannot be used: {why}", where=str(path), hint=way_out)


def _code(problem: sqlite3.Error) -> int:
    # The lowest byte is the kind of the error; a text that is not UTF-8 has none.
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF
