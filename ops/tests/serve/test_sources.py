"""Rows by id from files and databases: the same prepared values, and names for what is wrong."""

from __future__ import annotations

import datetime
import shutil
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from ops.tests.serve.sides import serve_settings

from taciturn.data.prepare import fit
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.source import read_frame
from taciturn.errors import ColumnError, ConfigError, DataError, FileError
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn_ops.serve.sources import Preparer, RowSource, TableRows, open_source
from tests.expected import refused
from tests.jobs.predict.test_sides import trained
from tests.model.models import share_of
from tests.postgres import postgres

IDS = [f"p{number:04d}" for number in range(120, 150)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("plain"), mechanism="none")


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "plain"))


def share(folder: Path, role: str = "alice") -> ModelShare:
    return ModelShare.load(folder / f"{role}.model.json")


def from_file(folder: Path) -> Any:
    return open_source(serve_settings(folder, "alice"), share(folder)).take(IDS).values


def from_database(folder: Path, source: str, table: str) -> RowSource:
    select = {"connection": source, "query": f"select * from {table}"}  # noqa: S608
    return open_source(serve_settings(folder, "alice", **select), share(folder))


def write_sqlite(folder: Path, *statements: str) -> None:
    """The new rows as a table of a database, and what else is to be done there."""
    frame = pl.read_csv(folder / "new-alice.csv")
    names = ", ".join(
        f'"{name}" {"text primary key" if name == "id" else "real"}' for name in frame.columns
    )
    marks = ", ".join("?" * len(frame.columns))
    with closing(sqlite3.connect(folder / "rows.db")) as base:
        base.execute(f"create table customers ({names})")
        base.executemany("insert into customers values (" + marks + ")", frame.rows())  # noqa: S608
        for statement in statements:
            base.execute(statement)
        base.commit()


def test_a_parquet_file_and_a_folder_of_them_give_the_rows_of_the_csv(folder):
    wanted = from_file(folder)
    frame = pl.read_csv(folder / "new-alice.csv")
    frame.write_parquet(folder / "new.parquet")
    (folder / "parts").mkdir()
    frame[:10].write_parquet(folder / "parts" / "1.parquet")
    frame[10:].write_parquet(folder / "parts" / "2.parquet")
    for source in ("new.parquet", "parts"):
        settings = serve_settings(folder, "alice", source=source)
        assert np.array_equal(open_source(settings, share(folder)).take(IDS).values, wanted)


def test_a_table_names_unknown_ids_and_gives_zeros_for_them(folder):
    source = open_source(serve_settings(folder, "alice"), share(folder))
    assert isinstance(source, TableRows)
    taken = source.take(["p0121", "nobody", "p0122"])
    assert {*taken.unknown} == {1}
    assert not taken.values[1].any()
    assert np.array_equal(taken.values[[0, 2]], from_file(folder)[[1, 2]])


def test_sqlite_gives_the_same_rows(folder):
    write_sqlite(folder)
    source = from_database(folder, "sqlite:rows.db", "customers")
    taken = source.take([*IDS, "nobody", "1; drop table customers"])
    assert np.array_equal(taken.values[:30], from_file(folder))
    assert {*taken.unknown} == {30, 31}
    source.close()


def test_a_service_without_a_source_looks_up_the_query_of_the_party(folder):
    wanted = from_file(folder)
    write_sqlite(folder)
    path = folder / "alice.toml"
    text = path.read_text(encoding="utf-8").partition("[serve]")[0]
    query = "select * from customers where id <> 'p0121'"
    lines = f'connection = "sqlite:rows.db"\nquery = "{query}"'
    path.write_text(text.replace('file = "alice.csv"', lines), encoding="utf-8")
    with closing(open_source(PartyConfig.read(path), share(folder))) as source:
        taken = source.take(IDS)
    assert {*taken.unknown} == {1}
    assert np.array_equal(taken.values[2:], wanted[2:])


def test_an_id_that_is_twice_in_a_database_is_not_fit_and_others_are(folder):
    write_sqlite(
        folder,
        "create table doubled as select * from customers",
        "insert into doubled select * from customers where id = 'p0121'",
    )
    source = from_database(folder, "sqlite:rows.db", "doubled")
    taken = source.take(["p0121", "p0122", "P0122"])
    assert {*taken.unfit} == {0}
    assert {*taken.unknown} == {2}
    source.close()


def test_numbers_are_read_as_a_file_has_them(folder):
    preparer = Preparer(share(folder))
    good = dict.fromkeys(preparer.columns, 1.0)
    texts = ("1_0", "١٢", "0x10", "1e3", " 2.5 ")
    rows = [{**good, preparer.columns[0]: text} for text in texts]
    assert {*preparer.rows([f"r{n}" for n in range(5)], rows).unfit} == {0, 1, 2}


@pytest.mark.parametrize("texts", [["€ 1.834,51", "1,234 €"], ["1.834,51", "1,834.52"]])
def test_amounts_may_come_as_text_or_as_numbers(texts):
    """As the training rows were written, and as JSON and databases have numbers."""
    plan = fit(pl.DataFrame({"x": [*texts, "-0,5"]}), PrepareSettings())
    preparer = Preparer(share_of(plan, "bob"))
    numbers: list[float | Decimal] = [1834.51, 1.234, -2, 5e-7, Decimal("7.000")]
    taken = preparer.rows([*"abcde"], [{"x": number} for number in numbers])
    assert not taken.unfit
    frame = pl.DataFrame({"x": [float(number) for number in numbers]})
    np.testing.assert_array_equal(taken.values, plan.apply(frame))
    first = preparer.rows(["a"], [{"x": texts[0]}])
    np.testing.assert_array_equal(first.values[0], taken.values[0])


