"""The comparison of the solvers: real processes, real figures, and what is made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from taciturn.numerics.metrics import Metrics
from taciturn.report.markdown import render
from taciturn.settings.schema import SolverName
from taciturn_paper import solvers
from taciturn_paper.report.benchmarks import bench_page, solver_tables
from taciturn_paper.sides import LINKS, Course, Effort, Link, measure


def effort(number: float) -> Effort:
    return Effort(number, 2 * number, round(100 * number), round(50 * number), round(number))


COURSE = Course(
    steps=tuple(map(effort, (5.0, 7.0, 9.5))), whole=effort(10.0), stages={}, peak_bytes={}
)


@pytest.fixture(scope="module")
def small() -> solvers.Problem:
    """A few rows of a synthetic table."""
    return solvers.made(400, 3, held_out=200)


def test_newton_has_passed_where_loss_and_auc_are_both_as_good(small):
    start = small.tested(np.zeros(3), np.zeros(1))
    goal = replace(start, loss=0.5, auc=0.8)
    reached: dict[int, Metrics] = {
        1: replace(start, loss=0.4, auc=0.7),
        2: replace(start, loss=0.6, auc=0.9),
        3: replace(start, loss=0.5, auc=0.8),
    }
    assert solvers.passes_to(goal, reached.__getitem__, 3) == 3
    assert solvers.passes_to(goal, reached.__getitem__, 2) is None


def test_newton_is_as_good_as_sgd_after_a_few_passes():
    problem = solvers.made(2000, 5, held_out=2000)
    goal = solvers.target(problem)
    assert goal.loss < np.log(2)
    # Ten epochs are short of the optimum, which so few columns do not overfit.
    assert solvers.passes_to(goal, lambda passes: solvers.after_passes(problem, passes), 3)


@pytest.mark.slow  # a measurement, of some seconds
def test_two_processes_train_and_report_every_pass(small):
    agreed = small.terms("newton").agreement.with_rounds(3)
    course = measure(agreed, small.tables(), Link("near", 0.02, 100.0))
    first, between, last = course.steps
    assert course.whole.round_trips > last.round_trips > first.round_trips > 0
    assert course.whole.bytes_to_alice > last.bytes_to_alice > first.bytes_to_alice > 0
    assert 0 < first.processor_seconds < last.processor_seconds <= course.whole.processor_seconds
    # Every round trip has crossed the link both ways.
    assert course.whole.seconds > 0.02 * course.whole.round_trips
    assert set(course.stages) == {"encrypt", "products", "decrypt", "solve", "alice besides"}
    assert all(seconds > 0 for seconds in course.stages.values())
    assert min(course.peak_bytes.values()) > 10 << 20
    size = solvers.Size(400, 3, course).to_dict()
    assert size["rows_per_second"] == pytest.approx(400 / (between.seconds - first.seconds))


def test_tables_fit_a_terminal_and_mark_what_was_extrapolated(small):
    metrics = small.tested(np.zeros(3), np.zeros(1))
    chosen: list[tuple[SolverName, int]] = [("sgd", 13), ("newton", 3)]
    runs = [
        solvers.SolverRun(small, LINKS[0], solver, steps, 3, True, COURSE.after(steps), metrics)
        for solver, steps in chosen
    ]
    record = {
        "cores": 2,
        "load_before": 0.5,
        "load_after": 1.25,
        "solvers": [run.to_dict() for run in runs],
        "sizes": [],
        "missing": ["census-income"],
    }
    text = render(bench_page("Trainings", solver_tables(record), "taciturn bench --trainings"))
    assert "| 400 x 3 | sgd | 13\\* | 30.0 | 60.0 |" in text
    assert "| 400 x 3 | newton | 3 | 10.0 | 20.0 |" in text
    assert "| 400 x 3 | LAN | 3 | 3.0 | 3.0 | 3.0 | 3.0 |" in text
    assert "census-income" in text
    assert len(solver_tables(record)) == 5
