"""Preparation of columns as people have them: outliers, gaps, rare levels, dates, free text."""

from __future__ import annotations

import datetime
import json
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats.mstats import winsorize
from sklearn.preprocessing import (
    KBinsDiscretizer,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from taciturn.data.binned_rule import BinnedRule
from taciturn.data.column_parsing import Reading
from taciturn.data.fitting import winsor_bounds
from taciturn.data.ids import RowIds
from taciturn.data.label_table import LabelTable
from taciturn.data.prepare import Preparation, fit
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.rules import CategoricalRule, NumericRule
from taciturn.data.tables import FeatureTable
from taciturn.data.target_leakage import label_name_notes, leakage_notes
from taciturn.data.transforms import KINDS, Transform, fit_transform
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import ColumnError, ConfigError, TableError
from taciturn.setting_syntax import COMMAND_LINE
from tests.expected import refused

PLAIN = PrepareSettings(scale="none")
# Different enough for a float's last bits not to decide.
SPREAD = arrays(
    np.float64,
    st.integers(8, 60),
    elements=st.floats(-1e4, 1e4).map(lambda x: round(x, 3)),
    unique=True,
)


def prepared(values: object, **choices: object) -> np.ndarray:
    frame = pl.DataFrame({"x": values})
    plan = fit(frame, PrepareSettings(**{"scale": "none", **choices}))  # type: ignore[arg-type]
    return plan.apply(frame)


# --- against scikit-learn and scipy --------------------------------------------------------------


@given(SPREAD, st.floats(0, 0.4))
@settings(max_examples=40)
def test_winsorising_is_scipys(values, share):
    expected = np.asarray(winsorize(values, limits=(share, share)))
    assert np.clip(values, *winsor_bounds(values, share)).tolist() == expected.tolist()


@given(SPREAD)
@settings(max_examples=40)
def test_the_rank_is_scikit_learns_quantile(values):
    count = min(101, len(values))
    oracle = QuantileTransformer(n_quantiles=count, subsample=None).fit(values.reshape(-1, 1))
    other = np.concatenate([values, np.linspace(values.min() - 1, values.max() + 1, 50)])
    transform = fit_transform("rank", values)
    expected = oracle.transform(other.reshape(-1, 1)).ravel()
    np.testing.assert_allclose(transform.apply(other), expected, atol=1e-9)


@given(arrays(np.float64, 40, elements=st.floats(-20, 20).map(lambda x: round(x, 3)), unique=True))
@settings(max_examples=25)
def test_yeo_johnson_is_scikit_learns(values):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = PowerTransformer(standardize=False).fit(values.reshape(-1, 1))
    power = fit_transform("yeo-johnson", values).power
    np.testing.assert_allclose(power, np.clip(oracle.lambdas_[0], -4, 6), atol=2e-3)
    expected = PowerTransformer(standardize=False).fit(values.reshape(-1, 1))
    expected.lambdas_ = np.array([power])
    np.testing.assert_allclose(
        Transform("yeo-johnson", power).apply(values),
        expected.transform(values.reshape(-1, 1)).ravel(),
        rtol=1e-9,
        atol=1e-9,
    )


@given(SPREAD)
@settings(max_examples=15)
def test_the_logarithm_keeps_the_sign(values):
    expected = np.sign(values) * np.log1p(np.abs(values))
    np.testing.assert_allclose(prepared(values, transform={"x": "log"})[:, 0], expected)


@given(SPREAD, st.integers(2, 7))
@settings(max_examples=40)
def test_bins_are_scikit_learns(values, count):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = KBinsDiscretizer(
            count, encode="onehot-dense", strategy="quantile", quantile_method="linear"
        )
        expected = oracle.fit_transform(values.reshape(-1, 1))
    np.testing.assert_array_equal(prepared(values, bins={"x": count}), expected[:, 1:])


@pytest.mark.parametrize("transform", ["none", *KINDS])
def test_scaling_comes_after_the_bounds_and_the_transform(transform):
    values = np.exp(np.linspace(-3, 4, 400))
    frame = pl.DataFrame({"x": values})
    plan = fit(frame, PrepareSettings(winsorise={"*": 0.01}, transform={"*": transform}))
    held = np.asarray(winsorize(values, limits=(0.01, 0.01)), dtype=np.float64)
    shaped = held if transform == "none" else fit_transform(transform, held).apply(held)
    expected = StandardScaler().fit_transform(shaped.reshape(-1, 1))
    np.testing.assert_allclose(plan.apply(frame), expected, atol=1e-9)


# --- any rule ------------------------------------------------------------------------------------

FINITE = st.floats(-1e6, 1e6)
READINGS = st.sampled_from(
    [
        *(Reading(), Reading("days"), Reading("days", ("%d.%m.%Y", "iso")), Reading("year")),
        *(Reading(decimal=","), Reading(decimal="either")),
    ]
)
TRANSFORMS = st.one_of(
    st.none(),
    st.just(Transform("log")),
    st.floats(-4, 6).map(lambda power: Transform("yeo-johnson", power)),
    st.lists(FINITE, min_size=1, max_size=5, unique=True).map(
        lambda knots: Transform(
            "rank",
            knots=tuple(sorted(knots)),
            ranks=tuple(np.linspace(0, 1, len(knots)).tolist()),
        )
    ),
)


@st.composite
def rules(draw):
    name, clip = draw(st.text(min_size=1)), draw(st.none() | st.floats(0.01, 9))
    impute, missing = draw(FINITE), draw(st.booleans())
    kind = draw(st.sampled_from(["number", "bins", "levels"]))
    if kind == "number":
        lower, upper = sorted([draw(FINITE), draw(FINITE)])
        scale = draw(st.just(0.0) | st.floats(1e-3, 1e3))
        return NumericRule(
            name, impute, draw(FINITE), scale, clip, lower, upper, draw(TRANSFORMS), missing,
            draw(READINGS),
        )  # fmt: skip
    if kind == "bins":
        edges = tuple(sorted(draw(st.lists(FINITE, min_size=1, max_size=4, unique=True))))
        count = len(edges) + 1 + missing
        counted = st.lists(st.integers(0, 3), min_size=count, max_size=count)
        parts = draw(st.just([]) | counted.filter(any))
        of_rows = tuple(part / sum(parts) for part in parts)
        return BinnedRule(name, edges, impute, missing, clip, draw(READINGS), of_rows)
    levels = tuple(draw(st.lists(st.text(), min_size=1, max_size=4, unique=True)))
    known = st.none() | st.sampled_from(levels)
    dropped, shares = draw(known), st.floats(0, 1)
    kept = len(levels) - (dropped is not None)
    average = draw(st.just(()) | st.lists(shares, min_size=kept, max_size=kept).map(tuple))
    return CategoricalRule(name, levels, dropped, (), (), clip, draw(known), draw(known), average)


@given(rules())
def test_a_rule_survives_json_and_describes_itself(rule):
    plan = Preparation((rule,))
    again = Preparation.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan
    assert plan.describe()[0].startswith(rule.name)


@given(
    rules().filter(lambda rule: rule.clip is not None and rule.reading.kind == "number"),
    st.lists(st.none() | st.floats(-1e300, 1e300), min_size=1, max_size=5),
    st.lists(st.none() | st.text(), min_size=5, max_size=5),
)
@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:overflow")
def test_no_new_row_is_beyond_the_public_clip(rule, numbers, texts):
    words = isinstance(rule, CategoricalRule)
    series = pl.Series(
        rule.column,
        texts[: len(numbers)] if words else numbers,
        dtype=pl.String if words else pl.Float64,
    )
    values = Preparation((rule,)).apply(series.to_frame())
    assert values.shape == (len(series), len(rule.outputs))
    assert np.isfinite(values).all()
    assert (np.abs(values) <= rule.clip).all()


@given(
    st.lists(st.none() | st.floats(-1e6, 1e6), min_size=2, max_size=12),
    st.lists(
        st.none() | st.sampled_from(["a", "b", "c", "(other)", "(missing)", ""]),
        min_size=12,
        max_size=12,
    ),
    st.lists(st.none() | st.dates(), min_size=12, max_size=12),
    st.sampled_from(["none", *KINDS]),
    st.sampled_from([0, 3]),
    st.floats(0, 0.45),
)
@settings(max_examples=30)
def test_any_table_gives_numbers_and_the_same_after_json(
    numbers, words, days, transform, bins, share
):
    rows = len(numbers)
    frame = pl.DataFrame(
        {"n": numbers, "w": words[:rows], "d": days[:rows]},
        schema={"n": pl.Float64, "w": pl.String, "d": pl.Date},
    )
    choices = PrepareSettings(
        winsorise={"*": share},
        missing_indicator=True,
        min_frequency=share,
        transform={"*": transform},
        bins={"*": bins},
        date_parts=("year", "month", "weekday"),
    )
    plan = fit(frame, choices)
    values = plan.apply(frame)
    assert np.isfinite(values).all()
    again = Preparation.from_json(json.loads(json.dumps(plan.to_json())))
    assert again.apply(frame).tolist() == values.tolist()
    assert plan.sources == tuple(sorted(plan.sources, key=frame.columns.index))


@pytest.mark.parametrize("version", [1, 4, 6, "5", None])
def test_a_preparation_of_another_version_is_refused(version):
    plan = Preparation((BinnedRule("age", (30.0, 45.0), shares=(0.5, 0.25, 0.25)),))
    with refused(ConfigError, names=(version, 5)):
        Preparation.from_json({**plan.to_json(), "version": version})


# --- outliers, gaps and rare levels --------------------------------------------------------------


def test_outliers_are_cut_and_said():
    values = [float(n % 100) for n in range(1000)] + [1e9]
    plan = fit(pl.DataFrame({"income": values}), DEFAULTS)
    rule = plan.rules[0]
    assert isinstance(rule, NumericRule)
    assert (rule.lower, rule.upper) == (0.0, 99.0)
    assert "income" in plan.notes[0]
    assert "1 of 1,001" in plan.notes[0]
    assert abs(plan.apply(pl.DataFrame({"income": [1e12, -1e12]}))).max() < 2


def test_a_spread_below_the_numbers_that_there_are_is_none():
    """Of what is left within the bounds the standard deviation underflows."""
    frame = pl.DataFrame({"tiny": [0.0] * 163 + [1e-320] * 136 + [1.5]})
    plan = fit(frame, DEFAULTS)
    (rule,) = plan.rules
    assert isinstance(rule, NumericRule)
    assert rule.scale == 0
    assert not plan.apply(frame).any()


def test_a_rare_mark_is_no_outlier():
    frame = pl.DataFrame({"late": [0] * 999 + [1]})
    plan = fit(frame, DEFAULTS)
    assert plan.apply(frame)[-1, 0] > 30
    assert not plan.notes


def test_where_values_are_missing_is_a_column_of_its_own():
    frame = pl.DataFrame({"age": [30.0, None, 50.0], "job": ["a", None, "b"], "n": [1, 2, 3]})
    plan = fit(frame, DEFAULTS)
    assert plan.columns == ("age", "age=(missing)", "job=b", "job=(missing)", "n")
    assert plan.sources == ("age", "age", "job", "job", "n")
    assert plan.apply(frame)[:, 1].tolist() == [0, 1, 0]
    assert plan.apply(frame)[:, 3].tolist() == [0, 1, 0]
    # Nothing was missing there in training: a gap is filled, and no column says so.
    assert plan.apply(frame.with_columns(n=None))[:, 4].tolist() == [0, 0, 0]


def test_rare_levels_and_unknown_ones_are_others():
    words = ["a"] * 501 + ["b"] * 491 + ["c", "d"] * 4
    plan = fit(pl.DataFrame({"x": words}), DEFAULTS)
    assert plan.columns == ("x=b", "x=(other)")
    new = plan.apply(pl.DataFrame({"x": ["a", "b", "c", "never seen"]}))
    assert new.tolist() == [[0, 0], [1, 0], [0, 1], [0, 1]]


# --- dates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["2026-01-31", None, "2026-02-01"],
        ["2026-01-31T00:00:00Z", None, "2026-02-01 00:00"],
        [datetime.date(2026, 1, 31), None, datetime.date(2026, 2, 1)],
        [datetime.datetime(2026, 1, 31), None, datetime.datetime(2026, 2, 1)],
    ],
)
def test_dates_are_days(values):
    frame = pl.DataFrame({"opened": values})
    plan = fit(frame, PLAIN)
    since = (datetime.date(2026, 1, 31) - datetime.date(1970, 1, 1)).days
    assert plan.apply(frame)[:, 0].tolist() == [since, since + 0.5, since + 1]
    assert "1970-01-01" in plan.describe()[0]


