"""A party's own table: which rows train and which are held out, and what is not fit for use."""

from __future__ import annotations

import math
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.data.ids import RowIds, held_out_rows
from taciturn.errors import (
    ColumnError,
    LabelValueError,
    RowIdError,
    ShapeError,
    TableError,
)
from taciturn.party.config import PartyConfig
from taciturn.party.tables import PartyTables, load_tables
from tests.expected import refused
from tests.party.sides import write_config

ROWS = 60


def bobs(**columns: list[Any]) -> pl.DataFrame:
    values: dict[str, list[Any]] = {
        "id": [f"p{number:03d}" for number in range(ROWS)],
        "age": [20.0 + number * 7 % 50 for number in range(ROWS)],
        "sick": [number * 5 % 3 % 2 for number in range(ROWS)],
    }
    return pl.DataFrame({**values, **columns})


def load(
    folder: Path, frame: pl.DataFrame, role: str = "bob", **changes: dict[str, Any]
) -> PartyTables:
    frame.write_csv(folder / f"{role}.csv")
    return load_tables(PartyConfig.read(write_config(folder, role, **changes)))


@pytest.mark.parametrize("role", ["alice", "bob"])
def test_the_order_of_the_file_does_not_matter(tmp_path, role):
    frame = bobs() if role == "bob" else bobs().drop("sick")
    order = np.random.default_rng(1).permutation(ROWS)
    one, two = load(tmp_path, frame, role), load(tmp_path, frame[order], role)
    assert one.train.digest() == two.train.digest()
    assert one.held_out is not None
    assert two.held_out is not None
    assert one.held_out.digest() == two.held_out.digest()
    if role == "bob":
        assert one.labels is not None
        assert two.labels is not None
        assert one.labels.digest() == two.labels.digest()


def test_labels_stay_with_their_rows(tmp_path):
    tables = load(tmp_path, bobs().reverse())
    truth = dict(bobs().select("id", "sick").iter_rows())
    assert tables.labels is not None
    assert tables.held_out_labels is not None
    for labels in (tables.labels, tables.held_out_labels):
        assert labels.values.tolist() == [truth[name] for name in labels.ids.series]


def test_a_query_of_a_database_gives_the_tables_of_the_file(tmp_path):
    wanted = load(tmp_path, bobs())
    with closing(sqlite3.connect(tmp_path / "bob.db")) as base:
        base.execute("create table people (id text, age real, sick integer, secret blob)")
        base.executemany("insert into people values (?, ?, ?, x'00')", bobs().reverse().rows())
        base.commit()
    select = "select id, age, sick from people"
    data = {"file": None, "connection": "sqlite:bob.db", "query": select}
    config = PartyConfig.read(write_config(tmp_path, "bob", data=data))
    tables = load_tables(config)
    assert tables.train.digest() == wanted.train.digest()
    assert tables.held_out == wanted.held_out
    assert tables.labels == wanted.labels
    assert tables.preparation == wanted.preparation
    assert len(config.table().ids("id").own_ids) == ROWS


