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

from taciturn.data.ids import RowIds
from taciturn.data.prepare import Preparation, fit
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.rules import CategoricalRule, NumericRule
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


@pytest.mark.parametrize("scale", ["standard", "none"])
def test_a_constant_column_is_zero_in_training_and_ever_after(scale):
    frame = pl.DataFrame({"a": [0.1, 0.1, 0.1], "b": [1, 2, 3]})
    plan = fit(frame, PrepareSettings(scale=scale))
    (note,) = plan.notes
    assert "column a " in note
    later = pl.DataFrame({"a": [7.0, None], "b": [1, 2]})
    assert plan.apply(later)[:, 0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("a", [None, None]),
        pl.Series("a", [None, None], dtype=pl.String),
        pl.Series("a", [None, float("nan")]),
        pl.Series("a", ["x", "x"]),
    ],
)
def test_a_column_without_values_or_with_one_level_is_zero(column):
    """Named among Alice's columns it is there, like a number that never varies."""
    plan = fit(pl.DataFrame([column]), PrepareSettings(impute="none"))
    assert plan.columns == ("a",)
    assert len(plan.notes) == 1
    assert plan.apply(pl.DataFrame({"a": ["x", "y"]})).tolist() == [[0.0], [0.0]]


def test_a_later_frame_may_hold_numbers_as_text_but_nothing_else():
    plan = fit(FRAME, PrepareSettings(scale="none"))
    text = FRAME.with_columns(pl.Series("age", ["30", None, "50", "70"]))
    np.testing.assert_array_equal(plan.apply(text), plan.apply(FRAME))
    wrong = FRAME.with_columns(pl.Series("age", ["30", "old", "50", "7o"]))
    with refused(ColumnError, names=("'age'", "2 of 4")) as caught:
        plan.apply(wrong)
    assert caught.value.where.endswith("row 2")
    with refused(ColumnError, names="'b'"):
        plan.apply(wrong, ids=RowIds.from_values(["a", "b", "c", "d"]))
    with refused(ColumnError, names=("'age'", "ages")):
        plan.apply(FRAME.rename({"age": "ages"}))


def test_missing_numbers_are_refused_where_nothing_fills_them():
    with refused(MissingValueError, names=("'age'", "1 of 4", "'6'")):
        fit(FRAME, PrepareSettings(impute="none"), ids=RowIds.from_values([5, 6, 7, 8]))
    plan = fit(FRAME.drop_nulls("age"), PrepareSettings(impute="none"))
    with refused(MissingValueError, names=("'age'", "1 of 4")):
        plan.apply(FRAME)


@pytest.mark.filterwarnings("ignore:overflow")
def test_infinities_and_numbers_too_large_to_average_are_refused():
    with refused(InfiniteValueError, names=("'a'", "1 of 3")) as caught:
        fit(pl.DataFrame({"a": [1.0, float("inf"), 2.0]}), PrepareSettings())
    assert caught.value.where.endswith("row 2")
    with refused(InfiniteValueError, names="'a'"):
        fit(pl.DataFrame({"a": [1e308, -1e308, 1e308]}), PrepareSettings())


def test_free_text_is_left_out_and_the_line_that_keeps_it_is_named():
    frame = pl.DataFrame({"note": [f"text {i}" for i in range(101)], "n": range(101)})
    plan = fit(frame, PrepareSettings())
    assert plan.columns == ("n",)
    (note,) = plan.notes
    assert "101" in note
    assert "type={'note': 'category'}" in note
    kept = fit(frame, PrepareSettings(type={"note": "category"}))
    assert len(kept.columns) == 101
    assert "101" in kept.notes[0]


def test_words_among_numbers_are_refused_with_their_place():
    mostly = pl.DataFrame({"n": [str(i) for i in range(200)] + ["n/a"]})
    with refused(ColumnError, names=("'n'", "1 of 201", "row 201", "na_values")):
        fit(mostly, PrepareSettings())
    as_levels = PrepareSettings(type={"n": "category"}, max_levels=300)
    assert len(fit(mostly, as_levels).columns) == 200


@pytest.mark.parametrize(
    ("data", "vocabularies", "names"),
    [
        pytest.param({"a": [[1, 2]]}, {}, "'a'", id="list"),
        pytest.param({"a": [datetime.timedelta(1)]}, {}, "'a'", id="duration"),
        pytest.param({"a": [0.5]}, {"a": ("0.5",)}, "'a'", id="real-number-as-category"),
        pytest.param({"a": ["x", "y"], "a=y": [1, 2]}, {}, "'a=y'", id="colliding-names"),
    ],
)
def test_columns_of_other_kinds_and_names_are_refused(data, vocabularies, names):
    with refused(ColumnError, names=names) as caught:
        fit(pl.DataFrame(data), PrepareSettings(), vocabularies)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("impute", "medain"),
        ("scale", "minmax"),
        ("clip", 0.0),
        ("clip", float("nan")),
        ("max_levels", 0),
    ],
)
def test_unfit_settings_are_refused(name, value):
    with refused(ConfigError, setting=name) as caught:
        PrepareSettings(**{name: value})
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
    ("change", "names"),
    [
        (lambda d: d.update(rulez=[]), ("'rulez'", "rules")),
        (lambda d: d.pop("notes"), "'notes'"),
        (lambda d: d.update(version=4), (4, 5)),
        (lambda d: d.update(version=True), (True, 5)),
        (lambda d: d.update(rules={}), ()),
        (lambda d: d.update(notes=[1]), ()),
        (lambda d: d["rules"].append(3), ()),
        (lambda d: d["rules"][0].update(kind="numerik"), "numeric"),
        (lambda d: d["rules"][0].update(centre=1), "center"),
        (lambda d: d["rules"][0].update(center="1"), ()),
        (lambda d: d["rules"][0].update(center=True), ()),
        (lambda d: d["rules"][0].update(center=float("nan")), ()),
        (lambda d: d["rules"][0].update(impute=float("inf")), ()),
        (lambda d: d["rules"][0].update(scale=-1), ()),
        (lambda d: d["rules"][0].update(clip=-1), -1),
        (lambda d: d["rules"][1].update(levels=["a", "a"]), ()),
        (lambda d: d["rules"][1].update(dropped="zzz"), ()),
        (lambda d: d["rules"][1].update(centers=[1, 2]), (2, 1)),
        (lambda d: d["rules"][1].update(scales=[-1]), ()),
        (lambda d: d["rules"][1].update(levels="ab"), ()),
    ],
)
def test_altered_plain_data_is_refused_with_its_place(change, names):
    with refused(ConfigError, names=names) as caught:
        Preparation.from_json(_altered(change))
    assert caught.value.hint
    assert caught.value.where
    with refused(ConfigError):
        Preparation.from_json([])
