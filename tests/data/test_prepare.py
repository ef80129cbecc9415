from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from taciturn.data import CategoricalRule, NumericRule, Preparation, PrepareSettings, RowIds, fit
from taciturn.errors import ColumnError, ConfigError, InfiniteValueError, MissingValueError
from tests.expected import refused

FRAME = pl.DataFrame(
    {
        "age": [30, None, 50, 70],
        "job": ["clerk", "baker", None, "clerk"],
        "member": [True, False, True, True],
    }
)


def test_a_small_table_by_hand():
    plan = fit(FRAME, PrepareSettings(scale="none"))
    assert plan.columns == ("age", "job=clerk", "member")
    assert plan.sources == ("age", "job", "member")
    assert plan.apply(FRAME).tolist() == [
        [30.0, 1.0, 1.0],
        [50.0, 0.0, 0.0],
        [50.0, 2 / 3, 1.0],
        [70.0, 1.0, 1.0],
    ]


@pytest.mark.parametrize("impute", ["median", "mean"])
def test_numbers_agree_with_scikit_learn(impute):
    values = np.array([[1.0, 5.0], [2.0, np.nan], [4.0, 9.0], [np.nan, -3.0], [9.0, 5.5]])
    frame = pl.DataFrame(values, schema=["a", "b"])
    expected = StandardScaler().fit_transform(SimpleImputer(strategy=impute).fit_transform(values))
    plan = fit(frame, PrepareSettings(impute=impute))
    np.testing.assert_allclose(plan.apply(frame), expected, rtol=1e-12)


def test_categories_agree_with_scikit_learn():
    levels = [["b"], ["a"], ["c"], ["b"], ["b"]]
    frame = pl.DataFrame({"x": [row[0] for row in levels]})
    encoder = OneHotEncoder(drop="first", sparse_output=False)
    plain = encoder.fit_transform(np.array(levels, dtype=object))
    np.testing.assert_array_equal(fit(frame, PrepareSettings()).apply(frame), plain)
    scaled = fit(frame, PrepareSettings(scale_categories=True)).apply(frame)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(plain), rtol=1e-12)


def test_unknown_and_missing_levels_are_the_average_of_the_training_rows():
    """Neither the level without a column nor any other."""
    plan = fit(FRAME, PrepareSettings(drop_first=False))
    other = FRAME.with_columns(pl.Series("job", ["baker", "pilot", None, "clerk"]))
    assert plan.columns[1:3] == ("job=baker", "job=clerk")
    third = pytest.approx([1 / 3, 2 / 3])
    assert plan.apply(other)[:, 1:3].tolist() == [[1, 0], third, third, [0, 1]]


def test_levels_that_are_given_leave_what_is_unknown_at_zero():
    plan = fit(FRAME, PrepareSettings(drop_first=False), {"job": ("baker", "clerk")})
    other = FRAME.with_columns(pl.Series("job", ["baker", "pilot", None, "clerk"]))
    assert plan.apply(other)[:, 1:3].tolist() == [[1, 0], [0, 0], [0, 0], [0, 1]]


def test_a_missing_level_is_the_average_before_scaling():
    plan = fit(FRAME, PrepareSettings(scale_categories=True))
    prepared = plan.apply(FRAME)[:, 1]
    assert prepared.mean() == pytest.approx(0)
    assert prepared[2] == pytest.approx(0)


def test_a_fixed_vocabulary_fixes_the_columns():
    vocabulary = {"job": ("actor", "baker", "clerk")}
    plan = fit(FRAME.head(1), PrepareSettings(scale_categories=True), vocabulary)
    assert plan.columns == ("age", "job=baker", "job=clerk", "member")
    assert "column job=baker is constant on the training rows: kept as zeros" in plan.notes
    assert not plan.apply(FRAME)[:, 1].any()


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_a_constant_column_is_zero_in_training_and_ever_after(scale):
    frame = pl.DataFrame({"a": [0.1, 0.1, 0.1], "b": [1, 2, 3]})
    plan = fit(frame, PrepareSettings(scale=scale))
    assert plan.notes == ("column a is constant on the training rows: kept as zeros",)
    later = pl.DataFrame({"a": [7.0, None], "b": [1, 2]})
    assert plan.apply(later)[:, 0].tolist() == [0.0, 0.0]
    assert plan.describe()[0] == "a: zeros (constant or empty on the training rows)"


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("a", [None, None]),
        pl.Series("a", [None, None], dtype=pl.String),
        pl.Series("a", [None, float("nan")]),
    ],
)
def test_a_column_without_values_is_zero(column):
    plan = fit(pl.DataFrame([column]), PrepareSettings(impute="none"))
    assert plan.notes == ("column a is entirely missing on the training rows: kept as zeros",)
    assert plan.apply(pl.DataFrame({"a": ["x", "y"]})).tolist() == [[0.0], [0.0]]


