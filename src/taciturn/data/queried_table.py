"""Rows of a database as a table, with the types that a CSV file of them would have.

A database is read once, by one statement: two statements could see different rows. Rows that take
much memory go to a folder, where there is one, as those of a large CSV file do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path

import polars as pl

from taciturn.data import csv_files
from taciturn.data.column_types import parsed
from taciturn.data.csv_files import Dialect
from taciturn.data.database import Database, DatabaseQuery, as_text
from taciturn.data.frames import require_column
from taciturn.data.lazy_table import LazyTable
from taciturn.data.parquet import stored
from taciturn.errors import DataError


def queried(
    query: DatabaseQuery,
    dialect: Dialect,
    *,
    text: Sequence[str],
    columns: Sequence[str] | None,
    folder: Path | None,
) -> LazyTable:
    """The rows of a query, with the digest of their values as fingerprint."""
    with closing(query.open()) as base:
        for name in columns or ():
            require_column(base.columns, name, where=query.where)
        names = base.columns if columns is None else [*columns]
        # The digest of rows does not depend on the names of their columns.
        sha = hashlib.sha256(repr(names).encode())
        table = _held(_parts(base, names, dialect, sha), folder)
    if not table.height:
        raise DataError("the query has no rows", where=query.where, hint="select at least one row")
    known = (query.where, table.height, int.from_bytes(sha.digest()[:8]))
    return replace(parsed(table, text, dialect.missing), fingerprints=(known,))


def _parts(
    base: Database, names: list[str], dialect: Dialect, sha: hashlib._Hash
) -> Iterator[pl.DataFrame]:
    """Parts of the rows as text, counted into a digest as they pass."""
    missing = frozenset(dialect.missing)

    def word(value: object, name: str) -> str | None:
        text = None if value is None else as_text(value, name)
        return None if text in missing else text

    for rows in base.chunks(names):
        columns = zip(names, zip(*rows, strict=True), strict=True)
        words = {name: [word(value, name) for value in values] for name, values in columns}
        part = pl.DataFrame(words, schema=dict.fromkeys(names, pl.String))
        sha.update(part.hash_rows().to_numpy().tobytes())
        yield part


def _held(parts: Iterator[pl.DataFrame], folder: Path | None) -> LazyTable:
    """Parts of a table in memory, or in a folder where they are large."""
    held, size = list[pl.DataFrame](), 0.0
    for part in parts:
        held.append(part)
        size += part.estimated_size()
        if folder is not None and size > csv_files.LARGE_CSV:
            return stored(chain(held, parts), folder)
    whole = pl.concat(held, rechunk=True) if held else pl.DataFrame()
    return LazyTable(whole.columns, whole.height, lambda names: whole[names])
