"""Prepared tables in the state folder: recalled where nothing changed, and never a wrong one."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.data.prepare import fit_and_prepare
from taciturn.data.user_table import user_rows
from taciturn.engine.callbacks import Callbacks
from taciturn.errors import FileError
from taciturn.files import exclusive_lock
from taciturn.jobs.train.job import TrainSide
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn.party.prepared_cache import PreparedCache
from taciturn.party.tables import PartyTables, load_tables
from tests.expected import refused
from tests.modules import module_of
from tests.party.sides import run_both, write_config, write_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Alice's file, with her table in two Parquet files."""
    write_tables(tmp_path)
    frame = pl.read_csv(tmp_path / "alice.csv")
    (tmp_path / "alice").mkdir()
    for number in range(2):
        frame[number * 60 : number * 60 + 60].write_parquet(tmp_path / f"alice/{number}.parquet")
    write_config(tmp_path, "alice", data={"file": "alice"})
    return tmp_path


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each preparation."""
    done: list[int] = []

    def counted(*values: Any, **named: Any) -> Any:
        done.append(1)
        return fit_and_prepare(*values, **named)

    monkeypatch.setattr(module_of(PartyTables), "fit_and_prepare", counted)
    return done


def kept(folder: Path) -> PreparedCache:
    return PreparedCache(folder / "alice-state" / "prepared", least=0)


def load(folder: Path) -> PartyTables:
    return load_tables(PartyConfig.read(folder / "alice.toml"), kept(folder))


def file_of(folder: Path, name: str) -> Path:
    (path,) = (folder / "alice-state" / "prepared").glob(f"*/{name}")
    return path


def test_nothing_is_prepared_twice_where_nothing_changed(folder, fits):
    one, two = load(folder), load(folder)
    plain = load_tables(PartyConfig.read(folder / "alice.toml"))
    assert len(fits) == 2
    assert one.preparation == two.preparation == plain.preparation
    for tables in (one, two):
        assert isinstance(tables.train.values.base, np.ndarray)
        assert tables.train == plain.train
        assert tables.held_out == plain.held_out
    assert not two.train.values.flags.writeable


def touched(folder: Path) -> None:
    status = (folder / "alice/1.parquet").stat()
    os.utime(folder / "alice/1.parquet", ns=(status.st_atime_ns, status.st_mtime_ns + 1))


def one_part_more(folder: Path) -> None:
    rows = pl.read_parquet(folder / "alice/1.parquet").head(2)
    rows.with_columns(id=pl.Series(["q1", "q2"])).write_parquet(folder / "alice/2.parquet")


def other_settings(folder: Path) -> None:
    write_config(folder, "alice", data={"file": "alice", "winsorise": "none"})


def other_rows(folder: Path) -> None:
    write_config(folder, "alice", data={"file": "alice"}, agreement={"split-seed": "another"})


def a_number(folder: Path) -> None:
    content = bytearray(file_of(folder, "train").read_bytes())
    content[3] ^= 1
    file_of(folder, "train").write_bytes(content)


def a_short_file(folder: Path) -> None:
    os.truncate(file_of(folder, "held-out"), 8)


def no_file(folder: Path) -> None:
    file_of(folder, "train").unlink()


def no_manifest(folder: Path) -> None:
    (folder / "alice-state/prepared/manifest.json").write_text("{}")


def another_version(folder: Path) -> None:
    path = folder / "alice-state/prepared/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 9}))


@pytest.mark.parametrize(
    "change",
    [
        touched,
        one_part_more,
        other_settings,
        other_rows,
        a_number,
        a_short_file,
        no_file,
        no_manifest,
        another_version,
    ],
)
@pytest.mark.sampled(4)
def test_whatever_changed_is_prepared_again(folder, fits, change: Callable[[Path], None]):
    load(folder)
    change(folder)
    again, plain = load(folder), load_tables(PartyConfig.read(folder / "alice.toml"))
    assert len(fits) == 3
    assert again.train == plain.train
    assert again.held_out == plain.held_out
    # Of the former files nothing is left.
    assert len(list((folder / "alice-state/prepared").iterdir())) == 2


def test_rows_of_a_query_are_recalled_until_they_change(folder, fits):
    frame = pl.read_csv(folder / "alice.csv")
    with closing(sqlite3.connect(folder / "alice.db")) as base:
        base.execute(f"create table people ({', '.join(frame.columns)})")
        marks = ", ".join("?" * frame.width)
        base.executemany("insert into people values (" + marks + ")", frame.rows())  # noqa: S608
        base.commit()
        select = "select * from people"
        query = {"file": None, "connection": "sqlite:alice.db", "query": select}
        write_config(folder, "alice", data=query)
        one, two = load(folder), load(folder)
        assert len(fits) == 1
        assert one.train == two.train
        base.execute(f"update people set {frame.columns[1]} = 0.5")  # noqa: S608
        base.commit()
    assert load(folder).train != one.train
    assert len(fits) == 2
    # The rows of the query are not left on the disk.
    assert not (folder / "alice-state" / "converted").exists()


def test_only_the_owner_may_look_into_any_of_it(folder):
    load(folder)
    state = folder / "alice-state"
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (state, *state.rglob("*"))}
    assert modes == {0o700, 0o600}


def test_the_tables_of_a_process_at_work_are_left_alone(folder, fits):
    load(folder)
    before = {path: path.stat().st_ino for path in (folder / "alice-state").rglob("*")}
    touched(folder)
    with exclusive_lock(folder / "alice-state" / "lock") as alone:
        assert alone
        tables = load(folder)
    assert len(fits) == 2
    assert tables.train == load_tables(PartyConfig.read(folder / "alice.toml")).train
    after = {path: path.stat().st_ino for path in (folder / "alice-state").rglob("*")}
    after.pop(folder / "alice-state" / "lock")
    assert after == before


def test_a_look_from_beside_leaves_no_file(folder):
    (folder / "alice-state").mkdir()
    load_tables(PartyConfig.read(folder / "alice.toml"))
    assert not list((folder / "alice-state").iterdir())


def test_a_small_table_makes_no_folder(folder):
    load_tables(
        PartyConfig.read(folder / "alice.toml"), PreparedCache(folder / "alice-state/prepared")
    )
    assert not (folder / "alice-state").exists()


FULL = """
import resource, sys
from pathlib import Path
from taciturn.party.config import PartyConfig
from taciturn.party.tables import PreparedCache
from taciturn.party.tables import load_tables
from taciturn.errors import OutputError
folder = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    load_tables(PartyConfig.read(folder / "alice.toml"),
                PreparedCache(folder / "alice-state/prepared", least=0))
