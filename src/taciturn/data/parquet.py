"""Parquet: a table in one or many files, of which no more is read than is asked for.

A table that is larger than memory comes in row parts: one file, the files of a folder, or those
that a pattern names, in the order of their names. Only their descriptions are read at first; then
one column at a time, of all rows.

**Guarantee.** All parts have the same columns of the same types. A part that is changed, cut short
or removed after it was first looked at is refused by its name: what was read before and what is
read after belong to the same table.

**Assumes.** A change shows in a file's size or in its time of change.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self, TypeAlias

import polars as pl

from taciturn.errors import ColumnError, FileError
from taciturn.file_kinds import file_kind

Fingerprint: TypeAlias = tuple[str, int, int]
"""A file's name, its bytes, and when it was last changed, in nanoseconds."""
SUFFIX = ".parquet"
_WILD = "*?["


class Columns(Protocol):
    """Named columns of equal height: a polars frame, a ``ParquetTable`` or ``TextColumns``."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""

    @property
    def height(self) -> int:
        """Number of rows."""

    def __getitem__(self, name: str, /) -> pl.Series:
        """One column."""

    def select(self, names: list[str], /) -> Self:
        """The table with these columns only."""


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """One file of a table when first seen; ``size`` in bytes, ``modified`` in nanoseconds."""

    path: Path
    rows: int
    size: int
    modified: int

    @classmethod
    def from_file(cls, path: Path) -> tuple[ParquetPart, dict[str, pl.DataType]]:
        """The part in a file, and its columns."""
        require_file(path)
        with _reporting(path):
            _, size, modified = fingerprint(path)
            scan = pl.scan_parquet(path, glob=False)
            rows = int(scan.select(pl.len()).collect().item())
            schema = dict(scan.collect_schema())
        return cls(path, rows, size, modified), schema

    @property
    def fingerprint(self) -> Fingerprint:
        """Fingerprint of the file."""
        return (str(self.path), self.size, self.modified)

    def read(self, columns: Sequence[str]) -> pl.DataFrame:
        """Read columns; refuses a file that was changed or removed meanwhile."""
        require_unchanged(self.fingerprint)
        with _reporting(self.path):
            frame = pl.read_parquet(self.path, columns=list(columns), glob=False)
        # Behind the reading too: it may have been written while it was read.
        require_unchanged(self.fingerprint)
        return frame


@dataclass(frozen=True, slots=True, repr=False)
class ParquetTable:
    """A table in Parquet files, read column by column."""

    parts: tuple[ParquetPart, ...]
    columns: list[str]

    @classmethod
    def at(cls, path: Path) -> ParquetTable:
        """Open a Parquet file, a folder of them, or the files that a pattern names."""
        parts: list[ParquetPart] = []
        first: dict[str, pl.DataType] = {}
        for file in files_of(path):
            part, schema = ParquetPart.from_file(file)
            if parts:
                _require_same_columns(schema, first, file, parts[0].path)
            else:
                first = schema
            parts.append(part)
        if not sum(part.rows for part in parts):
            raise FileError(
                "the table has columns and no rows", where=str(path), hint="add at least one row"
            )
        return cls(tuple(parts), list(first))

    @property
    def height(self) -> int:
        """Number of rows."""
        return sum(part.rows for part in self.parts)

    def __getitem__(self, name: str, /) -> pl.Series:
        return self.frame([name])[name]

    def select(self, names: list[str], /) -> ParquetTable:
        """The table with these columns only."""
        return replace(self, columns=names)

    def frame(self, names: Sequence[str] | None = None) -> pl.DataFrame:
        """Read columns of all rows into memory; all columns where ``names`` is None."""
        chosen = self.columns if names is None else names
        return pl.concat([part.read(chosen) for part in self.parts], rechunk=True)

    def __repr__(self) -> str:
        return f"ParquetTable({self.height} rows in {len(self.parts)} parts)"


@dataclass(frozen=True, slots=True, repr=False)
class SomeRows:
    """Some rows of a table, which is read column by column."""

    table: Columns
    rows: pl.Series

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.table.columns

    @property
    def height(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __getitem__(self, name: str, /) -> pl.Series:
        return self.table[name].gather(self.rows)

    def select(self, names: list[str], /) -> SomeRows:
        """The table with these columns only."""
        return replace(self, table=self.table.select(names))


def is_parquet(path: Path) -> bool:
    """Whether a path names Parquet files: one, a folder, or a pattern."""
    return path.is_dir() or _is_pattern(path) or path.name.lower().endswith(SUFFIX)


def files_of(path: Path) -> list[Path]:
    """Files that a path names, sorted by name."""
    if path.is_dir():
        inside = (file for file in path.iterdir() if file.name.lower().endswith(SUFFIX))
        files = sorted(file for file in inside if not file.name.startswith((".", "_")))
        if not files:
            raise FileError(
                "the folder has no Parquet file",
                where=str(path),
                hint="name a folder of .parquet files, or a file; folders below it need a pattern, "
                "such as FOLDER/*/*.parquet",
            )
        return files
    if not _is_pattern(path):
        return [path]
    files = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not files:
        raise FileError(
            "no file matches this pattern",
            where=str(path),
            hint="check the folder and the pattern",
        )
    for file in files:
        if not file.name.lower().endswith(SUFFIX):
            raise FileError(
                "a pattern may name Parquet files only, and it names this one",
                where=str(file),
                hint="end it with .parquet, or write the table as Parquet",
            )
    return files


def fingerprint(path: Path) -> Fingerprint:
    """Name, size and time of change of a file; raises ``OSError`` where it is not there."""
    status = path.stat()
    return (str(path), status.st_size, status.st_mtime_ns)


def require_unchanged(first: Fingerprint) -> None:
    """Raise ``FileError`` unless a file still has this fingerprint."""
    where, hint = first[0], "leave the table's files alone while it is read, and run again"
    try:
        now = fingerprint(Path(where))
    except OSError:
        raise FileError(
            "a file of the table was deleted while it was being read", where=where, hint=hint
        ) from None
    if now != first:
        raise FileError(
            "a file of the table was changed while it was being read", where=where, hint=hint
        )


def require_file(path: Path) -> None:
    """Raise ``FileError`` unless a file is there and not empty."""
    if path.is_dir():
        raise FileError("this is a directory, not a file", where=str(path), hint="name a file")
    if not path.is_file():
        raise FileError("the file does not exist", where=str(path), hint="check the path")
    if path.stat().st_size == 0:
        raise FileError("the file is empty", where=str(path), hint="write it again")


def _is_pattern(path: Path) -> bool:
    return any(sign in os.fspath(path) for sign in _WILD) and not path.exists()


def _require_same_columns(
    schema: dict[str, pl.DataType], first: dict[str, pl.DataType], file: Path, first_file: Path
) -> None:
    if schema == first:
        return
    for name in (*first, *schema):
        here, there = schema.get(name), first.get(name)
        if here == there:
            continue
        if here is None or there is None:
            verb = "lacks" if here is None else "has"
            problem = f"a part of the table {verb} the column {name!r}, unlike the first part"
        else:
            problem = f"column {name!r} is {here} in a part of the table, and {there} in the first"
        raise ColumnError(
            problem,
            where=f"{file}; the first part is {first_file}",
            hint="write all parts with the same columns and types",
        )


@contextlib.contextmanager
def _reporting(path: Path) -> Iterator[None]:
    try:
        with reporting_read_errors(path):
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        kind = file_kind(path)
        if kind not in ("", "a Parquet file"):
            raise FileError(
                f"this is {kind}, and not a Parquet file",
                where=str(path),
                hint="give it the ending of its kind: .csv, .csv.gz, .tsv or .tsv.gz",
            ) from problem
        raise FileError(
            "the Parquet file is cut short or damaged",
            where=str(path),
            hint="copy or write it again",
        ) from problem


@contextlib.contextmanager
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
