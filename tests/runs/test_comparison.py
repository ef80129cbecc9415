"""Runs side by side: what differs, by how much, which is best, and whether that is fair."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import ConfigError
from taciturn.files import to_json
from taciturn.results.manifest import DataFacts, HostFacts
from taciturn.results.run_comparison import FigureRow, RunComparison
from taciturn.results.runs import Runs
from taciturn.results.saved import of_record
from taciturn.results.serialise import Result
from taciturn.runs.collection import chosen
from taciturn.runs.comparison import compare_runs
from taciturn.runs.figures import FIGURES
from tests.report.samples import TRAINING, metrics
from tests.results.test_folder import PLAN
from tests.runs.folders import place, place_all


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return place_all(tmp_path_factory.mktemp("all"))


def compared(folder: Path, *names: str) -> RunComparison:
    return compare_runs(chosen(names, folder).parts)


def row(comparison: RunComparison, name: str) -> FigureRow:
    (one,) = [figure for figure in comparison.figures if figure.name == name]
    return one


def two(folder: Path, result: Result | None = None, **changes: Any) -> RunComparison:
    """A training, and the same with something changed."""
    place(folder, "a", Runs((TRAINING,)))
    place(folder, "b", result or Runs((TRAINING,)), **changes)
    return compared(folder, "a", "b")


def test_the_same_run_twice_differs_in_nothing(tmp_path):
    same = two(tmp_path)
    assert same.unfair == ()
    assert same.settings == ()
    for figure in same.figures:
        assert figure.values[0] == figure.values[1]
        assert not any(figure.best)
        assert figure.differences[1] in (0.0, None)


def test_figures_have_their_difference_from_the_first_and_the_best_is_marked(tmp_path):
    better = replace(TRAINING, test=metrics(0.97, 0.995), seconds=1.4, mechanism="sealed")
    result = two(tmp_path, Runs((better,)))
    auc = row(result, "AUC, held-out")
    assert auc.values == (TRAINING.test.auc, 0.995)
    assert auc.differences[0] is None
    assert auc.differences[1] == pytest.approx(0.995 - TRAINING.test.auc)
    assert auc.best == (False, True)
    assert row(result, "time").best == (False, True)
    # Of an infinite total there is no difference, and none is the best of two alike.
    total = row(result, "label epsilon, total")
    assert (total.values, total.differences) == ((math.inf, math.inf), (None, None))
    assert total.best == (False, False)
    assert [(one.name, one.values) for one in result.settings] == [
        ("mechanism", ("none", "sealed"))
    ]
    assert of_record(json.loads(to_json(result.to_dict()))) == result


def test_less_is_better_of_losses_and_of_leaks(folder):
    result = compared(folder, "audit", "quiet")
    assert row(result, "beyond the control, labels shuffled").best == (False, True)
    assert row(result, "label epsilon, total").best == (False, True)
    assert row(result, "AUC, held-out").best == (True, False)
    assert row(result, "known without messages, labels shuffled").best == (False, False)


def test_nothing_is_best_where_no_attack_applies_to_one(folder):
    """Not to be attacked at all is better than the least leak, and no number."""
    result = compared(folder, "compare", "audit")
    assert [side.part for side in result.sides] == ["sealed", "add:5", ""]
    leak = row(result, "best attack, labels shuffled")
    assert leak.values == (None, 0.9, 1.0)
    assert leak.best == (False, False, False)
    assert leak.differences[:2] == (None, None)
    assert leak.differences[2] == pytest.approx(0.1)


def test_a_party_and_an_audit_have_the_figures_that_they_have(folder):
    result = compared(folder, "alice", "bob", "dry-run", "train")
    assert row(result, "AUC, held-out").values == (None, 0.93, None, TRAINING.test.auc)
    # What each side sent went to the other.
    assert row(result, "bytes to Alice").values[:2] == (10.0, 30.0)
    assert row(result, "bytes to Bob").values[:2] == (30.0, 10.0)


def test_every_figure_that_a_result_gives_is_in_the_list(folder):
    known = {figure.key for figure in FIGURES}
    for part in chosen([], folder).parts:
        assert set(part.values) <= known, part.entry.name


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": replace(PLAN.data, name="loans")}, "The data differ: breast-cancer, loans."),
        ({"version": "0.3.0"}, "Different versions made them: 0.2.0, 0.3.0."),
        ({"host": HostFacts("3.13.0", "Linux", 2)}, "different machines"),
        (
            {"data": replace(PLAN.data, columns={"alice": 15, "bob": 15})},
            None,  # the other run's columns at Bob are not known
        ),
    ],
)
def test_what_the_manifests_say_of_fairness(tmp_path, change, words):
    unfair = two(tmp_path, **change).unfair
    assert unfair == () if words is None else words in " ".join(unfair)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 8}, "The seeds differ, and with them the rows that are held out: 7, 8."),
        ({"permute_labels": True}, "labels shuffled beforehand"),
    ],
)
def test_what_the_settings_say_of_fairness(tmp_path, change, words):
    unfair = two(tmp_path, Runs((replace(TRAINING, **change),))).unfair
    assert [sentence for sentence in unfair if words in sentence]
    assert len(unfair) == 1


def facts(**changes: Any) -> DataFacts:
    return replace(PLAN.data, **changes)


def test_another_table_of_the_same_name_and_other_rows_are_not_fair(tmp_path):
    for name, digest, rows in (("a", "1", 455), ("b", "2", 455), ("c", "1", 400)):
        data = facts(digests={"file": digest}, rows=rows)
        place(tmp_path, name, Runs((TRAINING,)), data=data)
    assert "their digests differ" in " ".join(compared(tmp_path, "a", "b").unfair)
    assert "455 + 114, 400 + 114" in " ".join(compared(tmp_path, "a", "c").unfair)


def test_without_a_seed_every_run_holds_out_other_rows(tmp_path):
    free = Runs((replace(TRAINING, seed=None),))
    place(tmp_path, "a", free)
    place(tmp_path, "b", free)
    assert compared(tmp_path, "a", "b").unfair == (
        "No seed was given: every run has held out other rows.",
    )


def test_simulations_beside_a_real_session_are_not_fair(folder):
    assert "one side's part in a real session" in " ".join(compared(folder, "train", "bob").unfair)


@pytest.mark.parametrize("names", [[], ["train"]])
def test_fewer_than_two_are_no_comparison(folder, names):
    with pytest.raises(ConfigError, match="needs two runs"):
        compare_runs(chosen(names, folder).parts[: len(names)])


def test_more_than_a_page_holds_are_refused(folder):
    (part,) = chosen(["train"], folder).parts
    with pytest.raises(ConfigError, match="51 runs are too many"):
        compare_runs([part] * 51)