def test_parts_of_dates():
    frame = pl.DataFrame({"opened": ["2026-01-31", "2025-02-01", "2026-12-07"]})
    choices = PrepareSettings(scale="none", date_parts=("year", "month", "weekday"))
    plan = fit(frame, choices)
    values = dict(zip(plan.columns, plan.apply(frame).T.tolist(), strict=True))
    assert values["opened.year"] == [2026, 2025, 2026]
    assert values["opened.month=12"] == [0, 0, 1]
    assert values["opened.weekday=6"] == [1, 1, 0]
    assert set(plan.sources) == {"opened"}


@pytest.mark.parametrize(("values", "form"), [(["31.01.2026"], "%d.%m.%Y"), ([20260131], "%Y%m%d")])
def test_dates_in_another_form_are_said(values, form):
    frame = pl.DataFrame({"opened": [*values, None]})
    choices = PrepareSettings(
        scale="none", type={"opened": "date"}, date_format={"opened": (form,)}
    )
    assert fit(frame, choices).apply(frame)[0, 0] == 0  # constant


def test_what_is_no_date_is_refused_with_its_place():
    frame = pl.DataFrame({"opened": ["2026-01-31", "soon"]})
    with refused(ColumnError, names=("'opened'", "1 of 2", "row 2")) as caught:
        fit(frame, PrepareSettings(type={"opened": "date"}))
    # exact: an option, as the command line takes it
    assert "--date-format opened=%d.%m.%Y" in caught.value.diagnostics(COMMAND_LINE)


