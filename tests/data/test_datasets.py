"""The datasets that come with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from taciturn.data.datasets import load
from taciturn.data.ids import RowIds
from taciturn.data.prepare import RawData
from taciturn.data.split import VerticalData, prepare_vertical, random_partition
from taciturn.errors import ConfigError
from taciturn.rng import KeyedEntropy
from tests.expected import refused


def _prepared(raw: RawData, seed: int = 1) -> VerticalData:
    parts = random_partition(raw.rows, 0.2, KeyedEntropy.from_seed(seed))
    return prepare_vertical(raw, parts, "all", intercept=False)


@pytest.mark.parametrize(
    ("name", "rows", "columns", "positives", "held_out"),
    [("breast-cancer", 569, 30, 357, 114), ("sklearn-digits", 1797, 64, 906, 360)],
)
def test_the_datasets_that_scikit_learn_ships(name, rows, columns, positives, held_out):
    raw = load(name)
    assert (raw.rows, raw.frame.width) == (rows, columns)
    assert int(raw.labels.values.sum()) == positives
    assert raw.ids == raw.labels.ids == RowIds.numbered(rows)
    data = _prepared(raw)
    assert data.alice_train.values.shape == (rows - held_out, columns)
    assert data.alice_test.values.shape == (held_out, columns)


@pytest.mark.parametrize(
    ("name", "loader"), [("breast-cancer", load_breast_cancer), ("sklearn-digits", load_digits)]
)
def test_the_shipped_tables_are_scikit_learns(name, loader):
    """They are read without scikit-learn, from its files."""
    bunch, raw = loader(), load(name)
    assert raw.frame.columns == [str(column) for column in bunch.feature_names]
    assert np.array_equal(raw.frame.to_numpy(), bunch.data)
    assert np.array_equal(raw.labels.values, bunch.target % 2)


def test_an_unknown_dataset_is_named_with_what_was_meant():
    with refused(ConfigError, names=("breast-cancr", "breast-cancer")):
        load("breast-cancr")
