"""Tables that are read one column at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import polars as pl

from taciturn.arrays import IndexArray
from taciturn.data.table_files import Fingerprint


@dataclass(frozen=True, slots=True, repr=False)
class LazyTable:
    """A table whose columns are read when they are asked for.

    ``fingerprints`` are those of rows that came from no file.
    """

    columns: list[str]
    height: int
    read: Callable[[list[str]], pl.DataFrame]
    fingerprints: tuple[Fingerprint, ...] = ()

    def __getitem__(self, name: str, /) -> pl.Series:
        return self.read([name]).to_series()

    def select(self, names: list[str], /) -> LazyTable:
        """The table with these columns only."""
        return replace(self, columns=names)

    def map(self, change: Callable[[pl.Series], pl.Series]) -> LazyTable:
        """The table with each column changed as it is read."""
        return replace(
            self, read=lambda names: pl.DataFrame([change(series) for series in self.read(names)])
        )

    def frame(self) -> pl.DataFrame:
        """All columns in memory."""
        return self.read(self.columns)


Columns: TypeAlias = pl.DataFrame | LazyTable
"""Named columns of equal height, in memory or not."""


def in_memory(table: Columns) -> pl.DataFrame:
    """The table as a frame."""
    return table.frame() if isinstance(table, LazyTable) else table


def columns_of(table: Columns, names: list[str]) -> Columns:
    """Some columns of the table: a name such as ``*`` is one, and no pattern of polars."""
    # Without columns only select keeps the number of rows.
    return table[names] if isinstance(table, pl.DataFrame) and names else table.select(names)


def rows_of(table: Columns, rows: IndexArray) -> Columns:
    """Some rows of the table."""
    if isinstance(table, pl.DataFrame):
        return table[rows]
    places = pl.Series(rows, dtype=pl.UInt32)
    return replace(table.map(lambda series: series.gather(places)), height=len(rows))
