from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taciturn.data.frames import matrix_of
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.tables import FeatureTable
from taciturn.data.target_leakage import width_notes
from taciturn.errors import (
    ColumnError,
    ConfigError,
    InfiniteValueError,
    LabelValueError,
    MissingValueError,
    ShapeError,
)
from taciturn.memmap import BLOCK_ROWS
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.modules import module_of

MATRICES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(0, 4)),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)


def test_numpy_pandas_and_polars_give_the_same_table():
    data = {"age": [31, 44, 58], "rate": [0.5, 1.5, -2.0], "member": [True, False, True]}
    who = ["a", "b", "c"]
    array = np.column_stack([np.array(column, dtype=float) for column in data.values()])
    expected = FeatureTable.from_data(array, columns=list(data), ids=who)
    assert expected == FeatureTable.from_data(pl.DataFrame(data), ids=who)
    assert expected == FeatureTable.from_data(pl.LazyFrame(data), ids=who)
    assert expected == FeatureTable.from_data(pd.DataFrame(data), ids=pd.Series(who))
    assert expected == FeatureTable.from_data(pd.DataFrame({"who": who, **data}), id_column="who")
    assert expected == FeatureTable.from_data(pl.DataFrame({"who": who, **data}), id_column="who")
    nullable = pd.DataFrame(data).convert_dtypes()
    assert expected == FeatureTable.from_data(nullable, ids=who)
    assert expected != FeatureTable.from_data(array, columns=list(data))


def test_a_fit_array_is_not_copied_and_stays_the_callers():
    array = np.ones((4, 2))
    table = FeatureTable.from_data(array)
    assert np.shares_memory(array, table.values)
    assert not table.values.flags.writeable
    array[0, 0] = 2.0  # the caller's own array is as writable as before
    assert np.ascontiguousarray(table.values) is table.values


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, ">f8"])
def test_other_numbers_become_float64_in_the_order_of_c(dtype):
    table = FeatureTable.from_data(np.asfortranarray(np.eye(3, dtype=dtype)))
    assert table.values.dtype == np.float64
    assert table.values.flags.c_contiguous
    assert table.values.tolist() == np.eye(3).tolist()
    frame = pl.DataFrame({"a": [1], "text": ["x"], "b": [2]})
    assert FeatureTable.from_data(frame, columns=["b", "a"]).values.tolist() == [[2.0, 1.0]]