def test_a_single_level_is_kept_as_zeros():
    """Named among Alice's columns it is there, like a number that never varies."""
    plan = fit(pl.DataFrame({"a": ["x", "x"]}), PrepareSettings())
    assert plan.columns == ("a",)
    assert plan.notes == ("column a has one level on the training rows: kept as zeros",)
    assert plan.apply(pl.DataFrame({"a": ["x", "y"]})).tolist() == [[0.0], [0.0]]


def test_clipping_comes_after_scaling():
    frame = pl.DataFrame({"a": [0.0] * 99 + [1.0], "b": ["x"] * 99 + ["y"]})
    plan = fit(frame, PrepareSettings(clip=3.0, scale_categories=True))
    prepared = plan.apply(frame)
    assert prepared.max() == 3.0
    assert prepared[0, 0] == pytest.approx(-0.01 / np.sqrt(0.0099))
    assert (plan.apply(pl.DataFrame({"a": [-99.0], "b": ["x"]})))[0, 0] == -3.0


def test_some_columns_only_in_any_order():
    plan = fit(FRAME, PrepareSettings())
    full = plan.apply(FRAME)
    part = plan.apply(FRAME, columns=["member", "age"])
    np.testing.assert_array_equal(part, full[:, [2, 0]])
    assert plan.apply(FRAME, columns=[]).shape == (4, 0)
    with refused(ColumnError):
        plan.apply(FRAME, columns=["agee"])


def test_a_later_frame_may_hold_numbers_as_text_but_nothing_else():
    plan = fit(FRAME, PrepareSettings(scale="none"))
    text = FRAME.with_columns(pl.Series("age", ["30", None, "50", "70"]))
    np.testing.assert_array_equal(plan.apply(text), plan.apply(FRAME))
    wrong = FRAME.with_columns(pl.Series("age", ["30", "old", "50", "7o"]))
    with refused(ColumnError) as caught:
        plan.apply(wrong)
    assert caught.value.where == "first at row 2"
    with refused(ColumnError) as caught:
        plan.apply(wrong, ids=RowIds.of(["a", "b", "c", "d"]))
    assert caught.value.where == "first at row id 'b'"


def test_absent_columns_are_named():
    plan = fit(FRAME, PrepareSettings())
    with refused(ColumnError) as caught:
        plan.apply(FRAME.rename({"age": "ages"}))
    assert "did you mean ages?" in caught.value.hint


def test_missing_numbers_are_refused_where_nothing_fills_them():
    with refused(MissingValueError) as caught:
        fit(FRAME, PrepareSettings(impute="none"), ids=RowIds.of([5, 6, 7, 8]))
    assert caught.value.where == "first at row id '6'"
    plan = fit(FRAME.drop_nulls("age"), PrepareSettings(impute="none"))
    with pytest.raises(MissingValueError, match="'age': 1 of 4"):
        plan.apply(FRAME)


def test_infinities_are_refused():
    frame = pl.DataFrame({"a": [1.0, float("inf"), 2.0]})
    with refused(InfiniteValueError) as caught:
        fit(frame, PrepareSettings())
    assert caught.value.where == "first at row 2"


@pytest.mark.filterwarnings("ignore:overflow")
def test_numbers_too_large_to_average_are_refused():
    with refused(InfiniteValueError):
        fit(pl.DataFrame({"a": [1e308, -1e308, 1e308]}), PrepareSettings())


@pytest.mark.parametrize(("days", "fate"), [(400, "left out"), (30, "taken as categories")])
def test_dates_in_another_form_are_known_and_the_lines_that_read_them_are_named(days, fate):
    text = [f"{1 + row % days % 28}.{1 + row % days // 28 % 12}.2026" for row in range(500)]
    frame = pl.DataFrame({"seen": text, "n": range(500)})
    (note,) = fit(frame, PrepareSettings()).notes
    assert f"dates that are not written as in 2026-01-31: {fate}" in note
    assert "type={'seen': 'date'} and date_format={'seen': '%d.%m.%Y'}" in note
    read = PrepareSettings(type={"seen": "date"}, date_format={"seen": "%d.%m.%Y"})
    plan = fit(frame, read)
    assert plan.columns == ("seen", "n")
    assert not plan.notes


def test_free_text_is_left_out_and_the_line_that_keeps_it_is_named():
    frame = pl.DataFrame({"note": [f"text {i}" for i in range(101)], "n": range(101)})
    plan = fit(frame, PrepareSettings())
    assert plan.columns == ("n",)
    (note,) = plan.notes
    assert "note is free text, 101 different values in 101 rows" in note
    assert "type={'note': 'category'}" in note
    kept = fit(frame, PrepareSettings(type={"note": "category"}))
    assert len(kept.columns) == 101
    assert "has 101 levels: the 100 most frequent" in kept.notes[0]


def test_words_among_numbers_are_refused_with_their_place():
    mostly = pl.DataFrame({"n": [str(i) for i in range(200)] + ["n/a"]})
    with refused(ColumnError) as caught:
        fit(mostly, PrepareSettings())
    assert caught.value.where == "first at row 201"
    assert "null_words" in caught.value.hint
    as_levels = PrepareSettings(type={"n": "category"}, max_levels=300)
    assert len(fit(mostly, as_levels).columns) == 200


