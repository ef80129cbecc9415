from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from taciturn.data.own import own_data
from taciturn.data.prepare import PrepareSettings
from taciturn.errors import (
    ColumnError,
    ConfigError,
    FileError,
    LabelValueError,
    MissingValueError,
    RowIdError,
    ShapeError,
)

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
        raw = own_data(source, label_column="paid", id_column="who")
        assert raw.ids.series.to_list() == DATA["who"]
        assert raw.labels.values.tolist() == [1, 0, 1]
        assert raw.labels.ids == raw.ids
        assert raw.frame.to_dict(as_series=False) == {k: DATA[k] for k in ("age", "job")}
        assert raw.settings == PrepareSettings(impute="median", scale_categories=False)
    assert own_data(sources[0], label_column="paid").name == "own.csv"
    assert repr(own_data(sources[2], label_column="paid")).startswith("RawData(own data, 3 rows")


def test_rows_are_numbered_where_no_column_names_them():
    raw = own_data(pl.DataFrame(DATA), label_column="paid")
    assert raw.ids.series.to_list() == ["0", "1", "2"]
    assert raw.frame.columns == ["who", "age", "job"]


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
    assert own_data(table, label_column="y").labels.values.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        ({}, {"label_column": "payd"}, ColumnError, "no label column 'payd'"),
        ({}, {"label_column": "paid", "id_column": "woh"}, ColumnError, "no id column 'woh'"),
        ({}, {"label_column": "paid", "id_column": "paid"}, ConfigError, "id and as label"),
        ({"paid": ["yes", "no", "yes"]}, {}, LabelValueError, "3 of 3 labels are text"),
        ({"paid": [1, 2, 3]}, {}, LabelValueError, "2 of 3 labels are neither"),
        ({"paid": [1, None, 0]}, {}, MissingValueError, "1 of 3 labels are missing"),
        ({"paid": ["1", None, "0"]}, {}, MissingValueError, "1 of 3 labels are missing"),
        ({"": [1, 2, 3]}, {}, ColumnError, "column 5 of 5 has no name"),
        ({"who": ["a", "a", "b"]}, {"id_column": "who"}, RowIdError, "repeat"),
        ({"who": [0.5, 1.5, 2.5]}, {"id_column": "who"}, RowIdError, "Float64"),
    ],
)
def test_unfit_own_data_is_refused(change, options, error, message):
    with pytest.raises(error, match=message) as caught:
        own_data(pl.DataFrame({**DATA, **change}), **{"label_column": "paid", **options})
    assert caught.value.hint


def test_hints_and_places(tmp_path):
    path = tmp_path / "own.csv"
    pl.DataFrame(DATA).write_csv(path)
    with pytest.raises(ColumnError) as caught:
        own_data(path, label_column="payd")
    assert "did you mean paid?" in caught.value.hint
    assert caught.value.where == str(path)
    table = pl.DataFrame({"who": ["ann", "bea"], "a": [1, 2], "y": ["1", "rejected"]})
    with pytest.raises(LabelValueError) as label_error:
        own_data(table, label_column="y", id_column="who")
    assert label_error.value.where == "column 'y', first at row id 'bea'"
    assert "rejected" not in str(label_error.value)


def test_features_must_be_left():
    with pytest.raises(ColumnError, match="no feature columns"):
        own_data(pl.DataFrame({"y": [0, 1]}), label_column="y")


def test_other_sources_are_refused(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        own_data(tmp_path / "none.csv", label_column="y")
    with pytest.raises(ShapeError, match="cannot be made from ndarray"):
        own_data(np.eye(2), label_column="y")
