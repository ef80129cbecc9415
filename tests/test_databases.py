"""PostgreSQL at Alice, SQLite at Bob: from alignment to serving, and no table is ever a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.errors import StateError
from taciturn.protocol.events import Boundary
from tests.expected import refused
from tests.party.hosts import OneHost, Side
from tests.party.sides import Pulled, alone, pulled_at, run_both, write_config, write_tables
from tests.waiting import HANG

SECRET = "hunter-2-hunter"  # noqa: S105
# The table of the training, and rows that come later.
CUT = "p0120"


def frames(folder: Path, role: str) -> dict[str, pl.DataFrame]:
    """A side's rows by the name of their table."""
    frame = pl.read_csv(folder / f"{role}.csv")
    # Each side has a few that the other has not.
    lost = {"alice": ["p0003", "p0122"], "bob": ["p0007"]}[role]
    frame = frame.filter(~pl.col("id").is_in(lost))
    return {
        "customers": frame.filter(pl.col("id") < CUT),
        "applicants": frame.filter(pl.col("id") >= CUT).drop("sick", strict=False),
    }


def columns_of(frame: pl.DataFrame, number: str) -> str:
    return ", ".join(f'"{name}" {"text" if name == "id" else number}' for name in frame.columns)


def fill_sqlite(path: Path, tables: dict[str, pl.DataFrame]) -> None:
    with closing(sqlite3.connect(path)) as base:
        for name, frame in tables.items():
            base.execute(f"create table {name} ({columns_of(frame, 'real')})")
            marks = ", ".join("?" * frame.width)
            base.executemany(f"insert into {name} values ({marks})", frame.rows())  # noqa: S608
        base.commit()


def fill_postgres(address: str, tables: dict[str, pl.DataFrame]) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as base, base.cursor() as cursor:
        cursor.execute(f"create role reader login password '{SECRET}'")
        for name, frame in tables.items():
            cursor.execute(f"create table {name} ({columns_of(frame, 'double precision')})")
            marks = ", ".join(["%s"] * frame.width)
            cursor.executemany(f"insert into {name} values ({marks})", frame.rows())  # noqa: S608
            cursor.execute(f"grant select on {name} to reader")


def both(folder: Path, command: str, *options: str, **own: Sequence[str]) -> dict[str, Any]:
    """Both sides' processes, and what Bob's printed."""
    sides = [Side(OneHost({}), folder, name) for name in ("alice", "bob")]
    for side in sides:
        side.start(command, *options, *own.get(side.name, ()))
    for side in sides:
        assert side.process is not None
        assert side.process.wait(HANG) == 0, side.said()
    return sides[1].record


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder for the tables as files, which no party sees."""
    folder = tmp_path / "files"
    folder.mkdir()
    write_tables(folder, rows=150)
    return folder


def test_a_query_with_other_rows_does_not_resume_a_training(written, tmp_path):
    folder = tmp_path / "parties"
    folder.mkdir()
    fill_sqlite(folder / "alice.db", frames(written, "alice"))
    fill_sqlite(folder / "bob.db", frames(written, "bob"))
    # Of the rows that both have.
    select = "select * from customers where id not in ('p0003', 'p0007')"
    for role in ("alice", "bob"):
        data = {"file": None, "query": select, "connection": f"sqlite:{role}.db"}
        write_config(folder, role, data=data)
    ends = run_both(folder, watch=pulled_at("alice", 8, Boundary))
    assert isinstance(ends.alice, Pulled)
    with closing(sqlite3.connect(folder / "alice.db")) as base:
        (column,) = (row[1] for row in base.execute("pragma table_info(customers)") if row[0] == 1)
        base.execute(f'update customers set "{column}" = "{column}" + 1 where id = \'p0050\'')  # noqa: S608
        base.commit()
        with refused(StateError):
            alone(folder, "alice").run()
        base.execute(f'update customers set "{column}" = "{column}" - 1 where id = \'p0050\'')  # noqa: S608
        base.commit()
    assert len(run_both(folder).records) == 2