except OutputError as problem:
    print(problem.where)
"""


@pytest.mark.parametrize("room", [100, 2000], ids=["a column", "the rows"])
@pytest.mark.sampled(1)
def test_a_disk_without_room_has_a_name_and_nothing_is_left_of_it(folder, fits, room):
    """A process that may write no larger files: the system refuses, as a full disk does."""
    answer = subprocess.run(
        [sys.executable, "-c", FULL, str(folder), str(room)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.startswith(str(folder / "alice-state" / "prepared"))
    assert not list(folder.glob("alice-state/prepared/*"))
    assert load(folder).train.rows
    assert fits == [1]


def test_a_part_that_goes_between_two_columns_is_named_and_nothing_is_left(folder, monkeypatch):
    def gone(*values: Any, **named: Any) -> Any:
        rows = user_rows(*values, **named)
        (folder / "alice/1.parquet").unlink()
        return rows

    monkeypatch.setattr(module_of(PartyTables), "user_rows", gone)
    with refused(FileError) as caught:
        load(folder)
    assert caught.value.where == str(folder / "alice/1.parquet")
    assert not list(folder.glob("alice-state/prepared/*"))


def test_a_training_goes_by_mapped_tables_and_removes_them(folder, monkeypatch):
    agreement = {"mechanism": "none", "epochs": 1, "batch-size": 48}
    write_config(folder, "alice", data={"file": "alice"}, agreement=agreement)
    write_config(folder, "bob", agreement=agreement)
    seen: set[str] = set()

    def look(_: object) -> None:
        seen.update(path.name for path in folder.glob("*-state/prepared/*/*"))

    mapped = partial(PreparedCache, least=0)
    monkeypatch.setattr(module_of(TrainSide), "PreparedCache", mapped)
    assert run_both(folder, watch={"bob": Callbacks(observe=look)}).records
    assert seen == {"train", "held-out"}
    assert not list(folder.glob("*-state/prepared"))
    share = ModelShare.load(folder / "alice.model.json")
    assert share.data_digest == load(folder).train.digest()
