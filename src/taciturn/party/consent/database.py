"""The SQLite file of a consent store: its errors name the file and the way out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from taciturn.errors import FileError, OutputError

KIND = "consent store"
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


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Open a file that exists; it is not created where another program just removed it.

    A connection begins no transaction by itself.
    """
    name = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(name, isolation_level=None, uri=True, check_same_thread=False)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors that name the file and the way out."""
    try:
        yield
    except sqlite3.ProgrammingError:
        # A mistake of this program.
        raise
    except sqlite3.Error as problem:
        if error_code(problem) not in _UNAVAILABLE:
            raise damaged(path) from problem
        raise _unavailable(path, *_UNAVAILABLE[error_code(problem)]) from problem


@contextmanager
def reached(path: Path) -> Iterator[None]:
    """Turn errors of the system into such errors; a block holds calls of the store alone."""
    try:
        yield
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


def error_code(problem: sqlite3.Error) -> int:
    """The kind of an error, which is its lowest byte; a text that is not UTF-8 has none."""
    return getattr(problem, "sqlite_errorcode", 0) & 0xFF


def _unavailable(path: Path, why: str, way_out: str) -> OutputError:
    return OutputError(f"the {KIND} cannot be used: {why}", where=str(path), hint=way_out)
