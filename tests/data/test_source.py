"""One table from a file, a folder, a frame or a database: the same columns, and no credentials."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.data.csv_files import Dialect
from taciturn.data.database import Connection, DatabaseQuery
from taciturn.data.ids import RowIds
from taciturn.data.lazy_table import LazyTable
from taciturn.data.source import TableSource
from taciturn.errors import ColumnError, ConfigError, DataError, FileError, RowIdError
from tests.expected import refused
from tests.modules import module_of
from tests.postgres import postgres

# As a CSV file and a database have them: a gap, a word for one, blanks, leading zeros.
CSV = (
    "id,age,income,city,since,paid\n007,31,1200.5,Ulm,2020-05-01,true\n008,,900,,2021-01-31,false\n"
)
ROWS: list[tuple[Any, ...]] = [
    ("007", 31, 1200.5, " Ulm ", "2020-05-01", "true"),
    ("008", None, 900, "NA", "2021-01-31", "false"),
]
COLUMNS = "id text, age integer, income real, city text, since text, paid text"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"create table people ({COLUMNS}, photo blob)")
        connection.executemany("insert into people values (?, ?, ?, ?, ?, ?, x'00')", ROWS)
        connection.commit()
    return path


def selected(
    base: Path, select: str = "select id, age, income, city, since, paid from people", **how: Any
) -> TableSource:
    return TableSource.from_query(select, Connection(f"sqlite:{base.name}", base.parent), **how)


def from_csv(folder: Path) -> pl.DataFrame:
    (folder / "people.csv").write_text(CSV, encoding="utf-8")
    return TableSource.at(folder / "people.csv").frame(text=["id"])


def test_a_query_gives_what_a_csv_file_of_its_rows_gives(base):
    wanted = from_csv(base.parent)
    assert selected(base).frame(text=["id"]).equals(wanted)
    assert selected(base).frame(text=["id"]).schema == wanted.schema
    assert selected(base).ids("id").own_ids == RowIds.from_values(["007", "008"])


def test_rows_that_take_much_memory_go_to_the_folder_and_are_the_same(base, monkeypatch):
    monkeypatch.setattr(module_of(Dialect), "LARGE_CSV", 1)
    monkeypatch.setattr(module_of(DatabaseQuery), "CHUNK_ROWS", 1)
    folder, wanted = base.parent / "rows", from_csv(base.parent)
    held, stored = selected(base).open(text=["id"]), selected(base).open(text=["id"], folder=folder)
    assert len([*folder.iterdir()]) == len(ROWS)
    for table in (held, stored):
        assert (table.columns, table.height) == (wanted.columns, wanted.height)
        assert all(table[name].equals(wanted[name], check_dtypes=True) for name in table.columns)


def test_the_most_rows_of_a_query_are_bounded(base, monkeypatch):
    monkeypatch.setattr(module_of(DatabaseQuery), "MOST_ROWS", 2)
    assert selected(base).frame().height == 2
    monkeypatch.setattr(module_of(DatabaseQuery), "MOST_ROWS", 1)
    with refused(DataError):
        selected(base).frame()


FAULTS: dict[str, tuple[str, type[DataError], str]] = {
    "two statements": ("select * from people; delete from people", DataError, "SELECT"),
    "a statement that writes": ("delete from people returning id", DataError, "SELECT"),
    "a closed bracket": ("select * from people) as p; delete from people; --", DataError, "SELECT"),
    "an absent column": ("select agee from people", DataError, "column"),
    "an absent table": ("select * from persons", DataError, "table"),
    "no rows": ("select * from people where id = 'x'", DataError, "rows"),
    "a repeated column": ("select id, age, income as age from people", ColumnError, "'age'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_query_reads_or_is_refused(base, fault):
    select, kind, names = FAULTS[fault]
    with refused(kind, names=names) as caught:
        selected(base, select).frame()
    assert caught.value.hint
    assert selected(base).frame().height == len(ROWS)


def test_a_column_of_bytes_is_refused_by_name(base):
    with refused(ColumnError, names="'photo'"):
        selected(base, "select id, photo from people").frame()


def test_the_address_is_kept_in_the_environment_or_in_a_private_file(base, monkeypatch):
    def ids(connection: str) -> RowIds:
        source = TableSource.from_query(
            "select id from people", Connection(connection, base.parent)
        )
        assert "people.db" not in f"{source!r} {source.location!r} {source.where}"
        return source.ids("id").own_ids

    monkeypatch.setenv("PEOPLE", "sqlite:people.db")
    kept = base.parent / "people.address"
    kept.write_text(f"sqlite:///{base}\n", encoding="utf-8")
    kept.chmod(0o600)
    assert ids("env:PEOPLE") == ids("file:people.address") == RowIds.from_values(["007", "008"])
    kept.chmod(0o640)
    with refused(FileError, names=str(kept)):
        ids("file:people.address")
    with refused(FileError, names="absent.address"):
        ids("file:absent.address")
    with refused(DataError, names="env:NOBODY"):
        ids("env:NOBODY")
    monkeypatch.setenv("PEOPLE", "mysql://me:secret@db/crm")
    with refused(DataError, names="env:PEOPLE") as caught:
        ids("env:PEOPLE")
    assert "secret" not in caught.value.diagnostics()


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with refused(ConfigError, names="psycopg") as caught:
        TableSource.from_query("select 1 as id", Connection("postgresql://db/crm")).ids("id")
    assert "[postgres]" in caught.value.hint


def test_the_faults_of_ids_are_those_of_a_file(base):
    with refused(ColumnError, names="'who'"):
        selected(base).ids("who")
    with refused(RowIdError):
        selected(base, "select 'a' as id from people").ids("id")
    with refused(FileError, names="absent.db"):
        selected(base.with_name("absent.db")).ids("id")


def test_a_comment_and_a_semicolon_may_end_a_query(base):
    select = "select id from people"
    for text in (f"{select};", f"{select}  -- all of them", f"{select} -- all;\n"):
        assert selected(base, text).ids("id").own_ids == RowIds.from_values(["007", "008"])


def test_other_rows_have_another_fingerprint(base):
    def known() -> object:
        table = selected(base).open(text=["id"])
        assert isinstance(table, LazyTable)
        return table.fingerprints

    first = known()
    assert known() == first
    with closing(sqlite3.connect(base)) as connection:
        connection.execute("update people set age = 32 where id = '007'")
        connection.commit()
    assert known() != first


def test_postgresql_gives_the_same_and_no_password_is_shown(base, monkeypatch):
    with postgres() as server:
        import psycopg

        with psycopg.connect(server.address, autocommit=True) as connection:
            types = "id text, age int, income numeric, city text, since date, paid boolean"
            connection.execute(f"create table people ({types})")
            with connection.cursor() as cursor:
                cursor.executemany("insert into people values (%s, %s, %s, %s, %s, %s)", ROWS)
        select = "select * from people where city like '%' or city is null"
        source = TableSource.from_query(select, Connection(server.address))
        assert source.frame(text=["id"]).equals(from_csv(base.parent))
        assert isinstance(source.location, DatabaseQuery)
        with closing(source.location.open()) as database:
            records, repeated = database.lookup(["008", "9"], "id", ["income"])
        assert ({*records}, repeated) == ({"008"}, set())
        with psycopg.connect(server.address, autocommit=True) as connection:
            connection.execute("create sequence numbers")
        writing = TableSource.from_query(
            "select id, setval('numbers', 7) as age from people", Connection(server.address)
        )
        with refused(DataError, names="25006"):
            writing.frame()
        assert isinstance(writing.location, DatabaseQuery)
        # A lookup is a single statement, outside of any transaction.
        with closing(writing.location.open()) as database, refused(DataError, names="25006"):
            database.lookup(["008"], "id", ["age"])
        hints = set[str]()
        for select, code in (
            ("select * from persons", "42P01"),
            ("select agee from people", "42703"),
            ("select * form people", "42601"),
            ("select id, 1 / 0 as age from people", "22012"),
        ):
            with refused(DataError, names=code) as caught:
                TableSource.from_query(select, Connection(server.address)).frame()
            hints.add(caught.value.hint)
        with refused(ColumnError, names="'id'"):
            joined = "select a.id, b.id from people a join people b using (id)"
            TableSource.from_query(joined, Connection(server.address)).frame()
        for old, new, names in (
            ("postgres@", "nobody:secret@", "user"),
            ("/postgres?", "/absent?", "database"),
        ):
            monkeypatch.setenv("OTHER", server.address.replace(old, new))
            with refused(DataError, names=names) as caught:
                TableSource.from_query("select 1 as id", Connection("env:OTHER")).ids("id")
            hints.add(caught.value.hint)
            assert "secret" not in caught.value.diagnostics()
    away = "postgresql://me:secret@127.0.0.1:1/crm"
    lost = TableSource.from_query("select 1 as id", Connection("env:AWAY"))
    monkeypatch.setenv("AWAY", away)
    with refused(DataError) as caught:
        lost.ids("id")
    # Each fault has a way out of its own.
    assert len({*hints, caught.value.hint}) == 7
    assert "secret" not in f"{caught.value} {lost!r} {lost.location!r} {lost.where}"
    assert lost.digest() is None


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"id,age\n1,30\n")
    assert TableSource.at(path).digest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_table_in_parts_has_one_digest_for_all_of_them(tmp_path):
    for name, age in (("a", 30), ("b", 40)):
        pl.DataFrame({"id": [name], "age": [age]}).write_parquet(tmp_path / f"{name}.parquet")
    whole = TableSource.at(tmp_path).digest()
    assert whole == TableSource.at(tmp_path / "*.parquet").digest()
    assert whole != TableSource.at(tmp_path / "a.parquet").digest()
    (tmp_path / "b.parquet").rename(tmp_path / "c.parquet")
    assert TableSource.at(tmp_path).digest() != whole


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileError) as refused:
        TableSource.at(tmp_path / "nowhere.csv").digest()
    assert refused.value.where == str(tmp_path / "nowhere.csv")