def test_ids_that_are_whole_numbers_in_a_database_are_asked_for_as_such(folder):
    write_sqlite(
        folder,
        "create table numbered as select * from customers",
        "alter table numbered rename column id to name",
        "alter table numbered add column id integer",
        "update numbered set id = cast(substr(name, 2) as integer)",
    )
    source = from_database(folder, "sqlite:rows.db", "numbered")
    taken = source.take(["121", "0122", "nobody", "-5"])
    assert {*taken.unknown} == {1, 2, 3}
    assert np.array_equal(taken.values[0], from_file(folder)[1])
    source.close()


def test_postgresql_gives_the_same_rows_and_is_asked_again_after_a_restart(folder):
    with postgres() as server:
        import psycopg

        frame = pl.read_csv(folder / "new-alice.csv")
        names = ", ".join(
            f'"{name}" {"text primary key" if name == "id" else "double precision"}'
            for name in frame.columns
        )
        with psycopg.connect(server.address, autocommit=True) as base:
            base.execute("create schema risk")
            base.execute(f"create table risk.customers ({names})")
            marks = ", ".join(["%s"] * len(frame.columns))
            with base.cursor() as cursor:
                insert = f"insert into risk.customers values ({marks})"  # noqa: S608
                cursor.executemany(insert, frame.rows())
        source = from_database(folder, server.address, "risk.customers")
        wanted = from_file(folder)
        taken = source.take([*IDS, "nobody"])
        assert np.array_equal(taken.values[:30], wanted)
        assert {*taken.unknown} == {30}
        server.stop()
        with refused(DataError):
            source.take(IDS)
        server.start()
        assert np.array_equal(source.take(IDS).values, wanted)
        source.close()
        with psycopg.connect(server.address, autocommit=True) as base:
            base.execute("create table risk.keyed as select * from risk.customers")
            base.execute("alter table risk.keyed add column key uuid default gen_random_uuid()")
            base.execute("alter table risk.keyed rename column id to name")
            base.execute("alter table risk.keyed rename column key to id")
            key, place = base.execute(
                "select id, substr(name, 2)::int - 120 from risk.keyed limit 1"
            ).fetchone() or ("", 0)
        keyed = from_database(folder, server.address, "risk.keyed")
        taken = keyed.take([str(key), "c0042", "\x01"])
        # What is no uuid is unknown, and no error.
        assert {*taken.unknown} == {1, 2}
        assert np.array_equal(taken.values[0], wanted[place])
        keyed.close()
        with refused(DataError, names="42P01"):
            from_database(folder, server.address, "absent")


WRONG: dict[str, tuple[dict[str, Any], type[DataError], object]] = {
    "no database": ({"connection": "sqlite:absent.db"}, FileError, "absent.db"),
    "no table": ({"query": "select * from absent"}, DataError, "SQLITE_ERROR"),
    "no columns": ({"query": "select * from narrow"}, ColumnError, ("mean_radius", 5)),
    "no SQLite": ({"connection": "sqlite:alice.csv"}, DataError, "alice.csv"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_database_that_is_not_fit_is_refused_by_name(folder, name):
    write_sqlite(folder, "create table narrow (id text)")
    settings, kind, names = WRONG[name]
    config = serve_settings(
        folder,
        "alice",
        **{"connection": "sqlite:rows.db", "query": "select * from customers", **settings},
    )
    with refused(kind, names=names):
        open_source(config, share(folder))


def test_spelling_cannot_be_ignored_in_a_database(folder):
    text = (folder / "alice.toml").read_text(encoding="utf-8")
    (folder / "alice.toml").write_text(
        text.replace("[data]", '[data]\nnormalise-ids = "trim,case"'), encoding="utf-8"
    )
    config = serve_settings(
        folder, "alice", connection="sqlite:rows.db", query="select * from customers"
    )
    with refused(ConfigError):
        open_source(config, share(folder))


def test_values_of_every_kind_are_prepared_as_a_file_has_them(tmp_path):
    """Numbers, texts, booleans, dates and missing values from a database, and from CSV."""
    rows: list[dict[str, Any]] = [
        {"age": 31, "income": Decimal("1200.5"), "city": "Ulm", "since": datetime.date(2020, 5, 1)},
        {"age": None, "income": 900, "city": None, "since": datetime.date(2021, 1, 31)},
        {"age": 44.5, "income": "70", "city": " Bonn ", "since": "2019-12-24"},
    ]
    lines = ["age,income,city,since", "31,1200.5,Ulm,2020-05-01", ",900,,2021-01-31"]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([*lines, "44.5,70,Bonn,2019-12-24"]) + "\n", encoding="utf-8")
    frame = read_frame(path, text=["city", "since"])
    plan = fit(frame, PrepareSettings())
    wanted = plan.apply(frame)
    taken = Preparer(share_of(plan, "bob")).rows(["a", "b", "c"], rows)
    assert not taken.unfit
    assert np.array_equal(taken.values, wanted)


def test_a_row_that_cannot_be_prepared_is_named_and_the_others_are_given(folder):
    preparer = Preparer(share(folder))
    good = dict.fromkeys(preparer.columns, 1.0)
    bad = {**good, preparer.columns[0]: "much"}
    infinite = {**good, preparer.columns[1]: float("inf")}
    taken = preparer.rows(["a", "b", "c"], [good, bad, infinite])
    assert {*taken.unfit} == {1, 2}
    assert taken.values[0].any()
    # Not a word of the value.
    assert "much" not in str(taken.unfit)
