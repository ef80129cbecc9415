"""Bins: at given edges, at quantiles, and of missing values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.data.binned_rule import BinnedRule
from taciturn.data.prepare import Preparation, fit
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import ConfigError
from tests.expected import refused

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
    # Names of columns: model files and reports hold them.
    assert [(one.output, one.share) for one in rule.bins] == [
        (None, 0.2),
        ("age=25 to 35", 0.2),
        ("age=35 to 50", 0.2),
        ("age=50 or more", 0.2),
        ("age=(missing)", 0.2),
    ]
    assert len({one.label for one in rule.bins}) == 5


def test_a_given_bin_without_rows_is_a_column_of_zeros_with_a_note():
    plan, rule = fitted([20, 30, 30, 40])
    (note,) = plan.notes
    assert "age" in note
    assert rule.outputs == ("age=25 to 35", "age=35 to 50", "age=50 or more")
    # Of a row there nothing is known: it is the average of the training rows.
    assert prepared(plan, [20, 30, 99]) == [[0, 0, 0], [1, 0, 0], [0.5, 0.25, 0]]


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


# --- missing as a bin ----------------------------------------------------------------------------


def test_edges_that_are_none_are_refused_here_too():
    for edges in ((), (2.0, 2.0), (1.0, float("nan")), (float("inf"),)):
        with refused(ConfigError, setting="bins"):
            PrepareSettings(bins={"age": edges})


@pytest.mark.parametrize("bins", [EDGES, 2])
def test_a_missing_value_is_in_its_own_bin_and_nowhere_else(bins):
    choices = replace(DEFAULTS, bins={"age": bins}, impute="bin", min_frequency=0.9)
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
    matrix = np.array(prepared(plan, [20, 30, 40, 60, None]))
    assert matrix[4].tolist() == [*matrix[:4, :-1].mean(axis=0).tolist(), 0.0]
    assert not matrix[:, -1].any()
