"""Normalising ids: what each name does, and that two ids which meet are named."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.ids import STEPS, Normalisation, RowIds
from taciturn.data.spellings import Spelling, spellings
from taciturn.errors import ConfigError, RowIdError
from tests.expected import refused
from tests.modules import module_of


@pytest.mark.parametrize(
    ("how", "text", "expected"),
    [
        ("none", " Ann ", " Ann "),
        ("trim", " Ann ", "Ann"),
        ("case", "Straße", "strasse"),
        ("case", "ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("nfkc", "ﬁn①", "fin1"),
        ("nfkc", "e\u0301", "é"),
        ("trim,case,nfkc", " ＡNN ", "ann"),
        ("zeros", "007", "7"),
        ("zeros", "000", "0"),
        ("zeros", "0x1f", "0x1f"),
        ("zeros", " 007", " 007"),
        ("trim,zeros", " 007", "7"),
        # A compatibility form may begin with a blank: trimming comes last.
        ("trim,nfkc", "´x", "\u0301x"),
    ],
)
def test_each_name_does_what_it_says(how, text, expected):
    assert Normalisation.parse(how).one(text) == expected


@given(
    st.lists(
        st.one_of(
            st.text(max_size=6),
            st.text("aAzZ0129 .-Ⅷⓐ", max_size=6),
            st.from_regex(r" ?0*[0-9]* ?", fullmatch=True),
        ),
        max_size=20,
    ),
    st.sets(st.sampled_from(STEPS), min_size=1),
)
def test_many_at_a_time_are_normalised_as_each_alone(texts, steps):
    how = Normalisation.parse(",".join(steps))
    series = pl.Series(texts, dtype=pl.String)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module_of(Normalisation), "_BLOCK", 7)
        assert how.series(series).to_list() == [how.one(text) for text in texts]


def test_names_in_any_order_are_the_same_choice():
    assert Normalisation.parse("case, trim") == Normalisation.parse("trim,case")
    assert str(Normalisation.parse("case,trim")) == "trim,case"


@pytest.mark.parametrize("text", ["", "upper", "trim,,case", "none,trim"])
def test_unknown_names_are_refused(text):
    with pytest.raises(ConfigError) as raised:
        Normalisation.parse(text)
    assert raised.value.setting == "normalise_ids"


def test_two_ids_that_become_one_are_both_named():
    ids = RowIds.from_values(["bea", "Ann", "cy", "ANN"])
    with refused(RowIdError, names=("'Ann'", "'ANN'", "case")) as raised:
        Normalisation.parse("case").apply(ids)
    assert re.findall(r"\d+", raised.value.where) == ["2", "4"]
    with refused(RowIdError, names=("'bea'", "'Bea'", 2)):
        Normalisation.parse("case").apply(RowIds.from_values(["bea", "Bea", "BEA", "cy", "Cy"]))


printable = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)


@given(printable, st.sets(st.sampled_from(STEPS), min_size=1))
def test_normalising_twice_changes_nothing(text, names):
    how = Normalisation.parse(",".join(sorted(names)))
    once = how.one(text)
    assert how.one(once) == once


def test_a_table_tells_which_normalisation_would_change_how_many_of_its_ids():
    ids = RowIds.from_values(["Ann", "ANN", "bea ", " x", "007", "8", "８", "C1", "c2"])
    assert spellings(ids, Normalisation()) == (
        Spelling("trim", 2, 0, mixed=True),
        Spelling("case", 3, 1, mixed=True),
        Spelling("nfkc", 1, 1, mixed=True),
        Spelling("zeros", 1, 0, mixed=True),
    )
    # What is chosen already is not named again.
    chosen = Normalisation.parse("trim,nfkc,zeros")
    ids = RowIds.from_values(["Ann", "bea"])
    assert [spelling.normalise_ids for spelling in spellings(ids, chosen)] == ["case"]


@pytest.mark.parametrize("ids", [["007", "008", "123"], ["AX1", "BX2", "77"]])
def test_a_table_that_spells_its_ids_in_one_way_is_not_called_mixed(ids):
    (spelling,) = spellings(RowIds.from_values(ids), Normalisation())
    assert spelling.changes == 2
    assert not spelling.mixed


@given(st.lists(printable, min_size=1, max_size=8, unique=True), st.sampled_from(STEPS))
def test_what_would_change_is_counted_as_normalising_counts_it(texts, step):
    ids, chosen = RowIds.from_values(texts), Normalisation.parse(step)
    after = [chosen.one(text) for text in texts]
    changes = sum(old != new for old, new in zip(texts, after, strict=True))
    merges = len(texts) - len(set(after))
    named = {
        one.normalise_ids: (one.changes, one.merges) for one in spellings(ids, Normalisation())
    }
    assert named.get(step, (0, 0)) == (changes, merges)
