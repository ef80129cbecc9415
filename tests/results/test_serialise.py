"""Results as JSON records and back: nothing is lost, made up or ignored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError
from taciturn.files import to_json
from taciturn.results.folder import from_record
from taciturn.results.reading import read
from taciturn.results.serialise import EMPTY, INLINE, OMITTED, Result, key, record_of


@dataclass(frozen=True)
class Inner:
    low: float
    high: float


@dataclass(frozen=True)
class Outer:
    """One field of each kind that results have."""

    name: str
    inner: Inner = field(metadata=INLINE)
    label: int = field(metadata=key("class"))
    side: Literal["left", "right"]
    points: tuple[Inner, ...]
    pair: tuple[float, float] | None
    extra: Inner | None = field(metadata=EMPTY)
    named: Mapping[str, bool]
    last: str | None = field(default=None, metadata=OMITTED)


numbers = st.floats(allow_nan=False)
inners = st.builds(Inner, numbers, numbers)
outers = st.builds(
    Outer,
    st.text(),
    inners,
    st.integers(),
    st.sampled_from(("left", "right")),
    st.lists(inners, max_size=3).map(tuple),
    st.none() | st.tuples(numbers, numbers),
    st.none() | inners,
    st.dictionaries(st.text(), st.booleans(), max_size=2),
    st.none() | st.text(),
)


@given(outers)
def test_what_is_written_is_read_back(outer):
    assert read(Outer, json.loads(to_json(record_of(outer)))) == outer


def test_how_a_record_spells_things():
    outer = Outer("n", Inner(math.inf, math.nan), 3, "left", (Inner(1, -math.inf),), None, None, {})
    assert record_of(outer) == {
        "name": "n",
        "low": "inf",
        "high": None,
        "class": 3,
        "side": "left",
        "points": [{"low": 1, "high": "-inf"}],
        "pair": None,
        "extra": {},
        "named": {},
    }


RECORD = record_of(
    Outer("n", Inner(1.0, 2.0), 3, "left", (Inner(1.0, 2.0),), (1.0, 2.0), None, {"x": True})
)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": 3}, "name"),
        ({"low": "much"}, "low"),
        ({"low": True}, "low"),
        ({"class": 1.5}, "class"),
        ({"class": True}, "class"),
        ({"side": "up"}, "side"),
        ({"points": [{"low": 1.0}]}, "points[0]"),
        ({"points": [{"low": 1.0, "high": 2.0, "more": 1}]}, "more"),
        ({"points": "none"}, "points"),
        ({"points": [3]}, "points[0]"),
        ({"pair": [1.0]}, "pair"),
        ({"named": {"x": 1}}, "named.x"),
        ({"new": 1}, "new"),
        ({"last": 5}, "last"),
    ],
)
def test_what_is_not_such_a_record_is_refused_by_its_place(change, place):
    with pytest.raises(DataError, match=re.escape(place)):
        read(Outer, {**RECORD, **change})


@pytest.mark.parametrize("name", [name for name in RECORD])
def test_no_key_may_be_missing(name):
    rest = {known: value for known, value in RECORD.items() if known != name}
    with pytest.raises(DataError, match=rf"\b{name}\b"):
        read(Outer, rest)


def test_what_is_no_object_is_refused():
    records: tuple[object, ...] = ([], "text", 3, None)
    for record in records:
        with pytest.raises(DataError):
            from_record(record)


# --- results ----------------------------------------------------------------------------------


def again(result: Any) -> Result:
    return from_record(json.loads(to_json(result.to_dict())))
