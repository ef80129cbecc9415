"""Bins: at given edges, of missing values, and merged until the share of positives is monotone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from taciturn.data.choices import Monotone, PrepareSettings
from taciturn.data.ids import RowIds
from taciturn.data.monotone import LEAST_SHARE, merge_bins, monotone_starts
from taciturn.data.own import DEFAULTS
from taciturn.data.prepare import Preparation, fit
from taciturn.data.raw import RawData
from taciturn.data.rules import BinnedRule
from taciturn.data.split import Partition, VerticalData, prepare_vertical
from taciturn.data.streaming import ChosenRows, fit_and_prepare
from taciturn.data.tables import LabelTable
from taciturn.errors import ConfigError
from taciturn.mapped import Scratch

EDGES = (25.0, 35.0, 50.0)
AGED = replace(DEFAULTS, bins={"age": EDGES})


def fitted(values: list[Any], choices: PrepareSettings = AGED) -> tuple[Preparation, BinnedRule]:
    plan = fit(pl.DataFrame({"age": values}, schema={"age": pl.Float64}), choices)
    (rule,) = plan.rules
    assert isinstance(rule, BinnedRule)
    return plan, rule


def prepared(plan: Preparation, values: list[Any]) -> list[list[float]]:
    rows: list[list[float]] = plan.apply(
        pl.DataFrame({"age": values}, schema={"age": pl.Float64})
    ).tolist()
    return rows


# --- given edges ---------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([*EDGES, 18.0, 30.5, 49.9, 70.0]), min_size=8, max_size=30),
    st.sampled_from([EDGES, 2, 3]),
)
@settings(max_examples=30)
def test_intervals_are_those_that_pandas_cuts_closed_at_the_left(values, bins):
    """Given edges and quantiles alike; pandas is asked by ``cut`` alone."""
    plan = fit(pl.DataFrame({"age": values}), replace(DEFAULTS, winsorise={}, bins={"age": bins}))
    (rule,) = plan.rules
    if not isinstance(rule, BinnedRule):
        assert bins not in (EDGES,)
        return
    cut = pd.cut(pd.Series(values), [-np.inf, *rule.edges, np.inf], right=False)
    columns = pd.get_dummies(cut).to_numpy().astype(float)
    reference = int(columns.any(axis=0).argmax())
    expected = np.delete(columns, reference, axis=1)
    assert plan.apply(pl.DataFrame({"age": values})).tolist() == expected.tolist()
    assert np.allclose(rule.shares, columns.mean(axis=0))


def test_a_bin_says_what_holds_in_it_and_which_column_marks_it():
    _, rule = fitted([20, 30, 40, 60, None], replace(AGED, impute="bin"))
    assert [(one.label, one.output, one.share) for one in rule.bins] == [
        ("age < 25", None, 0.2),
        ("25 ≤ age < 35", "age=25 to 35", 0.2),
        ("35 ≤ age < 50", "age=35 to 50", 0.2),
        ("50 ≤ age", "age=50 or more", 0.2),
        ("age missing", "age=(missing)", 0.2),
    ]
    assert rule.describe() == (
        "age: numeric in 4 intervals, one-hot; below 25 gets no column; one column more says where "
        "it is missing"
    )


def test_a_given_bin_without_rows_is_a_column_of_zeros_with_a_note():
    plan, rule = fitted([20, 30, 30, 40])
    assert plan.notes == ("column age: no training row is in 50 ≤ age: kept as a column of zeros",)
    assert rule.outputs == ("age=25 to 35", "age=35 to 50", "age=50 or more")
    # Of a row there nothing is known: it is the average of the training rows.
    assert prepared(plan, [20, 30, 99]) == [[0, 0, 0], [1, 0, 0], [0.5, 0.25, 0]]
    assert "no training row in 50 ≤ age: zeros" in rule.describe()


def test_the_reference_is_the_first_bin_with_rows():
    """Else its columns would add up to the intercept."""
    plan, rule = fitted([30, 30, 40, 60])
    assert rule.outputs == ("age=below 25", "age=35 to 50", "age=50 or more")
    assert [one.output for one in rule.bins] == ["age=below 25", None, *rule.outputs[1:]]
    assert prepared(plan, [30, 40, 10]) == [[0, 0, 0], [0, 1, 0], [0, 0.25, 0.25]]


@pytest.mark.parametrize("values", [[30.0] * 4, [None] * 4, [10.0, 99.0, None, 40.0]])
@pytest.mark.parametrize("impute", ["median", "bin"])
def test_given_edges_give_as_many_columns_whatever_the_rows_are(values, impute):
    choices = replace(AGED, impute=impute, missing_indicator=False)
    plan, rule = fitted(values, choices)
    assert len(rule.outputs) == len(EDGES) + (impute == "bin")
    matrix = plan.apply(pl.DataFrame({"age": [30.0, None]}, schema={"age": pl.Float64}))
    assert np.isfinite(matrix).all()


def test_edges_that_are_none_are_refused_here_too():
    for edges in ((), (2.0, 2.0), (1.0, float("nan")), (float("inf"),)):
        with pytest.raises(ConfigError, match="the edges of bins") as caught:
            PrepareSettings(bins={"age": edges})
        assert caught.value.setting == "bins"


# --- missing as a bin ----------------------------------------------------------------------------


@pytest.mark.parametrize("bins", [EDGES, 2])
def test_a_missing_value_is_in_its_own_bin_and_nowhere_else(bins):
    choices = replace(DEFAULTS, bins={"age": bins}, impute="bin", rare_share=0.9)
    plan, rule = fitted([20, 30, 40, 60, None], choices)
    assert rule.outputs[-1] == "age=(missing)"
    assert rule.impute is None
    (row,) = prepared(plan, [None])
    assert row == [0.0] * (len(rule.outputs) - 1) + [1.0]


@pytest.mark.parametrize("bins", [EDGES, 2])
def test_a_bin_of_missing_values_is_there_where_none_was_seen(bins):
    """Its column is zero for ever; a row without a value is then the average of the others."""
    choices = replace(DEFAULTS, bins={"age": bins}, impute="bin")
    plan, rule = fitted([20, 30, 40, 60], choices)
    assert rule.outputs[-1] == "age=(missing)"
    assert "no training row in age missing: zeros" in rule.describe()
    matrix = np.array(prepared(plan, [20, 30, 40, 60, None]))
    assert matrix[4].tolist() == [*matrix[:4, :-1].mean(axis=0).tolist(), 0.0]
    assert not matrix[:, -1].any()


def test_a_number_that_is_not_cut_gets_the_median():
    frame = pl.DataFrame({"age": [1.0, 5.0, None], "late": [0.0, 0.0, None]})
    choices = PrepareSettings(impute="bin", scale="none", bins={"late": 4})
    plan = fit(frame, choices)
    # A column of one value cannot be cut; that a value is missing is said all the same.
    assert plan.columns == ("age", "late", "late=(missing)")
    assert plan.apply(frame).tolist() == [[1, 0, 0], [5, 0, 0], [3, 0, 1]]


# --- monotone ------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 12), min_size=2, max_size=20), st.booleans())
def test_merged_bins_are_the_steps_of_an_isotonic_regression(ones, falling):
    """Bins of one size, none of them too small: scikit-learn's is the oracle."""
    rows = np.full(len(ones), 12)
    way: Monotone = "decreasing" if falling else "increasing"
    starts, taken = monotone_starts(rows, np.array(ones), way)
    assert taken == way
    oracle = IsotonicRegression(increasing=not falling).fit_transform(
        np.arange(len(ones)), np.array(ones) / 12
    )
    steps = [0, *(1 + np.flatnonzero(np.abs(np.diff(oracle)) > 1e-9)).tolist()]
    assert starts == steps


