"""Join the tables of both parties for a simulation: a session between machines never does."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from taciturn.data.csv_files import USUAL, Dialect
from taciturn.data.source import TableSource
from taciturn.errors import DataError


def join_tables(
    bob: object, alice: object, id_column: str, dialect: Dialect = USUAL
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The rows that both tables have, and the names of Alice's columns.

    Each table is a path or a frame. Rows are in Bob's order.

    Raises:
        DataError: A table lacks the id column, both have a column of the same name, ids repeat, or
            the tables have no row in common.
    """
    sides = [TableSource.at(table, dialect) for table in (bob, alice)]
    frames = [side.frame(text=(id_column,)) for side in sides]
    frames = [
        side.distinct(frame, id_column).taken_from(frame)
        for side, frame in zip(sides, frames, strict=True)
    ]
    left, right = (frame.with_columns(pl.col(id_column).cast(pl.String)) for frame in frames)
    columns = tuple(name for name in right.columns if name != id_column)
    _require_apart(left.columns, columns, sides[1].where)
    joined = left.join(right, on=id_column, how="inner", maintain_order="left")
    if not len(joined):
        raise DataError(
            "the two tables have no id in common",
            where=sides[1].where,
            setting="id",
            hint="compare how both tables spell their ids",
        )
    return joined, columns


def _require_apart(bob: Sequence[str], alice: Sequence[str], where: str) -> None:
    for name in alice:
        if name in bob:
            raise DataError(
                f"both tables have a column {name!r}",
                where=where,
                hint="rename it in one of them, or leave it out",
            )
