from __future__ import annotations

import gzip
import socket
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from taciturn.data.datasets import load
from taciturn.data.prepare import RawData
from taciturn.data.source import read_frame
from taciturn.data.split import VerticalData, prepare_vertical, random_partition
from taciturn.errors import DatasetUnavailable
from taciturn.privacy.solvers import resolved
from taciturn.rng import KeyedEntropy
from taciturn.settings.schema import Settings, dataset_defaults

# private: the time that OpenML is given
from taciturn_paper.datasets import _TIMEOUT, CENSUS_INCOME, NAMES, canonical, digest
from tests.expected import refused

SMALL_CSV = "age,workclass,income\n39,Private,<=50K\n"


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """No data anywhere: an empty cache, no TACITURN_DATA, an OpenML that does not answer."""
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked = []

    def fetch(**options):
        asked.append((options, socket.getdefaulttimeout()))
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    return asked


def _prepared(raw: RawData, seed: int = 1) -> VerticalData:
    parts = random_partition(raw.rows, 0.2, KeyedEntropy.from_seed(seed))
    return prepare_vertical(raw, parts, "all", intercept=False)


def test_census_income(census):
    assert (census.rows, census.frame.width) == (48842, 12)
    assert int(census.labels.values.sum()) == 11687
    assert census.frame.null_count().sum_horizontal().item() == 2799 + 2809 + 857
    data = _prepared(census)
    assert len(data.preparation.columns) == 81
    assert data.preparation.columns[-1] == "native-country=Yugoslavia"
    assert len(data.alice_test.values) == 9769
    widths = [len(levels) - 1 for levels in census.vocabularies.values()]
    assert sorted(widths) == sorted([7, 6, 13, 5, 4, 1, 40])
    means = data.alice_train.values.mean(axis=0)
    np.testing.assert_allclose(means, 0, atol=1e-9)


@pytest.mark.slow  # some seconds, and the other dataset takes the same path
def test_give_me_some_credit(credit):
    assert (credit.rows, credit.frame.width) == (150_000, 10)
    assert int(credit.labels.values.sum()) == 10026
    assert credit.frame["MonthlyIncome"].null_count() == 29731
    assert credit.frame["NumberOfDependents"].null_count() == 3924
    data = _prepared(credit)
    assert data.alice_test.values.shape == (30000, 10)
    assert data.alice_train.values.shape == (120_000, 10)


@pytest.mark.slow  # writes and reads the whole table
def test_kaggles_own_file_is_the_same_data(alone, credit, dataset_dir, tmp_path):
    """An index without a name, NA for missing, Windows line ends, another order of rows."""
    raw = read_frame(dataset_dir("give-me-some-credit") / "give-me-some-credit.csv.gz")
    kaggle = raw.reverse().with_row_index("index", offset=1).rename({"index": ""})
    file = tmp_path / "cs-training.csv"
    kaggle.write_csv(file, null_value="NA", line_terminator="\r\n")
    again = load("give-me-some-credit", data_dir=tmp_path)
    assert again.frame.equals(credit.frame)
    assert again.labels == credit.labels


def _openml_census(file: Path) -> pd.DataFrame:
    """The shape in which OpenML gives the data: pandas categories, NaN, label named class."""
    frame = read_frame(file).rename({"income": "class"}).reverse()
    table = pd.DataFrame({name: frame[name].to_list() for name in frame.columns})
    for name, kind in frame.schema.items():
        if kind == pl.String:
            table[name] = table[name].astype("category")
    return table


