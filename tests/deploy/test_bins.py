"""Bins in a real party's file: trained, predicted, kept on disk, agreed on; and where refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from taciturn.data.rules import BinnedRule
from taciturn.deploy.config import PartyConfig
from taciturn.deploy.prepared import PreparedFolder
from taciturn.deploy.tables import load_tables
from taciturn.deploy.train import Party
from taciturn.errors import AgreementError, ColumnError, ConfigError
from taciturn.model.card import card
from taciturn.model.share import ModelShare
from tests.deploy.sides import NEWTON, run_both, write_config, write_tables
from tests.deploy.test_predict import ROLES, answers, expected, in_threads, question, write_new
from tests.deploy.wires import Wire

HERS = {"bins.mean_radius": [12, 15, 18], "bins.mean_texture": 4, "impute": "bin"}
HIS = {"bins": 6, "monotone": "auto", "impute": "bin"}
WIDTH = 3 + 1 + 3 + 1 + 4


def written(folder: Path, **changes: dict[str, Any]) -> Path:
    write_tables(folder)
    agreed = {"mechanism": "sealed", **NEWTON, **changes.pop("agreement", {})}
    for role, data in (("alice", HERS), ("bob", HIS)):
        write_config(folder, role, agreement=agreed, data=data, **changes)
    return folder


def config(folder: Path, role: str = "bob", **changes: Any) -> PartyConfig:
    data = {**(HERS if role == "alice" else HIS), **changes.pop("data", {})}
    agreed = {"mechanism": "sealed", **NEWTON, **changes.pop("agreement", {})}
    return PartyConfig.read(write_config(folder, role, agreement=agreed, data=data, **changes))


def test_two_parties_train_and_predict_with_bins_of_every_kind(tmp_path):
    """Encrypted: new rows lie in bins without a training row, and lack values that none lacked."""
    folder = written(tmp_path)
    write_new(folder)
    hers, his = run_both(folder).records
    alice, bob = (ModelShare.load(folder / f"{role}.model.json") for role in ROLES)
    assert len(alice.columns) == WIDTH
    assert bob.preparation.padding
    assert len(bob.columns) == 3 * (5 + 1) + 1
    # What Alice learns of his columns is their number, which labels have no part in.
    assert "monotone" not in str(hers)
    shown = card(bob).coefficients
    assert shown is not None
    assert not any("(merged" in one.column for one in shown)
    answer = answers(in_threads(folder, {role: question(folder, role) for role in ROLES}))[1]
    wanted, slack = expected(folder)
    scores = {row.id: row.score for row in answer.rows()}
    assert scores.keys() == wanted.keys()
    for name, score in scores.items():
        assert abs(score - wanted[name]) <= slack
    assert his["rows"] == hers["rows"]


def test_an_agreed_number_of_columns_holds_for_given_edges(tmp_path):
    folder = written(tmp_path, agreement={"alice-columns": WIDTH})
    ends = run_both(folder, act=lambda party: party.dry_run())
    assert {type(ends.alice).__name__, type(ends.bob).__name__} == {"DryRun"}
    fewer = config(folder, "alice", agreement={"alice-columns": WIDTH - 1})
    with pytest.raises(AgreementError, match=f"alice-columns is {WIDTH - 1}"):
        Party(fewer, Wire().endpoint(serves=False))


def test_large_tables_give_the_same_bins_and_are_recalled(tmp_path):
    folder = written(tmp_path)
    frame = pl.read_csv(folder / "bob.csv")
    parts = folder / "bob"
    parts.mkdir()
    for number in range(3):
        frame[number * 40 : number * 40 + 40].write_parquet(parts / f"{number}.parquet")
    plain = load_tables(config(folder))
    streamed = config(folder, data={"file": "bob"})
    kept = PreparedFolder(folder / "bob-state" / "prepared", least=0)
    first, second = load_tables(streamed, kept), load_tables(streamed, kept)
    for tables in (first, second):
        assert tables.preparation == plain.preparation
        assert tables.train.digest() == plain.train.digest()
        assert tables.held_out is not None
        assert plain.held_out is not None
        assert tables.held_out.digest() == plain.held_out.digest()


def test_only_training_labels_decide_the_bins(tmp_path):
    folder = written(tmp_path)
    plain = load_tables(config(folder))
    held_out = plain.held_out_ids.series.to_list()
    flipped = pl.when(pl.col("id").is_in(held_out)).then(1 - pl.col("sick")).otherwise("sick")
    pl.read_csv(folder / "bob.csv").with_columns(flipped.alias("sick")).write_csv(
        folder / "bob.csv"
    )
    assert load_tables(config(folder)).preparation == plain.preparation


def test_the_share_of_positives_goes_one_way_over_bobs_own_rows(tmp_path):
    """Ids, labels and rows of the file are in other orders than those of the training."""
    folder = written(tmp_path)
    tables = load_tables(config(folder))
    trained = pl.read_csv(folder / "bob.csv").filter(
        pl.col("id").is_in(tables.train.ids.series.to_list())
    )
    for rule in tables.preparation.rules:
        assert isinstance(rule, BinnedRule)
        rates = (
            trained.with_columns(pl.Series("bin", rule.places(trained[rule.column])))
            .group_by("bin")
            .agg(pl.col("sick").mean())
            .sort("bin")["sick"]
        )
        assert len(rates) == len(rule.edges) + 1 > 1
        assert rates.is_sorted() or rates.is_sorted(descending=True)


@pytest.mark.parametrize(
    ("role", "changes", "message"),
    [
        ("alice", {"data": {"monotone": "auto"}}, "this side has none"),
        ("bob", {"study": {"l2": [0.1, 0.2]}}, "a study has no monotone bins"),
        ("bob", {"agreement": {"mechanism": "add", "epsilon": 1.0, "passes": None}}, "add has no"),
        ("bob", {"agreement": {"mechanism": "mutual"}}, "mutual has no monotone bins"),
    ],
)
def test_monotone_bins_are_refused_before_a_table_is_read(tmp_path, role, changes, message):
    with pytest.raises(ConfigError, match=message) as caught:
        config(tmp_path, role, **changes)
    assert caught.value.setting == "monotone"
    assert f"{role}.toml" in str(caught.value)


def test_what_names_no_binned_column_of_his_is_refused(tmp_path):
    folder = written(tmp_path)
    for data, message, kind in (
        ({"monotone": None, "monotone.sicck": "auto"}, "no column 'sicck'", ColumnError),
        ({"bins": 0, "monotone": None, "monotone.mean_concavity": "auto"}, "not cut", ConfigError),
    ):
        with pytest.raises(kind, match=message):
            load_tables(config(folder, data=data))
