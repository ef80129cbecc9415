"""The list of aligned rows: it comes back as it was written, and a training goes by it."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.data.ids import RowIds
from taciturn.errors import ColumnError, FileError, RowIdError
from taciturn.party.aligned_rows import AlignedRows, require_room
from taciturn.party.config import PartyConfig
from taciturn.party.tables import PartyTables, load_tables
from tests.expected import refused
from tests.party.sides import write_config
from tests.party.test_tables import ROWS, bobs

SPELLED = ["NA", "null", "?", "007", "1e3", 'a "b"', "a,b", "a b", "é", "😀", "x" * 3000, "-"]


def listed(*own: str, common: tuple[str, ...] = ()) -> AlignedRows:
    return AlignedRows(RowIds.from_values(list(own)), RowIds.from_values(list(common or own)))


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
@pytest.mark.parametrize("column", ["id", "common_id"])
def test_a_list_comes_back_as_it_was_written(tmp_path, name, column):
    path = tmp_path / name
    listed(*SPELLED).write(path, column)
    rows = AlignedRows.read(path, column)
    assert rows.own_ids.series.to_list() == rows.common.series.to_list() == SPELLED
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    listed("Ann", "CY", common=("ann", "cy")).write(path, column)
    rows = AlignedRows.read(path, column)
    assert rows.own_ids == RowIds.from_values(["Ann", "CY"])
    assert rows.common == RowIds.from_values(["ann", "cy"])


def test_ids_with_spaces_at_their_ends_need_parquet(tmp_path):
    ids = RowIds.from_values(["a", " b"])
    with refused(RowIdError, names=("1 of 2", "parquet")):
        require_room(tmp_path / "rows.csv", ids)
    require_room(tmp_path / "rows.parquet", ids)
    AlignedRows(ids, ids).write(tmp_path / "rows.parquet", "id")
    assert AlignedRows.read(tmp_path / "rows.parquet", "id").own_ids == ids


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("id\na\nb\na\n", RowIdError),
        ("person\na\n", ColumnError),
        ("id\n", FileError),
        ("", FileError),
        ("id\n \n", RowIdError),
    ],
)
def test_a_list_that_is_not_fit_is_refused_with_its_place(tmp_path, text, error):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with refused(error) as raised:
        AlignedRows.read(path, "id")
    assert str(path) in raised.value.where


def load(folder: Path, frame: pl.DataFrame, role: str = "bob", **data: Any) -> PartyTables:
    frame.write_csv(folder / f"{role}.csv")
    return load_tables(PartyConfig.read(write_config(folder, role, data=data)))


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_a_training_has_exactly_the_listed_rows(tmp_path, role):
    frame = bobs() if role == "bob" else bobs().drop("sick")
    chosen = [f"p{number:03d}" for number in range(0, ROWS, 2)]
    listed(*reversed(chosen)).write(tmp_path / "rows.csv", "id")
    tables = load(tmp_path, frame, role, aligned="rows.csv")
    alone = load(tmp_path, frame.filter(pl.col("id").is_in(chosen)), role)
    assert tables.train.digest() == alone.train.digest()
    assert tables.held_out is not None
    assert alone.held_out is not None
    assert tables.held_out.digest() == alone.held_out.digest()
    assert tables.train.rows + tables.held_out.rows == len(chosen)
    if tables.labels is not None and alone.labels is not None:
        assert tables.labels.digest() == alone.labels.digest()


def test_rows_have_the_common_names_of_the_list(tmp_path):
    """So two sides that spell ids differently still hold out the same rows."""
    own = [f"P{number:03d}" for number in range(ROWS)]
    lower = tuple(row_id.lower() for row_id in own)
    listed(*own, common=lower).write(tmp_path / "rows.csv", "id")
    tables = load(tmp_path, bobs(id=own), aligned="rows.csv")
    plain = load(tmp_path, bobs())
    assert tables.train.ids == plain.train.ids
    assert tables.labels is not None
    assert plain.labels is not None
    assert np.array_equal(tables.labels.values, plain.labels.values)


def test_a_listed_row_that_the_table_lacks_is_named(tmp_path):
    listed("p001", "zoe", "adam").write(tmp_path / "rows.csv", "id")
    with refused(RowIdError, names=("2 of 3", "'zoe'")):
        load(tmp_path, bobs(), aligned="rows.csv")
