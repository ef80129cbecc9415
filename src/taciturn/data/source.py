"""``TableSource``: the interface to read a table, wherever it is.

A source is a CSV or Parquet file, a folder of Parquet files, a pattern that names some, a query to
a database, or a frame in memory. ``open`` reads no more than is asked for, one column at a time;
``frame`` reads all of it; ``ids`` the id column alone.

A database is read once, by one statement: two statements could see different rows. Its values are
taken as a CSV file would have them, so that a table gives the same numbers from either. Rows that
take much memory go to a folder, where there is one, as those of a large CSV file do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import polars as pl

from taciturn.data import csv_files
from taciturn.data.csv_files import (
    USUAL,
    Dialect,
    MarkedColumns,
    TextColumns,
    converted,
    converts,
    read_csv,
    stored,
)
from taciturn.data.database import Connection, DatabaseQuery, as_text
from taciturn.data.frames import as_frame, require_column
from taciturn.data.ids import AS_THEY_ARE, DistinctIds, Normalisation
from taciturn.data.parquet import (
    Columns,
    Fingerprint,
    ParquetTable,
    files_of,
    fingerprint,
    is_parquet,
    reporting_read_errors,
)
from taciturn.errors import DataError


@dataclass(frozen=True, slots=True)
class TableSource:
    """Location of a table, and its format."""

    location: Path | DatabaseQuery | pl.DataFrame = field(repr=False)
    dialect: Dialect = USUAL

    @classmethod
    def at(cls, place: object, dialect: Dialect = USUAL) -> TableSource:
        """The table of a path, or of a pandas or polars frame."""
        return cls(Path(place) if isinstance(place, str | Path) else as_frame(place), dialect)

    @classmethod
    def from_query(
        cls, select: str, connection: Connection, dialect: Dialect = USUAL
    ) -> TableSource:
        """The rows of a SELECT statement."""
        return cls(DatabaseQuery(connection, select), dialect)

    @property
    def name(self) -> str:
        """Name of the table in reports."""
        if isinstance(self.location, pl.DataFrame):
            return "own data"
        return self.location.name

    @property
    def where(self) -> str:
        """Location of the table in errors, without credentials; empty for a frame."""
        match self.location:
            case DatabaseQuery() as query:
                return query.where
            case Path() as path:
                return str(path)
        return ""

    def open(
        self,
        *,
        text: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        folder: Path | None = None,
    ) -> Columns:
        """Open the table; large files are read column by column as needed.

        Columns in ``text`` stay text, such as ids, whose leading zeros count. ``columns`` are those
        that are needed, all where absent: a database is asked for no others. ``folder`` is where a
        large CSV file, or the rows of a database, may be stored meanwhile; None has them in memory.
        """
        match self.location:
            case pl.DataFrame() as frame:
                return _marked(frame, self.dialect, text)
            case DatabaseQuery() as query:
                return _text_columns(query, tuple(text), self.dialect, columns, folder)
            case path:
                if is_parquet(path):
                    return _marked(ParquetTable.at(path), self.dialect, text)
                if folder is not None and converts(path, self.dialect):
                    return converted(path, folder, text=tuple(text), dialect=self.dialect)
                return read_csv(path, text, self.dialect)

    def frame(self, *, text: Sequence[str] = ()) -> pl.DataFrame:
        """The whole table in memory."""
        table = self.open(text=text)
        if isinstance(table, pl.DataFrame):
            return table
        if isinstance(table, ParquetTable):
            return table.frame()
        return pl.DataFrame([table[name] for name in table.columns])

    def ids(self, id_column: str, normalisation: Normalisation = AS_THEY_ARE) -> DistinctIds:
        """Ids of the rows, in their order."""
        table = self.open(text=[id_column], columns=[id_column])
        return self.distinct(table, id_column, normalisation)

    def distinct(
        self, table: Columns, id_column: str, normalisation: Normalisation = AS_THEY_ARE
    ) -> DistinctIds:
        """Ids of an open table's rows, one row of each as the dialect says."""
        require_column(table.columns, id_column, "id", where=self.where)
        return DistinctIds.from_values(table[id_column], self.dialect.duplicates, normalisation)

    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Fingerprints of the table's files; none where there are no files."""
        if not isinstance(self.location, Path):
            return ()
        return tuple(fingerprint(file) for file in files_of(self.location) if file.is_file())

    def digest(self) -> str | None:
        """SHA-256 of a file, or of the names and digests of a table's files; None without files."""
        if not isinstance(self.location, Path):
            return None
        if not is_parquet(self.location):
            return _digest(self.location)
        sha = hashlib.sha256()
        for file in files_of(self.location):
            sha.update(f"{file.name}\0{_digest(file)}\n".encode())
        return sha.hexdigest()


def read_frame(
    path: Path | str, *, text: Sequence[str] = (), dialect: Dialect = USUAL
) -> pl.DataFrame:
    """Read a file, a folder of Parquet files or a pattern (``TableSource.frame``)."""
    return TableSource.at(path, dialect).frame(text=text)


def _marked(table: Columns, dialect: Dialect, text: Sequence[str]) -> Columns:
    """A table of typed columns, without the words that are said to mean a missing value."""
    if dialect.na_values is None:
        return table
    marked = MarkedColumns(table, dialect.na_values, tuple(text))
    if not isinstance(table, pl.DataFrame):
        return marked
    return pl.DataFrame([marked[name] for name in table.columns])


def _digest(path: Path) -> str:
    with reporting_read_errors(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _text_columns(
    query: DatabaseQuery,
    text: tuple[str, ...],
    dialect: Dialect,
    columns: Sequence[str] | None,
    folder: Path | None,
) -> TextColumns:
    sha, size = hashlib.sha256(), 0.0
    table: Columns | None = None
    held: list[pl.DataFrame] = []
    with closing(query.open()) as base:
        for name in columns or ():
            require_column(base.columns, name, where=query.where)
        names = base.columns if columns is None else columns
        # The digest of rows does not depend on the names of their columns.
        sha.update(repr([*names]).encode())
        parts = _hashed((_as_words(names, rows, dialect) for rows in base.chunks(names)), sha)
        for part in parts:
            held.append(part)
            size += part.estimated_size()
            if folder is not None and size > csv_files.LARGE_CSV:
                table = stored(chain(held, parts), folder)
    if table is None and held:
        table = pl.concat(held, rechunk=True)
    if table is None:
        raise DataError("the query has no rows", where=query.where, hint="select at least one row")
    known = (query.where, table.height, int.from_bytes(sha.digest()[:8]))
    return TextColumns(table, table.height, dialect.missing, text, (known,))


def _hashed(parts: Iterable[pl.DataFrame], sha: hashlib._Hash) -> Iterator[pl.DataFrame]:
    """The parts, with their rows counted into a digest as they pass."""
    for part in parts:
        sha.update(part.hash_rows().to_numpy().tobytes())
        yield part


def _as_words(
    names: Sequence[str], rows: Sequence[tuple[object, ...]], dialect: Dialect
) -> pl.DataFrame:
    missing = frozenset(dialect.missing)

    def word(value: object, name: str) -> str | None:
        text = None if value is None else as_text(value, name)
        return None if text in missing else text

    return pl.DataFrame(
        [
            pl.Series(name, [word(value, name) for value in values], pl.String)
            for name, values in zip(names, zip(*rows, strict=True), strict=True)
        ]
    )