@pytest.mark.parametrize("value", [[1, 2], datetime.timedelta(1)])
def test_other_kinds_are_refused(value):
    with refused(ColumnError) as caught:
        fit(pl.DataFrame({"a": [value]}), PrepareSettings())
    assert caught.value.hint


def test_a_real_number_cannot_be_a_category():
    with refused(ColumnError):
        fit(pl.DataFrame({"a": [0.5]}), PrepareSettings(), {"a": ("0.5",)})


def test_colliding_names_are_refused():
    with refused(ColumnError):
        fit(pl.DataFrame({"a": ["x", "y"], "a=y": [1, 2]}), PrepareSettings())


def test_every_choice_is_described():
    plan = fit(FRAME, PrepareSettings(clip=5.0, scale_categories=True))
    assert plan.describe() == [
        "age: numeric; missing becomes 50; minus 50, divided by 14.1421; clipped to ±5",
        "job: one-hot, 1 column; level baker gets no column; an unknown or missing level is the "
        "average of the training rows; each centred and scaled; clipped to ±5",
        "member: numeric; missing becomes 1; minus 0.75, divided by 0.433013; clipped to ±5",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"impute": "medain"}, "impute is 'medain'"),
        ({"scale": "minmax"}, "scale is 'minmax'"),
        ({"clip": 0.0}, "clip is 0"),
        ({"clip": float("nan")}, "clip is nan"),
        ({"max_levels": 0}, "max_levels is 0"),
    ],
)
def test_unfit_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message) as caught:
        PrepareSettings(**options)
    assert caught.value.hint


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
SPREAD = st.floats(0, 1e6)
NUMERIC = st.builds(
    NumericRule,
    st.text(min_size=1),
    st.none() | NUMBERS,
    NUMBERS,
    SPREAD,
    st.none() | st.floats(0.1, 9),
)


@st.composite
def categorical(draw):
    levels = tuple(draw(st.lists(st.text(), min_size=1, max_size=4, unique=True)))
    dropped = draw(st.none() | st.sampled_from(levels))
    kept = len(levels) - (dropped is not None)
    numbers = st.lists(NUMBERS, min_size=kept, max_size=kept).map(tuple)
    spreads = st.lists(SPREAD, min_size=kept, max_size=kept).map(tuple)
    column = draw(st.text(min_size=1))
    return CategoricalRule(column, levels, dropped, draw(numbers), draw(spreads), None)


@settings(max_examples=30)
@given(
    st.lists(NUMERIC | categorical(), max_size=4, unique_by=lambda rule: rule.column),
    st.lists(st.text(), max_size=2),
)
def test_a_preparation_survives_json(rules, notes):
    try:
        plan = Preparation(tuple(rules), tuple(notes))
    except ColumnError:
        return  # an output column of one rule is named like another's
    assert Preparation.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def _altered(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    data = fit(FRAME, PrepareSettings(scale_categories=True)).to_json()
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (lambda d: d.update(rulez=[]), "unknown key 'rulez'", "did you mean rules?"),
        (lambda d: d.pop("notes"), "key 'notes' is missing", ""),
        (lambda d: d.update(version=5), "another version", "version 4"),
        (lambda d: d.update(version=True), "another version", "version 4"),
        (lambda d: d.update(rules={}), "a list must stand here", ""),
        (lambda d: d.update(notes=[1]), "text must stand here", ""),
        (lambda d: d["rules"].append(3), "no known kind", ""),
        (lambda d: d["rules"][0].update(kind="numerik"), "no known kind", "did you mean numeric?"),
        (lambda d: d["rules"][0].update(centre=1), "unknown key", "did you mean center?"),
        (lambda d: d["rules"][0].update(center="1"), "a number must stand here", ""),
        (lambda d: d["rules"][0].update(center=True), "a number must stand here", ""),
        (lambda d: d["rules"][0].update(center=float("nan")), "must be finite", ""),
        (lambda d: d["rules"][0].update(impute=float("inf")), "must be finite", ""),
        (lambda d: d["rules"][0].update(scale=-1), "a scale must be finite", ""),
        (lambda d: d["rules"][0].update(clip=-1), "clip is -1", ""),
        (lambda d: d["rules"][1].update(levels=["a", "a"]), "a level is repeated", ""),
        (lambda d: d["rules"][1].update(dropped="zzz"), "dropped level is not a level", ""),
        (lambda d: d["rules"][1].update(centers=[1, 2]), "2 centers for 1 output", ""),
        (lambda d: d["rules"][1].update(scales=[-1]), "a scale must be finite", ""),
        (lambda d: d["rules"][1].update(levels="ab"), "a list must stand here", ""),
    ],
)
def test_altered_plain_data_is_refused(change, message, hint):
    with pytest.raises(ConfigError, match=message) as caught:
        Preparation.from_json(_altered(change))
    assert hint in caught.value.hint
    assert caught.value.hint
    assert caught.value.where


def test_plain_data_must_be_an_object():
    with refused(ConfigError):
        Preparation.from_json([])
