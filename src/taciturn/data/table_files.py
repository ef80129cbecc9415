"""Files of a table: their kind, and whether they are still what they were when first seen."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from taciturn.errors import FileError

Fingerprint: TypeAlias = tuple[str, int, int]
"""A file's name, its bytes, and when it was last changed, in nanoseconds."""
PARQUET = ".parquet"


def is_parquet(path: Path) -> bool:
    """Whether a path names Parquet files: one, a folder, or a pattern."""
    return path.is_dir() or is_pattern(path) or path.name.lower().endswith(PARQUET)


def is_pattern(path: Path) -> bool:
    """Whether a path names no file, but a pattern of several."""
    return glob.has_magic(str(path)) and not path.exists()


def fingerprint(path: Path) -> Fingerprint:
    """Name, size and time of change of a file; raises ``OSError`` where it is not there."""
    status = path.stat()
    return (str(path), status.st_size, status.st_mtime_ns)


def require_unchanged(first: Fingerprint) -> None:
    """Raise ``FileError`` unless a file still has this fingerprint."""
    try:
        changed = "changed" if fingerprint(Path(first[0])) != first else ""
    except OSError:
        changed = "deleted"
    if changed:
        raise FileError(
            f"a file of the table was {changed} while it was being read",
            where=first[0],
            hint="leave the table's files alone while it is read, and run again",
        )


def require_file(path: Path) -> None:
    """Raise ``FileError`` unless a file is there and not empty."""
    if path.is_dir():
        raise FileError("this is a directory, not a file", where=str(path), hint="name a file")
    if not path.is_file():
        raise FileError("the file does not exist", where=str(path), hint="check the path")
    if path.stat().st_size == 0:
        raise FileError("the file is empty", where=str(path), hint="write it again")


@contextmanager
def reporting_read_errors(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` into a ``FileError`` that names the file."""
    try:
        yield
    except OSError as problem:
        raise FileError(
            f"the file cannot be read: {problem.strerror or type(problem).__name__}",
            where=str(path),
            hint="check the file and its permissions",
        ) from None