BINS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=30)


@given(BINS, st.sampled_from(["auto", "increasing", "decreasing"]))
def test_merged_bins_are_in_order_and_large_enough(counts, direction):
    rows = np.array([max(pair) for pair in counts])
    ones = np.array([min(pair) for pair in counts])
    starts, way = monotone_starts(rows, ones, direction)
    assert starts[0] == 0
    sums = np.add.reduceat(rows, starts), np.add.reduceat(ones, starts)
    if len(starts) == 1:
        return
    assert (sums[0] >= LEAST_SHARE * rows.sum()).all()
    rates = sums[1] / sums[0] * (1 if way == "increasing" else -1)
    assert (np.diff(rates) > 0).all()


def test_without_a_direction_the_trend_is_taken():
    rows = np.full(4, 25)
    assert monotone_starts(rows, np.array([20, 12, 14, 3]), "auto") == ([0, 1, 3], "decreasing")
    assert monotone_starts(rows, np.array([1, 2, 3, 4]), "auto") == ([0, 1, 2, 3], "increasing")
    # Whatever breaks the given order is one.
    assert monotone_starts(rows, np.array([9, 7, 5, 3]), "increasing") == ([0], "increasing")


def raw_data(labels: list[int] | None = None, **changes: Any) -> RawData:
    rows = 400
    draw = np.random.default_rng(5)
    income = draw.normal(50, 20, rows).round(1)
    chance = 1 / (1 + np.exp(-(income - 50) / 10))
    truth = (draw.uniform(size=rows) < chance).astype(np.int8)
    ids = RowIds.numbered(rows)
    gaps = [None if n % 9 == 0 else value for n, value in enumerate(income.tolist())]
    frame = pl.DataFrame({"age": draw.uniform(18, 80, rows), "income": gaps})
    usual: dict[str, Any] = {"bins": {"*": 10}, "monotone": {"income": "auto"}, "impute": "bin"}
    values = truth if labels is None else np.array(labels, dtype=np.int8)
    settings = replace(DEFAULTS, **{**usual, **changes})
    return RawData("people", frame, ids, LabelTable(ids, values), settings, own=True)


