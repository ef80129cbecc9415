"""Which runs a folder has, in which order, and what is said of each."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from risk.tests.runs.folders import place, place_all

import taciturn
from taciturn.errors import FileError
from taciturn.files import to_json
from taciturn.numerics.label_metrics import class_metrics
from taciturn.results.folder import RESULT, from_record
from taciturn.results.runs import Runs
from taciturn_risk.runs.collection import ORDERS, RunFilter, collect, named
from taciturn_risk.runs.result import RunList
from tests.expected import refused
from tests.report.samples import TRAINING, metrics


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return place_all(tmp_path_factory.mktemp("all"))


def entry(folder: Path, name: str, part: str = "") -> Any:
    (one,) = [e for e in collect(folder).list.listed if (e.name, e.part) == (name, part)]
    return one


def test_a_folder_lists_every_kind_of_result(folder):
    listed = collect(folder).list
    assert [(one.name, one.part) for one in listed.listed] == [
        ("alice", ""),
        ("audit", ""),
        ("bob", ""),
        ("compare", "sealed"),
        ("compare", "add:5"),
        ("demo", "none"),
        ("demo", "add"),
        ("dry-run", ""),
        ("quiet", ""),
        ("seeds", ""),
        ("train", ""),
    ]
    assert listed.unreadable == ()
    assert from_record(json.loads(to_json(listed.to_dict()))) == listed


def test_an_audit_is_listed_with_what_the_best_attack_told_of_shuffled_labels(folder):
    leak = entry(folder, "audit").leakage
    assert (leak.labels, leak.attack, leak.shown) == ("shuffled", "exact-solve", True)
    assert leak.beyond == pytest.approx(1.0 - 0.6242)
    silent = entry(folder, "quiet").leakage
    assert not silent.shown
    assert silent.beyond < 0
    assert entry(folder, "audit").verdict


def test_where_no_attack_applies_there_is_no_figure_of_one(folder):
    leak = entry(folder, "compare", "sealed").leakage
    assert (leak.attack, leak.value, leak.beyond, leak.shown) == (None, None, None, False)
    assert entry(folder, "compare", "add:5").leakage.beyond == pytest.approx(0.28)
    assert entry(folder, "compare", "add:5").forecast


def test_alices_run_has_no_figure_that_depends_on_a_label(folder):
    hers, his = entry(folder, "alice"), entry(folder, "bob")
    assert (hers.auc, hers.label_epsilon, hers.leakage) == (None, None, None)
    assert (his.auc, his.label_epsilon) == (0.93, math.inf)
    assert hers.private
    assert his.private


# --- which, and in which order ----------------------------------------------------------------


def names(runs: RunList) -> list[str]:
    return [one.name for one in runs.listed]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RunFilter(mechanism="sealed"), ["compare"]),
        (RunFilter(kind="party"), ["alice", "bob"]),
        (RunFilter(kind="audit", mechanism="add"), ["quiet"]),
        (RunFilter(dataset="loans"), []),
    ],
)
def test_filters_leave_what_is_wanted(folder, wanted, expected):
    assert names(collect(folder, wanted).list) == expected


def test_runs_are_sorted_and_what_has_no_figure_comes_last(tmp_path):
    for name, auc, day in (("a", 0.7, 3), ("b", 0.9, 1), ("c", math.nan, 2)):
        run = replace(TRAINING, metrics=replace(TRAINING.metrics, test=metrics(0.5, auc)))
        place(tmp_path, name, Runs((run,)), started=f"2026-11-0{day}T00:00:00+00:00")
    assert names(collect(tmp_path).list) == ["b", "c", "a"]
    orders = {sort: names(collect(tmp_path, RunFilter(sort=sort)).list) for sort in ORDERS}
    assert orders["auc"] == ["b", "a", "c"]
    assert orders["name"] == ["a", "b", "c"]
    assert orders["time"] == ["b", "c", "a"]
    # Ties keep the order of time.
    assert orders["epsilon"] == ["b", "c", "a"]


def test_a_run_is_named_by_a_path_a_name_or_a_part_that_only_it_has(folder):
    for run in ("train", str(folder / "train"), "trai"):
        (one,) = named([run], folder)
        assert one.path == folder / "train"
    with refused(FileError, names=("tarin", "train")):
        named(["tarin"], folder)
    # Alice, audit and more.
    with refused(FileError, names=("alice", "audit")):
        named(["a"], folder)


def test_a_broken_folder_is_named_and_the_others_are_shown(tmp_path):
    place(tmp_path, "good", Runs((TRAINING,)))
    bad = place(tmp_path, "bad", Runs((TRAINING,)))
    (bad / RESULT).write_text("{}")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / ".half.new").mkdir()
    runs = collect(tmp_path).list
    assert names(runs) == ["good"]
    (one,) = runs.unreadable
    assert one.file == str(bad / RESULT)
    assert one.reason


def test_python_has_the_same_as_a_frame(folder):
    runs = taciturn.runs(folder, kind="audit")
    frame = runs.to_pandas()
    assert list(frame["name"]) == ["audit", "quiet"]
    assert list(frame["leak_attack"]) == ["exact-solve", "likelihood"]
    assert frame["auc"][0] == class_metrics(TRAINING.metrics.test).auc
    assert "exact-solve" in (runs._repr_html_() or "")
    with pytest.raises(TypeError):
        runs.plot()
