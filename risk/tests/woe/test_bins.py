"""Bins: every row in one, none too small, and the words for them are true."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.prepare_settings import PrepareSettings
from taciturn_risk.woe.bins import Bins, cut_column, cut_table

USUAL = PrepareSettings()


def cut(
    values: list[Any],
    least: int = 1,
    bins: int = 10,
    settings: PrepareSettings = USUAL,
    vocabulary: tuple[str, ...] | None = None,
) -> Bins:
    (one,), _ = cut_column(pl.Series("x", values), settings, least, vocabulary, bins=bins)
    return one


@given(
    st.lists(st.one_of(st.none(), st.integers(-5, 30).map(float)), min_size=4, max_size=150),
    st.integers(1, 40),
    st.integers(0, 12).filter(lambda bins: bins != 1),
)
def test_every_row_of_numbers_is_in_one_bin_that_is_large_enough(values, least, bins):
    columns, notes = cut_column(pl.Series("x", values, pl.Float64), USUAL, least, bins=bins)
    if not columns:
        assert notes
        return
    (one,) = columns
    sizes = one.rows
    assert sizes.sum() == len(values)
    assert sizes.min() >= least
    assert len(set(one.labels)) == len(one.labels) >= 2
    # Bins of numbers do not overlap: their ranges follow each other.
    data = np.array([np.nan if value is None else value for value in values])
    held = [data[(one.codes == place) & ~np.isnan(data)] for place in range(len(one.labels))]
    ranges = [(part.min(), part.max()) for part in held if len(part)]
    assert all(high < low for (_, high), (low, _) in pairwise(ranges))


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=4, max_size=120),
    st.integers(1, 30),
)
def test_every_row_of_categories_is_in_one_bin_that_is_large_enough(values, least):
    columns, notes = cut_column(pl.Series("x", values, pl.String), USUAL, least)
    if not columns:
        assert notes
        return
    (one,) = columns
    assert one.rows.sum() == len(values)
    assert one.rows.min() >= least
    for place, label in enumerate(one.labels):
        inside = {values[row] for row in np.flatnonzero(one.codes == place)}
        if label in ("a", "b", "c", "d"):
            assert inside == {label}
        assert (None in inside) == ("missing" in label)


def test_few_missing_values_join_a_bin_that_says_so():
    one = cut([1] * 20 + [2] * 30 + [None] * 3, least=10, bins=2)
    assert "missing" in one.labels[0]
    assert one.rows.tolist() == [23, 30]


def test_small_levels_become_others_and_the_next_joins_where_they_are_few():
    one = cut(["a"] * 50 + ["b"] * 20 + ["c"] * 3 + ["d"] * 2, least=10)
    assert dict(zip(one.labels, one.rows.tolist(), strict=True)) == {"a": 50, "(other)": 25}
    many = cut(["a"] * 50 + ["b"] * 20 + ["c"] * 6 + ["d"] * 6, least=10)
    assert dict(zip(many.labels, many.rows.tolist(), strict=True)) == {
        "a": 50,
        "b": 20,
        "(other)": 12,
    }


def test_a_spike_has_a_bin_of_its_own():
    """Where one value has nine of ten rows no quantile tells the others apart."""
    one = cut([0] * 95 + [5, 6, 7, 8, 9], bins=3)
    assert one.labels[0] == "below 5"
    assert one.rows[0] == 95
    assert one.rows.sum() == 100


def test_a_level_outside_a_fixed_list_counts_as_missing():
    one = cut(["p", "q", "?", "q"], vocabulary=("p", "q"))
    assert dict(zip(one.labels, one.rows.tolist(), strict=True)) == {"p": 1, "q": 2, "(missing)": 1}


def test_columns_without_two_bins_are_left_out_by_name():
    table = cut_table(
        iter([pl.Series("same", [1, 1, 1, 1]), pl.Series("few", [1, 1, 1, 2])]), USUAL, 2
    )
    assert not table.columns
    assert "same" in table.notes[0]
    assert "few" in table.notes[1]


@pytest.mark.parametrize("bins", [5, 20])
def test_the_number_of_bins_of_a_column_may_be_its_own(bins):
    settings = PrepareSettings(bins={"x": bins})
    assert len(cut(list(range(200)), settings=settings).labels) == bins