PARTS = Partition(train=np.arange(300), test=np.arange(300, 400))


def vertical(raw: RawData, spec: str = "age") -> VerticalData:
    return prepare_vertical(raw, PARTS, spec, intercept=True)


def test_the_number_of_columns_does_not_depend_on_labels():
    true = vertical(raw_data())
    rule = true.preparation.rules[1]
    assert isinstance(rule, BinnedRule)
    assert rule.padding > 0
    widths = {len(true.bob_train.columns)}
    merged = {rule.padding}
    for seed in range(8):
        shuffled = np.random.default_rng(seed).permutation(raw_data().labels.values).tolist()
        other = vertical(raw_data(shuffled)).preparation
        assert isinstance(other.rules[1], BinnedRule)
        merged.add(other.rules[1].padding)
        widths.add(len(vertical(raw_data(shuffled)).bob_train.columns))
        assert other.rules[0] == true.preparation.rules[0]
    without = vertical(raw_data(monotone={}))
    # The labels decide how many bins are left, and nobody sees it.
    assert len(merged) > 3
    assert widths == {len(without.bob_train.columns)} == {11}


def test_padding_is_zeros_and_no_bin():
    data = vertical(raw_data())
    rule = data.preparation.rules[1]
    assert isinstance(rule, BinnedRule)
    padding = [name for name in data.bob_train.columns if "(merged" in name]
    assert data.preparation.padding == {*padding}
    assert len(padding) == rule.padding == 9 - len(rule.edges)
    assert not data.bob_train.select(padding).values.any()
    assert not {one.output for one in rule.bins} & {*padding}
    assert len(rule.bins) == len(rule.edges) + 2
    # The bin of missing values is none of those that are merged.
    assert rule.bins[-1].label == "income missing"
    shares = [
        float(
            data.labels_train.values[data.bob_train.select([one.output]).values[:, 0] == 1].mean()
        )
        for one in rule.bins[1:-1]
        if one.output is not None
    ]
    assert shares == sorted(shares)
    again = Preparation.from_json(json.loads(json.dumps(data.preparation.to_json())))
    assert again == data.preparation


def test_only_labels_of_training_rows_decide():
    raw = raw_data()
    labels = raw.labels.values.copy()
    labels[PARTS.test] = 1 - labels[PARTS.test]
    assert vertical(raw_data(labels.tolist())).preparation == vertical(raw).preparation


def test_the_columns_in_blocks_on_disk_are_the_same(tmp_path):
    raw = raw_data(bins={"income": 10})
    hers, his = (raw.frame.select([name]) for name in ("age", "income"))
    assert hers.columns == ["age"]
    chosen = [
        ChosenRows(raw.ids.take(rows), rows, name)
        for rows, name in ((PARTS.train, "train"), (PARTS.test, "held-out"))
    ]
    plan, (train, test) = fit_and_prepare(
        his,
        raw.settings,
        chosen,
        intercept=True,
        scratch=Scratch(tmp_path / "room", least=0),
        labels=raw.labels.values[PARTS.train],
    )
    data = vertical(raw)
    assert plan.rules == data.preparation.rules[1:]
    assert train.columns == data.bob_train.columns
    assert train.values.tolist() == data.bob_train.values.tolist()
    assert test.values.tolist() == data.bob_test.values.tolist()


def test_all_binned_columns_of_his_and_none_of_hers():
    data = vertical(raw_data(monotone={"*": "increasing"}))
    hers, his = data.preparation.rules
    assert isinstance(hers, BinnedRule)
    assert isinstance(his, BinnedRule)
    assert not hers.padding
    assert his.padding


@pytest.mark.parametrize(
    ("spec", "changes", "message"),
    [
        ("income", {}, "column 'income' is Alice's"),
        ("13", {}, "column 'income' is partly Alice's"),
        ("age", {"bins": {"age": 3}}, "column 'income' is not cut into bins"),
    ],
)
def test_what_cannot_be_monotone_is_refused_by_name(spec, changes, message):
    with pytest.raises(ConfigError, match=message) as caught:
        vertical(raw_data(**changes), spec)
    assert caught.value.setting == "monotone"


def test_a_column_that_goes_no_such_way_is_zeros_with_a_note():
    series = pl.Series("x", np.arange(100.0))
    labels = (np.arange(100) < 50).astype(np.int8)
    choices = PrepareSettings(bins={"x": 4}, monotone={"x": "increasing"})
    rules = fit(series.to_frame(), choices).rules
    merged = merge_bins(rules, series, choices, labels)
    assert merged.notes == (
        "column x: the share of positives rises between no two of its 4 intervals: kept as zeros",
    )
    plan = Preparation(merged.rules)
    assert plan.columns == ("x=(merged 1)", "x=(merged 2)", "x=(merged 3)")
    assert not plan.apply(series.to_frame()).any()
    assert (
        "in 1 interval, merged from 4 with labels, one-hot; any number gets" in plan.describe()[0]
    )
    assert plan.describe()[0].endswith("3 columns of zeros in place of the others")