@pytest.mark.parametrize(
    ("data", "options", "error", "names"),
    [
        (np.ones(3), {}, ShapeError, 1),
        (np.ones((0, 2)), {}, ShapeError, ()),
        (np.ones((2, 2)), {"columns": ["a"]}, ShapeError, (2, 1)),
        (np.ones((2, 2)), {"ids": [1, 2, 3]}, ShapeError, 3),
        (np.ones((2, 2)), {"columns": ["a", "a"]}, ColumnError, "'a'"),
        (np.ones((2, 2)), {"columns": ["a", ""]}, ColumnError, "2 of 2"),
        (np.ones((2, 2)), {"id_column": "a"}, ColumnError, ()),
        (np.array([["x"]]), {}, ColumnError, ()),
        (np.array([[1j]]), {}, ColumnError, "complex128"),
        ([[1, 2]], {}, ShapeError, "list"),
        (np.ones((1, 1)), {"ids": [1], "id_column": "a"}, ConfigError, ()),
        (pl.DataFrame({"a": ["x"]}), {}, ColumnError, ("'a'", "String")),
        (pl.DataFrame({"a": [1]}), {"columns": ["b"]}, ColumnError, "'b'"),
        (pl.DataFrame({"a": [1]}), {"id_column": "b"}, ColumnError, "'b'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, ColumnError, "'a'"),
        (pd.DataFrame({"a": [1, "x"]}), {}, ColumnError, ()),
    ],
)
def test_unfit_tables_are_refused(data, options, error, names):
    with refused(error, names=names) as caught:
        FeatureTable.from_data(data, **options)
    assert caught.value.hint


@pytest.mark.parametrize(
    "data",
    [
        np.array([[1.0, 2.0], [3.0, np.nan]]),
        pl.DataFrame({"x0": [1.0, 2.0], "x1": [2.0, None]}),
        pd.DataFrame({"x0": [1.0, 2.0], "x1": [2.0, np.nan]}),
    ],
)
def test_missing_values_are_named_by_column_and_row(data):
    with refused(MissingValueError, names=("'x1'", "'bea'")):
        FeatureTable.from_data(data, ids=["ann", "bea"])


def test_infinities_are_named_by_column_and_row():
    """In the second block of rows that is looked at."""
    data = np.ones((BLOCK_ROWS + 9, 2))
    data[BLOCK_ROWS + 7, 0] = -np.inf
    with refused(InfiniteValueError, names=("'x0'", f"'{BLOCK_ROWS + 7}'")):
        FeatureTable.from_data(data)


def test_select_and_take():
    table = FeatureTable.from_data(np.arange(6.0).reshape(2, 3), columns=["a", "b", "c"])
    part = table.select(["c", "a"]).take(np.array([1, 0]))
    assert part.values.tolist() == [[5.0, 3.0], [2.0, 0.0]]
    assert part.values.flags.c_contiguous
    assert part.ids == RowIds.from_values([1, 0])
    assert table.select(["a", "b", "c"]) is table
    assert table.select([]).columns == ()
    with refused(ColumnError, names=("'incom'", "income")):
        FeatureTable.from_data(np.ones((1, 1)), columns=["income"]).select(["incom"])
    with refused(ColumnError, names="'a'"):
        table.select(["a", "a"])


def test_the_intercept_is_added_once():
    table = FeatureTable.from_data(np.zeros((2, 1))).with_intercept()
    assert table.columns == ("x0", "(intercept)")
    with refused(ColumnError):
        table.with_intercept()


@given(MATRICES)
def test_a_digest_is_a_function_of_the_content(values):
    table = FeatureTable.from_data(values)
    assert table.digest() == FeatureTable.from_data(np.asfortranarray(values)).digest()
    other = FeatureTable.from_data(values, ids=[f"r{i}" for i in range(len(values))])
    assert table.digest() != other.digest()
    if len(values) > 1:
        backwards = np.arange(len(values))[::-1]
        assert table.digest() != table.take(backwards).digest()
        assert table.digest() == table.take(backwards).take(backwards).digest()
    if values.size:
        changed = values.copy()
        changed[0, 0] = 1.0 if changed[0, 0] != 1.0 else 2.0
        assert table.digest() != FeatureTable.from_data(changed).digest()


def test_tables_are_frozen_and_show_no_values():
    table = FeatureTable.from_data(np.full((1, 1), 4711.0))
    assert repr(table) == "FeatureTable(1 rows, 1 columns)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.columns = ()  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 0.0
    assert repr(LabelTable.from_data([1, 0])) == "LabelTable(2 rows, <hidden>)"


@pytest.mark.parametrize(
    "data",
    [
        [0, 1, 1],
        [False, True, True],
        [0.0, 1.0, 1.0],
        np.array([0, 1, 1], dtype=np.uint8),
        np.array([0, 1, 1], dtype=np.float32),
        np.array([False, True, True]),
        pl.Series([0, 1, 1]),
        pl.Series([False, True, True]),
        pd.Series([0, 1, 1]),
        pd.Series([False, True, True]),
        pd.Series([0, 1, 1], dtype="Int64"),
        pd.Series([False, True, True], dtype="boolean"),
    ],
)
def test_labels_from_every_kind_of_list(data):
    table = LabelTable.from_data(data)
    assert table.values.dtype == np.int8
    assert table.values.tolist() == [0, 1, 1]
    assert not table.values.flags.writeable
    assert table == LabelTable(RowIds.numbered(3), np.array([0, 1, 1], dtype=np.int8))


@pytest.mark.parametrize(
    ("data", "error", "names"),
    [
        ([0, 1, 2, 2], LabelValueError, ("2 of 4", 3)),
        ([0.0, 0.5], LabelValueError, "1 of 2"),
        ([0, -1], LabelValueError, "1 of 2"),
        (["0", "1"], LabelValueError, "String"),
        (["yes", 1], LabelValueError, ()),
        ([0, None], MissingValueError, "1 of 2"),
        (np.array([0.0, np.nan]), MissingValueError, "1 of 2"),
        (pd.Series([0, None], dtype="Int64"), MissingValueError, "1 of 2"),
        (np.ones((2, 1)), ShapeError, 2),
        ([], ShapeError, ()),
    ],
)
def test_unfit_labels_are_refused(data, error, names):
    with refused(error, names=names) as caught:
        LabelTable.from_data(data)
    assert caught.value.hint


def test_a_wrong_label_is_named_by_row_and_not_by_value():
    with refused(LabelValueError, names="'bea'") as caught:
        LabelTable.from_data([0, 4711], ids=["ann", "bea"])
    assert "4711" not in str(caught.value)
    with refused(ShapeError, names=(2, 3)):
        LabelTable.from_data([0, 1], ids=[1, 2, 3])


def test_one_class_is_refused_only_when_asked():
    table = LabelTable.from_data([1, 1])
    with refused(LabelValueError):
        table.require_variation()
    LabelTable.from_data([1, 0]).require_variation()


def test_permuted_keeps_ids_and_counts():
    labels = LabelTable.from_data(np.arange(200) % 3 == 0, ids=np.arange(200) + 5)
    mixed = labels.permuted(KeyedEntropy.from_seed(3))
    assert mixed.ids == labels.ids
    assert mixed.values.sum() == labels.values.sum()
    assert mixed != labels
    assert mixed == labels.permuted(KeyedEntropy.from_seed(3))


@given(st.integers(1, 5), st.permutations(range(5)))
def test_a_matrix_is_filled_alike_whatever_the_blocks(block, order):
    expected = np.arange(35.0).reshape(7, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_of(matrix_of), "_ROWS_AT_ONCE", block)
        patch.setattr(module_of(matrix_of), "_COLUMNS_AT_ONCE", 1 + block // 2)
        filled = matrix_of(7, 5, ((place, expected[:, place]) for place in order))
    np.testing.assert_array_equal(filled, expected)


@pytest.mark.parametrize(("columns", "rows", "noted"), [(9, 9, 0), (10, 9, 1), (1200, 300, 1)])
def test_more_columns_than_rows_are_noted(columns, rows, noted):
    notes = width_notes(columns, rows)
    assert len(notes) == noted
    assert all(f"{columns:,}" in note and f"{rows:,}" in note for note in notes)
