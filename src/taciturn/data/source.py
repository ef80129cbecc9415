"""``TableSource``: the interface to read a table, wherever it is.

A source is a CSV or Parquet file, a folder of Parquet files, a pattern that names some, a query to
a database, or a frame in memory. ``open`` reads no more than is asked for, one column at a time;
``frame`` reads all of it; ``ids`` the id column alone. The values of a database are taken as a CSV
file would have them, so that a table gives the same numbers from either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from taciturn.data.csv_files import USUAL, Dialect, converted, converts, read_csv
from taciturn.data.database import Connection, DatabaseQuery
from taciturn.data.frames import as_frame, require_column
from taciturn.data.ids import AS_THEY_ARE, DistinctIds, Normalisation
from taciturn.data.lazy_table import Columns, LazyTable, in_memory
from taciturn.data.parquet import files_of, open_parquet
from taciturn.data.queried_table import queried
from taciturn.data.table_files import Fingerprint, fingerprint, is_parquet, reporting_read_errors


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
                lazy = LazyTable(frame.columns, frame.height, lambda names: frame[names])
                return frame if self.dialect.na_values is None else self._marked(lazy, text).frame()
            case DatabaseQuery() as query:
                return queried(query, self.dialect, text=text, columns=columns, folder=folder)
            case path:
                if is_parquet(path):
                    return self._marked(open_parquet(path), text)
                if folder is not None and converts(path, self.dialect):
                    return converted(path, folder, text=text, dialect=self.dialect)
                return read_csv(path, text, self.dialect)

    def _marked(self, table: LazyTable, text: Sequence[str]) -> LazyTable:
        """Typed columns, without the words that are said to mean a missing value."""
        words = self.dialect.na_values
        if words is None:
            return table

        def marked(series: pl.Series) -> pl.Series:
            if series.dtype != pl.String or series.name in text:
                return series
            return series.set(series.str.strip_chars().is_in([*words]), None)

        return table.map(marked)

    def frame(self, *, text: Sequence[str] = ()) -> pl.DataFrame:
        """The whole table in memory."""
        return in_memory(self.open(text=text))

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

    def _files(self) -> list[Path]:
        if not isinstance(self.location, Path):
            return []
        return files_of(self.location) if is_parquet(self.location) else [self.location]

    def fingerprints(self) -> tuple[Fingerprint, ...]:
        """Fingerprints of the table's files; none where there are no files."""
        return tuple(fingerprint(file) for file in self._files() if file.is_file())

    def digest(self) -> str | None:
        """SHA-256 of a file, or of the names and digests of a table's files; None without files."""
        files = self._files()
        if files and not is_parquet(files[0]):
            return _digest(files[0])
        lines = [f"{file.name}\0{_digest(file)}\n" for file in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else None


def read_frame(
    path: Path | str, *, text: Sequence[str] = (), dialect: Dialect = USUAL
) -> pl.DataFrame:
    """Read a file, a folder of Parquet files or a pattern (``TableSource.frame``)."""
    return TableSource.at(path, dialect).frame(text=text)


def _digest(path: Path) -> str:
    with reporting_read_errors(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