@pytest.mark.parametrize("duplicates", ["first", "last"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_row_of_each_repeated_id_is_taken_from_any_file(tmp_path, duplicates, suffix):
    again = bobs(age=[1.0] * ROWS).head(20)
    table = pl.concat([bobs(), again] if duplicates == "first" else [again, bobs()])
    if suffix == "csv":
        table.write_csv(tmp_path / "again.csv")
    else:
        (tmp_path / "again").mkdir()
        for number, part in enumerate(table.iter_slices(50)):
            part.write_parquet(tmp_path / "again" / f"{number}.parquet")
    wanted = load(tmp_path, bobs())
    data = {"file": "again.csv" if suffix == "csv" else "again", "duplicates": duplicates}
    config = PartyConfig.read(write_config(tmp_path, "bob", data=data))
    tables = load_tables(config)
    assert tables.train.digest() == wanted.train.digest()
    assert tables.labels == wanted.labels
    assert len(tables.notes) == len(wanted.notes) + 1
    assert len(config.table().ids("id").own_ids) == ROWS
    with refused(RowIdError, names="duplicates"):
        load_tables(PartyConfig.read(write_config(tmp_path, "bob", data={"file": data["file"]})))


names = st.lists(
    st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12),
    min_size=2,
    max_size=40,
    unique=True,
)


@given(names)
@settings(max_examples=25)
def test_both_sides_come_to_the_same_rows_in_the_same_order(ids):
    """Through the files: ids of any letters, digits and signs survive CSV on both sides."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = {"id": ids, "x": [float(n) for n in range(len(ids))]}
        labels = [n % 2 for n in range(len(ids))]
        try:
            hers = load(folder, pl.DataFrame(table), "alice")
            his = load(folder, pl.DataFrame({**table, "sick": labels}).reverse())
        except (ShapeError, LabelValueError, RowIdError):
            # Nothing left, one class, or an id that CSV takes for missing (null): said, not hidden.
            return
        assert hers.train.ids == his.train.ids
        assert (hers.held_out is None) == (his.held_out is None)
        if hers.held_out is not None and his.held_out is not None:
            assert hers.held_out.ids == his.held_out.ids


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_the_held_out_share_is_near_the_fraction_with_a_false_alarm_once_in_a_billion(share):
    """A hash is as a coin: 20,000 fixed ids lie within six standard deviations (2e-9)."""
    ids = RowIds.from_values([f"person {number}" for number in range(20_000)])
    held = held_out_rows(ids, share, "trial").sum()
    assert abs(held - share * 20_000) < 6 * math.sqrt(20_000 * share * (1 - share))


def test_the_salt_changes_which_rows_they_are(tmp_path):
    chosen = [
        load(tmp_path, bobs(), agreement={"split-seed": salt}).train.ids.series.to_list()
        for salt in ("one", "two", "one")
    ]
    assert chosen[0] != chosen[1]
    assert chosen[0] == chosen[2]


def test_nothing_is_held_out_where_nothing_is_asked_for(tmp_path):
    tables = load(tmp_path, bobs(), agreement={"held-out": 0})
    assert tables.held_out is None
    assert tables.held_out_labels is None
    assert tables.train.rows == ROWS


def test_the_preparation_is_fitted_on_training_rows_alone(tmp_path):
    tables = load(tmp_path, bobs(), agreement={"intercept": False})
    assert np.allclose(tables.train.values.mean(axis=0), 0)
    assert tables.held_out is not None
    assert not np.allclose(tables.held_out.values.mean(axis=0), 0)


def test_a_party_says_all_problems_with_the_lines_of_its_file(tmp_path):
    words = ["yes" if sick else "no" for sick in bobs()["sick"]]
    ages = ["old", *(str(20 + n) for n in range(ROWS - 1))]
    with pytest.raises(TableError) as caught:
        load(tmp_path, bobs(sick=words, age=ages, debt=[math.inf] * ROWS), data={"drop": ["aeg"]})
    assert len(caught.value.problems) == 4
    text = str(caught.value)
    for line in ('positive = "yes"', 'type.age = "category"', 'drop = ["debt"]', "aeg"):
        assert line in text


def test_a_party_takes_words_dialects_and_choices_by_column(tmp_path):
    words = ["yes" if sick else "no" for sick in bobs()["sick"]]
    data = {"positive": "yes", "separator": ";", "encoding": "latin-1", "bins.age": 3}
    path = write_config(tmp_path, "bob", data=data)
    town = ["Köln", "Ulm"] * (ROWS // 2)
    table = bobs(sick=words, town=town).write_csv(separator=";")
    (tmp_path / "bob.csv").write_text(table, encoding="latin-1")
    tables = load_tables(PartyConfig.read(path))
    assert tables.train.columns[-2:] == ("town=Ulm", "(intercept)")
    assert len(tables.train.columns) == 4
    plain = load(tmp_path, bobs())
    assert tables.labels is not None
    assert plain.labels is not None
    assert tables.labels.values.tolist() == plain.labels.values.tolist()


def test_a_column_like_the_label_is_told_to_bob_and_not_to_alice(tmp_path):
    """Alice hears of a column's name and values alone; Bob of what his labels say."""
    leak = [2.0 * sick for sick in bobs()["sick"]]
    (note,) = load(tmp_path, bobs(paid=leak)).notes
    assert 'drop = ["paid"]' in note
    hers = bobs(paid=leak).drop("sick")
    assert not load(tmp_path, hers, role="alice").notes
    (note,) = load(tmp_path, bobs().rename({"sick": "default"}), role="alice").notes
    assert "default" in note


@pytest.mark.parametrize("intercept", [True, False])
def test_bob_may_have_no_columns(tmp_path, intercept):
    tables = load(tmp_path, bobs().drop("age"), agreement={"intercept": intercept})
    assert len(tables.train.columns) == int(intercept)
    assert tables.train.values.shape == (tables.train.rows, int(intercept))
    assert tables.preparation.columns == ()


def test_alice_must_have_columns(tmp_path):
    with refused(ColumnError):
        load(tmp_path, bobs().select("id"), "alice")


@pytest.mark.parametrize(("key", "role"), [("id", "alice"), ("id", "bob"), ("label", "bob")])
def test_a_mistyped_column_is_named_with_the_nearest(tmp_path, key, role):
    frame = bobs() if role == "bob" else bobs().drop("sick")
    mistyped, nearest = ("sik", "sick") if key == "label" else ("idd", "id")
    with refused(ColumnError, names=(mistyped, nearest)):
        load(tmp_path, frame, role, data={key: mistyped})
