"""Two tables of a simulation, joined by their ids."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import taciturn
from taciturn.data.joined import join_tables
from taciturn.errors import ConfigError, DataError

BOB = pl.DataFrame({"id": ["03", "01", "02"], "age": [30, 10, 20], "label": [1, 0, 1]})
ALICE = pl.DataFrame({"id": ["02", "03", "09"], "bill": [2.0, 3.0, 9.0]})


def test_the_rows_of_both_are_joined_in_the_order_of_bobs():
    joined, columns = join_tables(BOB, ALICE, "id")
    assert columns == ("bill",)
    assert joined.rows() == [("03", 30, 1, 3.0), ("02", 20, 1, 2.0)]


def test_files_keep_leading_zeros(tmp_path):
    for name, frame in (("bob", BOB), ("alice", ALICE)):
        frame.write_csv(tmp_path / f"{name}.csv")
    joined, _ = join_tables(tmp_path / "bob.csv", tmp_path / "alice.csv", "id")
    assert joined["id"].to_list() == ["03", "02"]


@pytest.mark.parametrize(
    "alice",
    [
        ALICE.rename({"id": "key"}),
        ALICE.rename({"bill": "age"}),
        pl.concat([ALICE, ALICE]),
        ALICE.with_columns(id=pl.col("id") + "x"),
    ],
    ids=["no id", "a column of both", "repeated ids", "nothing in common"],
)
def test_tables_that_cannot_be_joined_are_refused(alice):
    with pytest.raises(DataError):
        join_tables(BOB, alice, "id")


def test_a_training_takes_two_tables():
    rows = [(f"r{number:03d}", number % 7, number % 3, int(number % 5 > 1)) for number in range(90)]
    table = pl.DataFrame(rows, ["id", "age", "bill", "label"], orient="row")
    bob, alice = table.drop("bill"), table.select("id", "bill").reverse()
    options: Any = {"id": "id", "label": "label", "seed": 1, "mechanism": "none", "scheme": "clear"}
    joined = taciturn.train(table, alice_columns=["bill"], **options).to_dict()
    apart = taciturn.train(bob, alice_data=alice, **options).to_dict()
    assert apart["test"] == joined["test"]
    assert apart["alice_columns"] == 1
    with pytest.raises(ConfigError):
        taciturn.train(bob, alice_data=alice, alice_columns=["age"], **options)
