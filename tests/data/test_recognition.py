"""How people write numbers, dates and yes: read where it is clear, and never guessed."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.data.csv_files import Dialect, converted
from taciturn.data.ids import DistinctIds, Normalisation, RowIds
from taciturn.data.lazy_table import Columns
from taciturn.data.parquet import open_parquet
from taciturn.data.prepare import ChosenRows, Preparation, fit, fit_and_prepare
from taciturn.data.prepare_settings import PrepareSettings
from taciturn.data.rules import NumericRule
from taciturn.data.source import TableSource
from taciturn.data.user_table import DEFAULTS
from taciturn.errors import ColumnError, RowIdError
from tests.expected import refused


def german(text: str) -> str:
    return text.translate(str.maketrans(",.", ".,"))


def blank(sign: str) -> Callable[[str], str]:
    return lambda text: german(text).replace(".", sign)


def accounting(text: str) -> str:
    return f"({text[1:]})" if text.startswith("-") else text


NOTATIONS: dict[str, Callable[[str], str]] = {
    "english": lambda text: text,
    "plain": lambda text: text.replace(",", ""),
    "german": german,
    "swiss": lambda text: text.replace(",", "'"),
    "typographic": lambda text: text.replace(",", "’"),
    "french": blank("\u202f"),
    "russian": blank("\u00a0"),
    "blanks": blank(" "),
    "accounting": accounting,
    "trailing minus": lambda text: text[1:] + "-" if text.startswith("-") else text,
    "typographic minus": lambda text: text.replace("-", "\u2212"),
}
UNITS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: f"€ {text}",
    lambda text: f"{text} €",
    lambda text: f"${text}",
    lambda text: f"EUR {text}",
    lambda text: f"{text}\u00a0CHF",
    lambda text: f"-£{text[1:]}" if text.startswith("-") else f"£{text}",
    lambda text: f"{text} %",
)
AMOUNTS = st.lists(st.integers(-(10**9), 10**9).map(lambda n: n / 100), min_size=1, max_size=9)


def read(values: Sequence[str | None], **choices: object) -> list[float] | None:
    """Numbers of a column, each divided by none: what ``fit`` and ``apply`` make of it."""
    frame = pl.DataFrame({"x": values}, schema={"x": pl.String})
    plan = fit(frame, PrepareSettings(scale="none", drop_first=False, **choices))  # type: ignore[arg-type]
    if len(plan.rules) != 1 or not isinstance(plan.rules[0], NumericRule):
        return None
    rule = plan.rules[0]
    # A constant column is zeros; its numbers are there all the same.
    return [float(value) for value in rule.reading.numbers(frame["x"])]


@given(AMOUNTS, st.sampled_from([*NOTATIONS]), st.sampled_from(UNITS))
@settings(max_examples=150)
def test_amounts_are_read_in_every_notation(values, notation, unit):
    texts = [unit(NOTATIONS[notation](f"{value:,.2f}")) for value in values]
    assert read(texts) == values


@given(AMOUNTS, st.integers(0, 1))
@settings(max_examples=30)
def test_each_value_may_decide_for_itself(values, first):
    """Two notations in one column: with two decimals every value has one meaning."""
    notations = [NOTATIONS["english"], NOTATIONS["german"]]
    texts = [notations[(first + at) % 2](f"{value:,.2f}") for at, value in enumerate(values)]
    assert read(texts) == values


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["3,182.34", "12"], [3182.34, 12]),
        (["0,123", "1,234"], [0.123, 1.234]),
        (["1.234.567", "1.234"], [1234567, 1234]),
        (["1,23,456.5", "12,34,567"], [123456.5, 1234567]),
        (["CHF 1'200.-", "CHF 5.–"], [1200, 5]),
        (["-€5.5", "€-6", "(€7)", "€ (8)"], [-5.5, -6, -7, -8]),
        (["USD 5", "$6.5", "7 us$"], [5, 6.5, 7]),
        (["12 %", "0", None, "3,5%"], [12, 0, np.nan, 3.5]),
        (["1e3", "1.5e3 €"], [1000, 1500]),
        (["1 234", "12 345", "999"], [1234, 12345, 999]),
    ],
)
def test_what_is_clear_is_read(texts, values):
    np.testing.assert_array_equal(read(texts), values)


# By the look: distinct enough that none is a category for want of levels.
MANY = range(101, 161)
TRAPS: dict[str, tuple[list[str], str, dict[str, Any] | None]] = {
    "zip codes": ([f"0{n}3" for n in MANY], "codes", {"type": {"x": "number"}}),
    "phone numbers in blocks": ([f"612 345 {n}" for n in MANY], "phone", {"type": {"x": "number"}}),
    "phone numbers": ([f"+49 170 12{n}4" for n in MANY], "phone", None),
    "phone numbers with brackets": ([f"(030) 23{n}-4" for n in MANY], "phone", None),
    "two currencies": (
        [f"€ {n}.50" for n in MANY] + ["$ 7.25"],
        "money",
        {"type": {"x": "number"}},
    ),
    "percentages and shares": (
        [f"{n} %" for n in MANY] + ["0.12"],
        "percentages",
        {"type": {"x": "number"}},
    ),
    "two notations with an open one": (
        [f"{n},5" for n in MANY] + ["1.5", "1,234"],
        "numbers",
        {"decimal": {"x": ","}},
    ),
    "day or month first": (
        [f"{1 + n % 12:02}/{1 + n // 12 % 12:02}/2026" for n in range(144)],
        "dates",
        {"date_format": {"x": ("%m/%d/%Y",)}},
    ),
    "two-digit years of birth": (
        [f"{1 + n % 28:02}.{1 + n % 12:02}.{30 + n % 60}" for n in range(150)],
        "dates",
        {"date_format": {"x": ("%d.%m.%y",)}},
    ),
    "both orders": ([f"13/02/{1900 + n}" for n in MANY] + ["02/13/2026"] * 30, "dates", None),
    "e-mail": ([f"a{n}@b.org" for n in MANY], "e-mail", None),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_what_is_not_clear_is_noted_with_an_example_and_the_setting(trap):
    texts, look, choice = TRAPS[trap]
    frame = pl.DataFrame({"x": texts, "n": range(len(texts))})
    plan = fit(frame, PrepareSettings())
    assert plan.columns == ("n",)
    (note,) = plan.notes
    assert look in note
    assert any(repr(text) in note for text in texts)
    for setting, by_column in (choice or {}).items():
        assert f"{setting}={{'x': " in note
        if trap != "two notations with an open one":
            assert "x" in fit(frame, PrepareSettings(**{setting: by_column})).columns
        else:
            with refused(ColumnError, names="'x'"):
                fit(frame, PrepareSettings(**{setting: by_column}))


@pytest.mark.parametrize(
    ("texts", "plain", "comma", "noted"),
    [
        (["1,234", "5,678"], [1234, 5678], [1.234, 5.678], True),
        (["987", "1,234"], [987, 1234], [987, 1.234], True),
        (["1.234", "5.678"], [1.234, 5.678], [1234, 5678], False),
        (["987", "1.234"], [987, 1.234], [987, 1234], True),
    ],
)
def test_a_mark_that_may_mean_two_things_follows_the_setting_and_is_noted(
    texts, plain, comma, noted
):
    assert read(texts) == plain
    assert read(texts, decimal={"x": ","}) == comma == read(texts, decimal={"*": ","})
    notes = fit(pl.DataFrame({"x": texts}), PrepareSettings()).notes
    assert any("decimal={'x': ','}" in note for note in notes) == noted
    assert not fit(pl.DataFrame({"x": texts}), PrepareSettings(decimal={"x": "."})).notes or noted


def test_thousands_among_whole_numbers_are_known_by_their_number():
    texts = [str(n) for n in range(1, 50)] + [f"{n}.{n:03}" for n in range(1, 200)]
    values = read(texts)
    assert values is not None
    assert max(values) == 199199


def test_another_column_tells_the_decimal_mark():
    rows = ["1.234", "5.678"]
    for other, value in (("0,5", 1234), ("0.5 €", 1.234), ("x", 1.234)):
        frame = pl.DataFrame({"x": [*rows, "7"], "y": [other, other, "3"]})
        rule = fit(frame, PrepareSettings()).rules[0]
        assert rule.reading.numbers(frame["x"])[0] == value


def test_words_among_amounts_are_refused_with_their_place():
    frame = pl.DataFrame({"x": [f"€ {n}.50" for n in MANY] + ["soon"]})
    with refused(ColumnError, names=("'x'", "1 of 61", "row 61", "na_values")):
        fit(frame, PrepareSettings())
    opened = pl.DataFrame({"x": [f"{1 + n % 28}.01.2026" for n in MANY] + ["soon"]})
    with refused(ColumnError, names=("'x'", "1 of 61", "row 61", "na_values")):
        fit(opened, PrepareSettings())
    with refused(ColumnError, names="'x'"):
        fit(frame.head(60), PrepareSettings(decimal={"x": ","}))


# --- dates ---------------------------------------------------------------------------------------

DAYS = st.lists(
    st.dates(datetime.date(1971, 1, 1), datetime.date(2029, 12, 31)), min_size=1, max_size=9
)
# Formats of which every value has one meaning.
CLEAR = ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%B %d, %Y", "%d-%b-%Y", "%d.%m.%Y %H:%M")


@given(DAYS, st.lists(st.sampled_from(CLEAR), min_size=1, max_size=3))
@settings(max_examples=100)
def test_dates_are_read_in_every_clear_format_and_in_several(days, formats):
    texts = [day.strftime(formats[at % len(formats)]) for at, day in enumerate(days)]
    first = datetime.date(1970, 1, 1)
    assert read(texts) == [(day - first).days for day in days]


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m/%d/%y", "%m/%d/%Y %I:%M %p"]
)
def test_one_day_beyond_the_twelfth_tells_the_order(form):
    days = [datetime.datetime(2026, 1, 1) + datetime.timedelta(days=n) for n in range(40)]
    expected = [(day - datetime.datetime(1970, 1, 1)).days for day in days]
    assert read([day.strftime(form) for day in days]) == expected


def test_numbers_that_are_dates_are_dates_and_others_are_not():
    days = [datetime.date(2026, 1, 1) + datetime.timedelta(days=n) for n in range(60)]
    frame = pl.DataFrame({"x": [int(day.strftime("%Y%m%d")) for day in days]})
    plan = fit(frame, PrepareSettings(scale="none"))
    assert np.ptp(plan.apply(frame)) == 59
    assert "type={'x': 'number'}" in plan.notes[0]
    for numbers in ([20260101 + n for n in range(60)], [n for n in range(19000000, 19000060)]):
        plan = fit(pl.DataFrame({"x": numbers}), PrepareSettings(scale="none"))
        assert plan.rules[0].reading.kind == "number"


def test_given_formats_are_tried_in_their_order():
    given = PrepareSettings(scale="none", date_format={"x": ("%m/%d/%Y", "%d/%m/%Y", "iso")})
    frame = pl.DataFrame({"x": ["01/02/2026", "13/02/2026", "2026-03-01"]})
    days = fit(frame, given).apply(frame)[:, 0]
    assert (days - days[0]).tolist() == [0, 42, 58]


# --- categories ----------------------------------------------------------------------------------


def test_levels_are_compared_without_case_and_blanks():
    frame = pl.DataFrame({"x": ["Ulm"] * 5 + ["ULM", " ulm ", "Köln", "Köln", "KÖLN", "Bonn"]})
    plan = fit(frame, DEFAULTS)
    assert plan.columns == ("x=Köln", "x=Ulm")
    assert all(count in plan.notes[0] for count in "36")
    new = plan.apply(pl.DataFrame({"x": ["köln", "uLM", "bonn "]}))
    assert new.tolist() == [[1, 0], [0, 1], [0, 0]]
    apart = fit(frame, PrepareSettings(normalise_categories=False))
    assert len(apart.columns) == 5
    assert not apart.notes


def test_yes_and_no_in_any_words():
    frame = pl.DataFrame({"x": ["yes", "No", "Y", "n", "TRUE", "0", None] * 3})
    plan = fit(frame, DEFAULTS)
    assert plan.columns == ("x=yes", "x=(missing)")
    assert plan.apply(frame)[:7, 0].tolist() == [1, 0, 1, 0, 1, 0, 0]
    # A word that is neither is unknown, and no error.
    assert 0 < plan.apply(pl.DataFrame({"x": ["maybe"]}))[0, 0] < 1
    others = pl.DataFrame({"x": ["n", "t", "o", "N"] * 3})
    assert fit(others, DEFAULTS).columns == ("x=o", "x=t")


# --- stored, and the same for any source ---------------------------------------------------------

MESSY = pl.DataFrame(
    {
        "amount": [f"{n}.{n:03},50 €" for n in range(1, 41)],
        "open": [f"{n}.{n:03}" if n > 4 else str(n) for n in range(1, 41)],
        "since": [f"{1 + n:02}.03.2026" if n % 2 else f"2026/03/{1 + n:02}" for n in range(20)] * 2,
        "city": ["Ulm", "ulm", "Bonn", None] * 10,
        "zip": [f"0{n % 4}" for n in range(40)],
        "member": ["yes", "N", "y", "no"] * 10,
    }
)


def test_what_was_learnt_is_stored_and_used_for_one_row():
    plan = fit(MESSY, DEFAULTS)
    again = Preparation.from_json(json.loads(json.dumps(plan.to_json())))
    wanted = plan.apply(MESSY)
    for row in range(0, 40, 7):
        np.testing.assert_array_equal(again.apply(MESSY[row]), wanted[[row]])


def test_any_source_gives_the_same_preparation(tmp_path):
    rows = np.arange(40)
    train, rest = (
        ChosenRows(RowIds.numbered(30), rows[:30]),
        ChosenRows(RowIds.numbered(10), rows[30:]),
    )
    MESSY.write_csv(tmp_path / "a.csv")
    (tmp_path / "parts").mkdir()
    for number, part in enumerate(MESSY.iter_slices(17)):
        part.write_parquet(tmp_path / "parts" / f"{number}.parquet")
    tables: list[Columns] = [
        MESSY,
        TableSource.at(tmp_path / "a.csv").frame(),
        converted(tmp_path / "a.csv", tmp_path / "converted"),
        open_parquet(tmp_path / "parts"),
    ]
    whole = fit(MESSY, DEFAULTS, rows=rows[:30])
    assert len(whole.columns) > 6
    for table in tables:
        plan, (trained, held_out) = fit_and_prepare(table, DEFAULTS, [train, rest])
        assert plan == whole
        np.testing.assert_array_equal(trained.values, whole.apply(MESSY[:30]))
        np.testing.assert_array_equal(held_out.values, whole.apply(MESSY[30:]))


def test_words_for_a_missing_value_hold_for_typed_tables_too(tmp_path):
    frame = pl.DataFrame(
        {"id": ["soon", *map(str, MANY)], "x": ["soon", *(f"€ {n}.5" for n in MANY)]}
    )
    frame.write_parquet(tmp_path / "a.parquet")
    for source in (frame, tmp_path / "a.parquet"):
        table = TableSource.at(source, Dialect(na_values=("soon",))).open(text=["id"])
        assert table["id"].null_count() == 0
        assert fit(table.select(["x"]), DEFAULTS).columns == ("x", "x=(missing)")
        with refused(ColumnError, names="na_values"):
            fit(TableSource.at(source).open().select(["x"]), DEFAULTS)


def test_empty_text_among_numbers_and_dates_is_missing():
    np.testing.assert_array_equal(read(["1,5", "", " ", "2,5"]), [1.5, np.nan, np.nan, 2.5])
    np.testing.assert_array_equal(read(["02.01.1970", ""]), [1, np.nan])


# --- repeated ids --------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from(["a", "A", "b", "B ", "c"]), min_size=1, max_size=9),
    st.sampled_from(["first", "last"]),
    st.sampled_from(["none", "case", "case,trim"]),
)
def test_one_row_of_each_id_is_taken(names, duplicates, how):
    normalisation = Normalisation.parse(how)
    plain = [normalisation.one(name) for name in names]
    places = {name: at for at, name in enumerate(plain)}
    if duplicates == "first":
        places = {name: plain.index(name) for name in plain}
    distinct = DistinctIds.from_values(names, duplicates, normalisation)
    rows = [*range(len(names))] if distinct.rows is None else distinct.rows.tolist()
    assert rows == sorted(places.values())
    assert distinct.own_ids.series.to_list() == [names[row] for row in rows]
    assert distinct.common.series.to_list() == [plain[row] for row in rows]
    if len(rows) < len(names):
        with refused(RowIdError, names="duplicates"):
            DistinctIds.from_values(names, "error", normalisation)


def test_missing_ids_are_no_duplicates():
    with refused(RowIdError):
        DistinctIds.from_values(["a", None, None, "a"], "first")
