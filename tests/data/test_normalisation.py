"""Normalising ids: what each name does, and that two ids which meet are named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.data.ids import RowIds
from taciturn.data.normalisation import STEPS, Normalisation
from taciturn.errors import ConfigError, RowIdError


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
        # A compatibility form may begin with a blank: trimming comes last.
        ("trim,nfkc", "´x", "\u0301x"),
    ],
)
def test_each_name_does_what_it_says(how, text, expected):
    assert Normalisation.of(how).one(text) == expected


def test_names_in_any_order_are_the_same_choice():
    assert Normalisation.of("case, trim") == Normalisation.of("trim,case")
    assert str(Normalisation.of("case,trim")) == "trim,case"


@pytest.mark.parametrize("text", ["", "upper", "trim,,case", "none,trim"])
def test_unknown_names_are_refused(text):
    with pytest.raises(ConfigError) as raised:
        Normalisation.of(text)
    assert raised.value.setting == "normalise"


def test_two_ids_that_become_one_are_both_named():
    ids = RowIds.of(["bea", "Ann", "cy", "ANN"])
    with pytest.raises(RowIdError, match="the ids 'Ann' and 'ANN' are the same once") as raised:
        Normalisation.of("case").apply(ids)
    assert raised.value.where == "rows 2 and 4"


def test_an_id_that_becomes_empty_is_refused():
    # A lone spacing accent decomposes to a blank and a mark; a full-width blank is refused before.
    with pytest.raises(RowIdError):
        RowIds.of(["\u3000"])


printable = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)


@settings(max_examples=150)
@given(printable, st.sets(st.sampled_from(STEPS), min_size=1))
def test_normalising_twice_changes_nothing(text, names):
    how = Normalisation.of(",".join(sorted(names)))
    once = how.one(text)
    assert how.one(once) == once


@settings(max_examples=50)
@given(st.lists(printable, min_size=1, max_size=20))
def test_a_table_is_normalised_row_by_row_or_refused(texts):
    how = Normalisation.of("trim,case,nfkc")
    expected = [how.one(text) for text in texts]
    try:
        normalised = how.apply(RowIds.of(texts))
    except RowIdError:
        assert len(set(expected)) < len(expected) or any(
            not text.strip() or not text.isprintable() for text in [*expected, *texts]
        )
        return
    assert normalised.series.to_list() == expected
