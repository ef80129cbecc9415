"""Several runs in one result: what of each stands for all."""

from __future__ import annotations

import re
from dataclasses import replace
from statistics import fmean

from taciturn.cli.console import console
from taciturn.report.terminal import render
from taciturn.report.training import training_blocks
from taciturn.results.runs import Runs
from tests.report.samples import TRAINING, metrics


def test_a_figure_that_one_run_has_not_has_no_mean():
    lame = replace(
        TRAINING,
        seed=8,
        metrics=replace(TRAINING.metrics, test=replace(metrics(0.5, 0.5), auc=float("nan"))),
    )
    runs = Runs((TRAINING, lame))
    assert runs.means.test.get("auc") is None
    assert "auc" not in runs.to_dict()["test"]
    assert runs.means.test["accuracy"] == fmean((0.9561, 0.5))


def test_a_bound_that_one_run_has_not_is_none_of_all():
    apart = replace(TRAINING.comparison, weight_bound=None, max_weight_difference=3.0)
    runs = Runs((TRAINING, replace(TRAINING, comparison=apart)))
    assert runs.means.weight_bound is None
    assert runs.means.max_weight_difference == 3.0


def test_what_the_runs_do_not_share_is_the_first_runs_and_says_so():
    """Seeds split the rows anew, so that each prepares its columns in its own way."""
    other = replace(
        TRAINING, seed=8, preparation=("age: numeric",), cost=replace(TRAINING.cost, iterations=12)
    )
    first = replace(TRAINING, preparation=("age: text",))
    runs = Runs((first, other))
    assert "preparation" not in runs.to_dict()
    screen = console()
    with screen.capture() as text:
        screen.print(render(training_blocks(runs)))
    words = " ".join(text.get().split())
    assert re.search(r"age: text \(seed 7\b", words)
    assert re.search(r"290 \w+ \(seed 7\b", words)