# --- by column -----------------------------------------------------------------------------------


def test_numbers_as_categories_and_the_other_way_round():
    frame = pl.DataFrame({"zip": [1, 2, 1, 3], "size": ["1", "2", "3", "4"]})
    plan = fit(frame, PrepareSettings(type={"zip": "category", "size": "number"}))
    assert plan.columns == ("zip=2", "zip=3", "size")


def test_a_choice_for_numbers_that_names_categories_is_refused():
    frame = pl.DataFrame({"job": ["a", "b"]})
    with refused(ColumnError, names=("'job'", "bins")):
        fit(frame, PrepareSettings(bins={"job": 3}))
    assert fit(frame, PrepareSettings(bins={"*": 3})).columns == ("job=b",)


def test_a_number_of_two_values_is_not_cut():
    frame = pl.DataFrame({"late": [0] * 9 + [1], "n": range(10)})
    assert fit(frame, PrepareSettings(bins={"*": 2})).columns == ("late", "n=4.5 or more")


def test_all_problems_are_said_at_once():
    frame = pl.DataFrame({"a": [1.0, float("inf")], "b": [[1], [2]], "c": [1, 2]})
    with refused(TableError, names=("'a'", "1 of 2", "'b'", "List")) as caught:
        fit(frame, PrepareSettings())
    text = caught.value.diagnostics(COMMAND_LINE)
    assert text.count("try:") == 2
    assert "--drop b" in text


