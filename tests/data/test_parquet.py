"""Tables in parts: the same table from one file, a folder or a pattern; each fault has a name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.data.ids import RowIds
from taciturn.data.parquet import open_parquet
from taciturn.data.prepare import ChosenRows, fit, fit_and_prepare, prepared_table
from taciturn.data.source import TableSource, read_frame
from taciturn.data.table_files import is_parquet
from taciturn.data.user_table import DEFAULTS, UserTable, user_rows
from taciturn.errors import ColumnError, FileError
from taciturn.memmap import BLOCK_ROWS, Scratch
from tests.expected import refused

ROWS = 90


def people(rows: int = ROWS) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    debt = np.where(draw.random(rows) < 0.1, np.nan, draw.normal(size=rows))
    city = pl.Series(draw.choice(["Bern", "Genf", ""], rows).tolist())
    return pl.DataFrame(
        {
            "id": [f"p{n:06d}" for n in draw.permutation(rows)],
            "age": draw.integers(18, 80, rows),
            "debt": pl.Series(debt, nan_to_null=True),
            "city": city.set(city == "", None),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "parts"
    place.mkdir()
    for number in range(3):
        people()[number * 30 : number * 30 + 30].write_parquet(place / f"{number}.parquet")
    # What other programs leave beside the parts of a table.
    (place / "_SUCCESS").touch()
    (place / ".0.parquet").write_bytes(b"a copy that was not finished")
    return place


def test_a_folder_a_pattern_and_a_file_are_the_same_table(folder):
    people().write_parquet(folder.parent / "people.parquet")
    for name in ("parts", "parts/*.parquet", "**/[0-9].parquet", "people.parquet"):
        path = folder.parent / name
        assert is_parquet(path)
        assert read_frame(path).equals(people())
        assert open_parquet(path)["age"].equals(people()["age"])


def test_ids_are_read_without_the_other_columns(folder, monkeypatch):
    asked, whole = [], pl.read_parquet

    def read(path: Path, **how: Any) -> pl.DataFrame:
        asked.append(how["columns"])
        return whole(path, **how)

    monkeypatch.setattr(pl, "read_parquet", read)
    assert TableSource.at(folder).ids("id").own_ids == RowIds.from_values(people()["id"])
    assert asked == [["id"]] * 3


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (pl.exclude("debt"), "'debt'"),
        ([pl.all(), pl.lit(1).alias("more")], "'more'"),
        ([pl.exclude("age"), pl.col("age").cast(pl.Float64)], ("'age'", "Float64", "Int64")),
    ],
)
def test_a_part_of_other_columns_or_types_is_named(folder, change, names):
    people().head(5).select(change).write_parquet(folder / "2.parquet")
    with refused(ColumnError, names=names) as caught:
        open_parquet(folder)
    assert str(folder / "2.parquet") in caught.value.where


def test_columns_in_another_order_are_the_same_columns(folder):
    people()[60:].select(reversed(people().columns)).write_parquet(folder / "2.parquet")
    assert read_frame(folder).equals(people())


@pytest.mark.parametrize("damage", ["empty", "cut", "pages"])
def test_an_empty_or_damaged_part_is_named(folder, damage):
    part = folder / "1.parquet"
    whole = bytearray(part.read_bytes())
    whole[4:60] = bytes(56)
    part.write_bytes({"empty": b"", "cut": b"PAR1 and then nothing", "pages": whole}[damage])
    with refused(FileError) as caught:
        open_parquet(folder).frame()
    assert caught.value.where == str(part)


def test_no_rows_at_all_are_refused(folder):
    for number in range(3):
        people().clear().write_parquet(folder / f"{number}.parquet")
    with refused(FileError):
        open_parquet(folder)


def test_a_part_without_rows_is_no_fault(folder):
    people().clear().write_parquet(folder / "9.parquet")
    assert open_parquet(folder).height == ROWS


def test_a_part_that_is_changed_after_the_first_look_is_named(folder):
    table = open_parquet(folder)
    assert len(table["age"]) == ROWS
    part, status = folder / "1.parquet", (folder / "1.parquet").stat()
    os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with refused(FileError) as caught:
        table["age"]
    assert caught.value.where == str(part)
    part.unlink()
    with refused(FileError) as caught:
        table["age"]
    assert caught.value.where == str(part)


def test_a_file_that_goes_is_one_error_and_no_list_of_columns(folder, monkeypatch):
    """Between the look at the ids and that at the columns."""
    raw = user_rows(TableSource.at(folder), label_column=None, id_column="id", table=UserTable())
    (folder / "0.parquet").unlink()
    rows = ChosenRows(raw.ids, np.arange(ROWS))
    with refused(FileError):
        fit_and_prepare(raw.columns, raw.settings, [rows])


@pytest.mark.parametrize("least", [0, 1 << 40], ids=["in files", "in memory"])
def test_column_by_column_the_same_numbers_come_out(tmp_path, least):
    """As from ``fit`` and ``prepared_table``, which have the whole table in memory."""
    frame = people(BLOCK_ROWS + 500)
    frame.write_parquet(tmp_path / "people.parquet")
    features, ids = frame.drop("id"), RowIds.from_values(frame["id"])
    order = np.argsort(frame["id"].to_numpy())
    train, rest = order[: BLOCK_ROWS + 100], order[BLOCK_ROWS + 100 :]
    plan = fit(features, DEFAULTS, ids=ids.take(train), rows=train)
    columns = open_parquet(tmp_path / "people.parquet").select(features.columns)
    chosen = [ChosenRows(ids.take(rows), rows, str(len(rows))) for rows in (train, rest)]
    scratch = Scratch(tmp_path / "prepared", least)
    again, tables = fit_and_prepare(columns, DEFAULTS, chosen, intercept=True, scratch=scratch)
    assert again == plan
    for rows, table in zip((train, rest), tables, strict=True):
        expected = prepared_table(plan, features, ids.take(rows), rows=rows, intercept=True)
        assert table == expected
        assert table.digest() == expected.digest()
    # The columns, from which the rows were made, are gone.
    left = {path.name for path in tmp_path.glob("prepared/*")}
    assert left == (set() if least else {str(len(train)), str(len(rest))})
