from __future__ import annotations

import gzip
import socket
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from taciturn.data.datasets import canonical, digest, load
from taciturn.data.ids import RowIds
from taciturn.data.prepare import RawData
from taciturn.data.source import read_frame
from taciturn.data.split import VerticalData, prepare_vertical, random_partition
from taciturn.errors import DatasetUnavailable
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.modules import module_of

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


@pytest.mark.parametrize(
    ("name", "rows", "columns", "positives", "held_out"),
    [("breast-cancer", 569, 30, 357, 114), ("sklearn-digits", 1797, 64, 906, 360)],
)
def test_the_datasets_that_scikit_learn_ships(alone, name, rows, columns, positives, held_out):
    raw = load(name)
    assert (raw.rows, raw.frame.width) == (rows, columns)
    assert int(raw.labels.values.sum()) == positives
    assert raw.ids == raw.labels.ids == RowIds.numbered(rows)
    data = _prepared(raw)
    assert data.alice_train.values.shape == (rows - held_out, columns)
    assert data.alice_test.values.shape == (held_out, columns)
    assert not alone


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
        assert socket.getdefaulttimeout() == module_of(load)._TIMEOUT
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
    assert alone[0][1] == module_of(load)._TIMEOUT
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
    with refused(DatasetUnavailable, names=module_of(load)._CENSUS.digest) as caught:
        load("census-income", data_dir=tmp_path)
    actual = digest(canonical(read_frame(tmp_path / "adult.csv"), module_of(load)._CENSUS.layout))
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


@pytest.mark.parametrize(
    ("name", "loader"), [("breast-cancer", load_breast_cancer), ("sklearn-digits", load_digits)]
)
def test_the_shipped_tables_are_scikit_learns(name, loader):
    """They are read without scikit-learn, from its files."""
    bunch, raw = loader(), load(name)
    assert raw.frame.columns == [str(column) for column in bunch.feature_names]
    assert np.array_equal(raw.frame.to_numpy(), bunch.data)
    assert np.array_equal(raw.labels.values, bunch.target % 2)
