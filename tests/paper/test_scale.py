"""The measurement of large tables, on small ones: two real parties from folders to models."""

from __future__ import annotations

import pytest

from taciturn_paper import scale
from taciturn_paper.scale import Task, measure, per_pass


@pytest.mark.slow  # some seconds: two processes from Parquet folders to models
def test_both_sides_tell_what_a_pass_costs(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "PART_ROWS", 700)
    report = measure(Task(rows=2000, passes=2, alice=5, bob=2), tmp_path / "run")
    assert len(list((tmp_path / "run" / "alice-parts").iterdir())) == 3
    alice, bob = report["alice"], report["bob"]
    assert len(bob["passes"]) == 2
    assert 0.0 < per_pass(report) < bob["end"]
    for side in (alice, bob):
        assert 0 < side["preparation_peak"] <= side["peaks"][0]
        assert side["bytes_sent"] > 100_000
    assert (tmp_path / "run" / "bob.model.json").exists()


def test_the_sides_have_their_rows_in_other_orders(tmp_path, monkeypatch):
    import polars as pl

    monkeypatch.setattr(scale, "PART_ROWS", 40)
    scale.make_tables(tmp_path, Task(rows=100, passes=1, alice=2, bob=1))
    alice, bob = (
        pl.concat(pl.read_parquet(part) for part in sorted(tmp_path.glob(f"{role}-parts/*")))
        for role in ("alice", "bob")
    )
    assert sorted(alice["id"]) == sorted(bob["id"])
    assert alice["id"].to_list() != bob["id"].to_list()
    assert set(bob["label"]) == {0, 1}
