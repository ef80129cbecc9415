from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from taciturn.data.label_encoding import LabelEncoding
from taciturn.data.prepare import fit
from taciturn.data.user_table import DEFAULTS, UserTable, user_data
from taciturn.errors import (
    ColumnError,
    ConfigError,
    FileError,
    LabelValueError,
    MissingValueError,
    RowIdError,
    ShapeError,
)
from tests.expected import refused

DATA = {
    "who": ["007", "008", "009"],
    "age": [31.0, None, 58.0],
    "job": ["clerk", None, "baker"],
    "paid": [1, 0, 1],
}


@pytest.fixture
def sources(tmp_path):
    frame = pl.DataFrame(DATA)
    frame.write_csv(tmp_path / "own.csv")
    frame.write_parquet(tmp_path / "own.parquet")
    return [tmp_path / "own.csv", str(tmp_path / "own.parquet"), frame, pd.DataFrame(DATA)]


def test_files_and_frames_give_the_same(sources):
    for source in sources:
        raw = user_data(source, label_column="paid", id_column="who")
        assert raw.ids.series.to_list() == DATA["who"]
        assert raw.labels.values.tolist() == [1, 0, 1]
        assert raw.labels.ids == raw.ids
        assert raw.frame.to_dict(as_series=False) == {k: DATA[k] for k in ("age", "job")}
        assert raw.settings == DEFAULTS
    assert user_data(sources[0], label_column="paid").name == "own.csv"
    assert "clerk" not in repr(user_data(sources[2], label_column="paid"))


@pytest.mark.parametrize(
    "labels",
    [
        ["1", "0", "1"],
        ["true", "false", "true"],
        ["True", "False", "True"],
        [True, False, True],
        [1.0, 0.0, 1.0],
        pd.Categorical(["1", "0", "1"]),
    ],
)
def test_labels_in_many_spellings(labels):
    table = pd.DataFrame({"a": [1, 2, 3], "y": labels})
    assert user_data(table, label_column="y").labels.values.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("change", "options", "error", "names"),
    [
        ({}, {"label_column": "payd"}, ColumnError, ("'payd'", "paid")),
        ({}, {"label_column": "paid", "id_column": "woh"}, ColumnError, ("'woh'", "who")),
        ({}, {"label_column": "paid", "id_column": "paid"}, ConfigError, "paid"),
        ({"paid": ["yes", "no", "yes"]}, {}, LabelValueError, "3 of 3"),
        ({"paid": [1, 2, 3]}, {}, LabelValueError, "2 of 3"),
        ({"paid": [1, None, 0]}, {}, MissingValueError, "1 of 3"),
        ({"paid": ["1", None, "0"]}, {}, MissingValueError, "1 of 3"),
        ({"": [1, 2, 3]}, {}, ColumnError, "5 of 5"),
        ({"who": ["a", "a", "b"]}, {"id_column": "who"}, RowIdError, "'a'"),
        ({"who": [0.5, 1.5, 2.5]}, {"id_column": "who"}, RowIdError, "Float64"),
    ],
)
def test_unfit_own_data_is_refused(change, options, error, names):
    with refused(error, names=names) as caught:
        user_data(pl.DataFrame({**DATA, **change}), **{"label_column": "paid", **options})
    assert caught.value.hint


def test_errors_name_places_and_never_labels(tmp_path):
    path = tmp_path / "own.csv"
    pl.DataFrame(DATA).write_csv(path)
    with refused(ColumnError) as caught:
        user_data(path, label_column="payd")
    assert caught.value.where == str(path)
    table = pl.DataFrame({"who": ["ann", "bea"], "a": [1, 2], "y": ["1", "rejected"]})
    with refused(LabelValueError, names=("'y'", "'bea'")) as label_error:
        user_data(table, label_column="y", id_column="who")
    assert "rejected" not in str(label_error.value)


def test_other_sources_and_tables_without_features_are_refused(tmp_path):
    with refused(ColumnError):
        user_data(pl.DataFrame({"y": [0, 1]}), label_column="y")
    with refused(FileError, names=tmp_path):
        user_data(tmp_path / "none.csv", label_column="y")
    with refused(ShapeError, names="ndarray"):
        user_data(np.eye(2), label_column="y")


# --- labels in words -----------------------------------------------------------------------------


def labels_of(labels: object, *positive: str, negative: tuple[str, ...] = ()) -> list[int]:
    table = UserTable(labels=LabelEncoding(positive, negative))
    frame = pd.DataFrame({"a": [1, 2, 3], "y": labels})
    values: list[int] = user_data(frame, label_column="y", table=table).labels.values.tolist()
    return values


@pytest.mark.parametrize(
    ("labels", "positive", "negative"),
    [
        (["yes", "no", "yes"], ("yes",), ()),
        ([" YES", "No ", "yes"], ("Yes",), ()),
        ([2, 1, 2], ("2",), ()),
        ([1.0, -1.0, 1.0], ("1",), ()),
        ([True, False, True], ("true",), ()),
        (["a", "b", "c"], ("a", "c"), ("b",)),
        (["a", "b", "a"], (), ("b",)),
    ],
)
def test_words_of_labels(labels, positive, negative):
    assert labels_of(labels, *positive, negative=negative) == [1, 0, 1]


@pytest.mark.parametrize(
    ("labels", "positive", "negative", "names"),
    [
        (["yes", "no", "yes"], (), (), ("3 of 3", 'positive="yes"')),
        (["mad", "sad", "mad"], (), (), ("3 of 3", "positive=")),
        ([1, 2, 2], (), (), ("2 of 3", 'positive="2"')),
        (["a", "b", "c"], ("a",), (), ("2 of 3", "negative=")),
        (["a", "b", "c"], ("a",), ("b",), ("1 of 3", "positive")),
        ([0.5, 1.5, 0.5], ("1.5",), (), ("Float64", "positive")),
    ],
)
def test_labels_that_no_word_names_are_refused(labels, positive, negative, names):
    with refused(LabelValueError, names=names) as caught:
        labels_of(labels, *positive, negative=negative)
    assert "mad" not in str(caught.value)


# --- which columns, and all problems at once -----------------------------------------------------


@pytest.mark.parametrize(
    ("choices", "columns"),
    [
        ({"keep": ("job",)}, ["job"]),
        ({"drop": ("job", "who")}, ["age"]),
        ({"keep": ("who", "age"), "drop": ("who",)}, ["age"]),
    ],
)
def test_columns_are_kept_and_dropped(choices, columns):
    table = UserTable(replace(DEFAULTS, **choices))
    raw = user_data(pl.DataFrame(DATA), label_column="paid", table=table)
    assert raw.frame.columns == columns


def test_dates_of_pandas(tmp_path):
    days = pd.to_datetime(["2026-01-01", "2026-01-03", None])
    frame = pd.DataFrame({"d": days, "o": days.date, "y": [0, 1, 1]})
    raw = user_data(frame, label_column="y")
    plan = fit(raw.frame, replace(DEFAULTS, scale="none"))
    assert plan.apply(raw.frame)[:, 0].tolist() == plan.apply(raw.frame)[:, 2].tolist()


@pytest.mark.parametrize("name", ["^.*$", "a b", "len"])
def test_a_column_is_called_what_it_is_called(name):
    """And a name is no pattern that stands for others."""
    frame = pl.DataFrame({"id": ["a", "b"], name: ["x", "y"], "size": [1, 2], "sick": [0, 1]})
    raw = user_data(frame, label_column="sick", id_column="id")
    assert raw.frame.columns == [name, "size"]
    assert fit(raw.frame, raw.settings).columns == (f"{name}=y", "size")