@pytest.mark.slow  # some seconds
def test_openml_is_asked_and_its_answer_kept(alone, monkeypatch, census, dataset_dir, tmp_path):
    table = _openml_census(dataset_dir("census-income") / "adult.csv.gz")
    asked = []

    def fetch(**options):
        asked.append(options)
        assert socket.getdefaulttimeout() == _TIMEOUT
        return SimpleNamespace(frame=table)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    fetched = load("census-income")
    assert asked[0]["data_id"] == 1590
    assert socket.getdefaulttimeout() is None
    assert fetched.frame.equals(census.frame)
    assert fetched.labels == census.labels
    assert [path.name for path in (tmp_path / "cache" / "taciturn").iterdir()] == ["adult.csv"]
    kept = load("census-income")
    assert len(asked) == 1
    assert kept.frame.equals(census.frame)
    assert kept.labels == census.labels


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("census-income", "adult.csv.gz"),
        ("give-me-some-credit", "give-me-some-credit.csv.gz"),
    ],
)
def test_absent_data_says_where_it_was_sought_and_where_to_put_it(
    alone, monkeypatch, tmp_path, name, file
):
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path / "named"))
    with refused(DatasetUnavailable, names=(name, "OpenML")) as caught:
        load(name, data_dir=tmp_path / "given")
    error = caught.value
    for place in ("given", "named", "cache/taciturn"):
        assert str(tmp_path / place) in error.where
    assert file in error.where
    assert file in error.hint
    assert str(tmp_path / "cache" / "taciturn") in error.hint
    assert error.exit_code == 21
    assert alone[0][1] == _TIMEOUT
    assert socket.getdefaulttimeout() is None


@pytest.mark.parametrize("place", ["given", "named", "cache"])
def test_files_are_found_in_every_place(alone, monkeypatch, tmp_path, place):
    """Found, read, and refused for what is in it: proof that it was looked at."""
    folder = tmp_path / "cache" / "taciturn" if place == "cache" else tmp_path / place
    folder.mkdir(parents=True)
    (folder / "adult.csv").write_text(SMALL_CSV)
    if place == "named":
        monkeypatch.setenv("TACITURN_DATA", str(folder))
    with refused(DatasetUnavailable, names="census-income") as caught:
        load("census-income", data_dir=folder if place == "given" else None)
    assert caught.value.where == str(folder / "adult.csv")
    assert not alone


def test_altered_content_is_refused_with_both_digests(alone, dataset_dir, tmp_path):
    text = gzip.decompress((dataset_dir("census-income") / "adult.csv.gz").read_bytes())
    (tmp_path / "adult.csv").write_bytes(text.replace(b"\n39,", b"\n40,", 1))
    with refused(DatasetUnavailable, names=CENSUS_INCOME.digest) as caught:
        load("census-income", data_dir=tmp_path)
    actual = digest(canonical(read_frame(tmp_path / "adult.csv"), CENSUS_INCOME.layout))
    assert actual in caught.value.message
    assert caught.value.where == str(tmp_path / "adult.csv")


def test_an_altered_answer_is_not_kept(alone, monkeypatch, tmp_path):
    frame = pd.DataFrame({"age": [1], "class": [">50K"]})
    answer = SimpleNamespace(frame=frame)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_options: answer)
    with pytest.raises(DatasetUnavailable) as caught:
        load("census-income")
    assert caught.value.where == "OpenML, id 1590"
    assert not (tmp_path / "cache").exists()


def test_the_batch_sizes_and_l_rr_are_the_papers():
    """[Tan22, Table III]."""
    chosen = {name: dataset_defaults(name) for name in NAMES[2:]}
    assert {name: (one.batch_size, one.l_rr) for name, one in chosen.items()} == {
        "census-income": (32, 90),
        "give-me-some-credit": (8, 15),
    }


@pytest.mark.parametrize("name", NAMES[2:])
def test_a_dataset_brings_its_defaults_and_no_intercept(name):
    chosen = {"dataset": name, "solver": "sgd", "mechanism": "none"}
    settings, usual = resolved(Settings.from_mapping(chosen)), dataset_defaults(name)
    assert (settings.batch_size, settings.learning_rate) == (usual.batch_size, usual.learning_rate)
    assert settings.intercept is False
