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

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self._connection = path, connection

    @classmethod
    def connect(cls, path: Path, mode: str = "rw") -> Database:
        """Open a file that exists; it is not created where another program just removed it."""
        name = f"{path.absolute().as_uri()}?mode={mode}"
        with explained(path):
            return cls(path, connection(name, uri=True, check_same_thread=False))

    def ask(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows that a statement gives."""
        with explained(self.path):
            return self._connection.execute(statement, values).fetchall()

    def write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement for each row."""
        with explained(self.path):
            self._connection.executemany(statement, rows)

    def begin(self, *, write: bool, wait_seconds: float, announce: Announce) -> None:
        """Begin a transaction; a wait for another program's is announced."""
        statement = "begin immediate" if write else "begin"
        short = min(_UNANNOUNCED_SECONDS, wait_seconds)
        with explained(self.path):
            try:
                self._begin(statement, short)
            except sqlite3.OperationalError as problem:
                if _code(problem) != sqlite3.SQLITE_BUSY or short == wait_seconds:
                    raise
                announce(f"waiting for another program that writes {self.path}")
                self._begin(statement, wait_seconds - short)

    def _begin(self, statement: str, wait_seconds: float) -> None:
        self._connection.execute(f"pragma busy_timeout = {int(1000 * wait_seconds)}")
        self._connection.execute(statement)

    def roll_back(self) -> None:
        """Undo the transaction, after an error that its caller reports."""
        # Where the disk was full SQLite itself has undone it.
        with suppress(sqlite3.Error):
            self._connection.rollback()

    def close(self) -> None:
        """Release the file."""
        self._connection.close()


def connection(name: str, **options: Any) -> sqlite3.Connection:  # noqa: ANN401 - of sqlite3
    """A connection that begins no transaction by itself."""
    opened: sqlite3.Connection = sqlite3.connect(name, isolation_level=None, **options)
    return opened


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
