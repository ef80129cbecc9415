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
from taciturn.results.folder import from_record, load
from taciturn.results.runs import Runs
from taciturn.results.serialise import EMPTY, INLINE, OMITTED, Result, key, read, record_of
from taciturn.results.training import TrainingRun
from taciturn_audit.results.audit import AttackScore, Control, Evidence
from taciturn_audit.results.runs import AuditResult
from tests.report.samples import AUDITS, TRAINING, leaking_run, several


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


@pytest.mark.parametrize("name", [name for name in AUDITS if name != "bare"])
def test_an_audit_reads_back_as_it_was(name):
    audit = AUDITS[name]()
    assert again(audit) == audit


def test_what_is_not_a_number_reads_back_as_that():
    result = again(AUDITS["bare"]())
    assert isinstance(result, AuditResult)
    assert math.isnan(result.findings.attacks[0].auc)
    assert result.to_dict() == AUDITS["bare"]().to_dict()


def test_a_file_reads_back_or_says_why_not(tmp_path):
    path = tmp_path / "result.json"
    path.write_text(to_json(several().to_dict()))
    assert load(path) == several()
    path.write_text("{")
    with pytest.raises(DataError) as raised:
        load(path)
    assert raised.value.where == str(path)
    with pytest.raises(DataError, match="nowhere"):
        load(tmp_path / "nowhere")
    path.write_text("{}")
    with pytest.raises(DataError) as raised:
        load(path)
    assert raised.value.where == str(path)


def test_a_training_is_not_taken_for_an_audit_and_a_summary_needs_its_runs():
    record = leaking_run().to_dict()
    del record["messages"]
    with pytest.raises(DataError, match="messages"):
        from_record(record)
    summary = several().to_dict()
    summary["seeds"] = 4
    with pytest.raises(DataError, match="seeds"):
        from_record(summary)
    summary = several().to_dict()
    summary["runs"][1]["ledger"]["delta"] = "small"
    with pytest.raises(DataError, match=r"runs\[1\].ledger.delta"):
        from_record(summary)


def test_values_keep_their_redacted_words():
    scored = AttackScore("a", 1, 1, 1, 1, 1, 1, 1, 0, None, 0, "")
    assert repr(Runs((TRAINING,))) == "Runs(version=None, command=None)"
    assert "preparation" not in repr(TRAINING)
    assert "calibration" not in repr(TRAINING)
    assert repr(Control("prior", 0.5, 0.5)) == "Control(name='prior', accuracy=0.5, auc=0.5)"
    assert record_of(scored)["decided_correct"] is None
    assert record_of(Evidence(math.inf, 0, "a", 1, 1, 1, 0.05, False))["claim"] == "inf"
    assert isinstance(read(TrainingRun, record_of(TRAINING)), TrainingRun)
