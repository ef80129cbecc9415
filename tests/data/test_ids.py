from __future__ import annotations

import hashlib
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.ids import RowIds, row_name
from taciturn.errors import RowIdError, RowOrderError, ShapeError
from tests.expected import refused
from tests.modules import module_of

TEXTS = st.lists(
    st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=6),
    min_size=1,
    max_size=8,
    unique=True,
)


@pytest.mark.parametrize(
    "values",
    [
        [10, 20, 30],
        (10, 20, 30),
        ["10", "20", "30"],
        np.array([10, 20, 30], dtype=np.uint16),
        np.array(["10", "20", "30"]),
        np.array([10, 20, 30], dtype=object),
        pl.Series([10, 20, 30]),
        pl.Series(["10", "20", "30"], dtype=pl.Categorical),
        pd.Series([10, 20, 30]),
        pd.Series([10, 20, 30], dtype="Int64"),
        pd.Series(["10", "20", "30"]),
        pd.Index(["10", "20", "30"]),
    ],
)
def test_of_gives_the_same_text_from_every_kind_of_list(values):
    expected = ["10", "20", "30"]
    assert RowIds.from_values(values).series.to_list() == expected


def test_whole_numbers_beyond_64_bits_keep_every_digit():
    assert RowIds.from_values([2**70, 2**70 + 1])[1] == str(2**70 + 1)


@pytest.mark.parametrize(
    ("values", "names", "where"),
    [
        ([1.0, 2.0], "Float64", ""),
        (np.array([1.5]), "Float64", ""),
        ([True, False], "Boolean", ""),
        (["a", 1], (), ""),
        (["a", None, "b"], ("1 of 3"), "row 2"),
        (pd.Series(["a", np.nan]), "1 of 2", "row 2"),
        (pd.Series([1, None], dtype="Int64"), "1 of 2", "row 2"),
        ([None, None], 2, ""),
        (["a", " "], "1 of 2", "row 2"),
        (["", ""], "2 of 2", "row 1"),
        (["a\0b"], "1 of 1", "row 1"),
        (["a", "b\n"], "1 of 2", "row 2"),
        (["a\u2028b"], "1 of 1", "row 1"),
        (["a", "b", "a", "a"], "2 of 4", "row 3, id 'a'"),
        ([b"a"], "bytes", ""),
    ],
)
def test_unfit_ids_are_refused_with_their_place(values, names, where):
    with refused(RowIdError, names=names) as caught:
        RowIds.from_values(values)
    assert caught.value.where == where
    assert caught.value.hint


def test_repr_shows_no_id():
    assert repr(RowIds.from_values(["ann"])) == "RowIds(1 rows)"
    assert "'ann'" in row_name(0, ["ann"])


def test_digest_is_sha256_over_nul_terminated_ids():
    assert RowIds.from_values(["a", "é"]).digest() == hashlib.sha256("a\0é\0".encode()).hexdigest()


def test_digest_does_not_depend_on_the_block(monkeypatch):
    whole = RowIds.numbered(1000).digest()
    monkeypatch.setattr(module_of(RowIds), "_BLOCK", 7)
    assert RowIds.numbered(1000).digest() == whole


@given(TEXTS, TEXTS)
def test_digests_agree_exactly_where_the_lists_do(left, right):
    assert (RowIds.from_values(left).digest() == RowIds.from_values(right).digest()) == (
        left == right
    )


@given(TEXTS, st.randoms(use_true_random=False))
def test_take_follows_the_order_given(values, shuffler):
    order = list(range(len(values)))
    shuffler.shuffle(order)
    taken = RowIds.from_values(values).take(np.array(order))
    assert taken.series.to_list() == [values[i] for i in order]


@pytest.mark.parametrize("indices", [[-1], [3], [0.5], [[0, 1]], [True, False, True]])
def test_take_refuses_positions_that_do_not_fit(indices):
    with pytest.raises(ShapeError):
        RowIds.numbered(3).take(np.array(indices))


def test_take_refuses_a_row_twice_and_the_constructor_what_is_no_text():
    with refused(RowIdError):
        RowIds.numbered(3).take(np.array([1, 1]))
    with refused(RowIdError):
        RowIds(pl.Series([1, 2]))


def test_require_same_tells_order_from_content():
    ids = RowIds.from_values(["a", "b", "c"])
    ids.require_same(RowIds.from_values(["a", "b", "c"]))
    with refused(RowOrderError) as caught:
        ids.require_same(RowIds.from_values(["a", "c", "b"]))
    assert caught.value.where.endswith("row 2")
    with refused(RowOrderError) as caught:
        ids.require_same(RowIds.from_values(["a", "x"]), names=("left", "right"))
    assert re.findall(r"\d+", caught.value.message) == ["2", "3", "1", "2"]