# --- labels among the columns --------------------------------------------------------------------


def table_of(**columns: np.ndarray) -> FeatureTable:
    first = next(iter(columns.values()))
    values = np.column_stack(list(columns.values()))
    return FeatureTable(RowIds.numbered(len(first)), tuple(columns), values)


def test_a_column_that_nearly_equals_the_label_is_named():
    labels = np.arange(200) % 7 == 0
    noise = np.sin(np.arange(200.0))
    table = table_of(paid=1.0 - labels, noise=noise, leak=noise * 0.1 + 5 * labels)
    truth = LabelTable(table.ids, labels.astype(np.int8))
    notes = leakage_notes(table, truth)
    assert [note.split()[1] for note in notes] == ["paid", "leak"]
    assert "drop=['paid']" in notes[0]
    shuffled = LabelTable(table.ids, np.roll(truth.values, 3))
    assert leakage_notes(table, shuffled) == ()


def test_a_label_among_alices_columns_is_named_by_its_look():
    frame = pl.DataFrame(
        {
            "Default": [0, 1, 0],
            "is_churned": ["yes", "no", "yes"],
            "target": [1, 2, 3],
            "smoker": [0, 1, 1],
            "y": [True, False, None],
        }
    )
    assert [note.split()[1] for note in label_name_notes(frame)] == ["Default", "is_churned", "y"]
