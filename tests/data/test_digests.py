"""A table on a disk has one digest, and another once anything of it is another."""

from __future__ import annotations

import hashlib

import polars as pl
import pytest

from taciturn.data import file_digest
from taciturn.errors import FileError


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"id,age\n1,30\n")
    assert file_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_table_in_parts_has_one_digest_for_all_of_them(tmp_path):
    for name, age in (("a", 30), ("b", 40)):
        pl.DataFrame({"id": [name], "age": [age]}).write_parquet(tmp_path / f"{name}.parquet")
    whole = file_digest(tmp_path)
    assert whole == file_digest(tmp_path / "*.parquet")
    assert whole != file_digest(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").rename(tmp_path / "c.parquet")
    assert file_digest(tmp_path) != whole


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(FileError) as refused:
        file_digest(tmp_path / "nowhere.csv")
    assert refused.value.where == str(tmp_path / "nowhere.csv")
