"""The comparison with SPU: real processes on either side, and what is made of their figures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from taciturn.__main__ import run
from taciturn.errors import ConfigError
from taciturn.families.binomial import sigmoid
from taciturn.protocol.mutual_table import shared_sigmoid
from taciturn.protocol.scales import Scales
from taciturn.report.markdown import render
from taciturn_paper import against_spu
from taciturn_paper.against_spu import Cheetah, Contender, Lap, Ours, Problem, figures, walk
from taciturn_paper.report.benchmarks import bench_page, comparison
from taciturn_paper.tasks import Record
from tests.expected import refused
from tests.system import spu_python


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Two iterations."""
    return Problem.load(epochs=1, batch_size=256)


@pytest.mark.slow  # a measurement, of some seconds
@pytest.mark.parametrize("mechanism", ["mutual", "sealed"])
def test_ours_trains_the_reference_between_two_processes(problem, mechanism):
    lap = Ours(mechanism).lap(problem)
    assert np.abs(lap.weights - problem.optimum).max() < 0.1 < np.abs(problem.optimum).max()
    assert 0 < lap.first_epoch <= lap.processor_seconds
    # A key alone has more.
    assert min(lap.bytes_to_alice, lap.bytes_to_bob) > 100 << 10
    assert lap.started > 0.1
    error = np.abs(lap.walked - sigmoid(walk())).max()
    # The agreed 3e-3, and roundings.
    assert error < 4e-3
    assert (error == 0) == (mechanism == "sealed")


def test_the_walk_has_the_roundings_of_a_training(problem):
    agreed, rows = problem.terms("mutual").agreement, problem.data.labels_train.rows
    function = shared_sigmoid(Scales.for_shared_table(agreed, rows), agreed, rows)
    errors = against_spu.walked_sigmoid(problem) - function.sigmoid(walk())
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(function.rounding, rel=0.2)


def test_spu_trains_the_same_batches(problem):
    """With a sigmoid that is a straight line, so that NumPy tells what must come out."""
    lap = Cheetah(spu_python(), "t1").lap(problem)
    tables = problem.tables
    rows = np.hstack([tables.alice, tables.bob])
    weights = np.zeros(rows.shape[1])
    for batch in problem.batches:
        residues = 0.5 + 0.25 * rows[batch] @ weights - tables.labels[batch]
        weights -= problem.batch_terms.rate.at(0) / len(batch) * rows[batch].T @ residues
    # 18 binary places, some hundred roundings of which each may be off by a last place.
    assert np.abs(lap.weights - weights).max() < 1e-3 < np.abs(weights).max()
    assert np.abs(lap.walked - (0.5 + 0.25 * walk())).max() < 1e-3
    assert min(lap.bytes_to_alice, lap.bytes_to_bob) > 1 << 20
    assert min(lap.processor_seconds, lap.started, lap.compiled) > 0.1


@pytest.mark.parametrize("python", [None, Path("no/such/python"), Path(sys.executable)])
def test_a_python_without_spu_is_refused_with_the_way_to_one(python):
    with refused(ConfigError, names="paper/spu-requirements.txt"):
        against_spu.run(python, announce=print)
    assert (Path(__file__).parents[2] / "paper" / "spu-requirements.txt").is_file()


def lap(who: Contender, processor: float, error: float, problem: Problem) -> Lap:
    weights, walked = who.expected(problem) + error, sigmoid(walk()) + error
    return Lap(9.0, processor, processor, 5 << 20, 3 << 20, 1.5, 0.5, weights, walked)


@pytest.fixture(scope="module")
def record(problem: Problem) -> Record:
    """A comparison with figures of our own making."""
    entrants: list[tuple[Contender, float]]
    entrants = [(Ours("mutual"), 3.0), (Cheetah(Path("python"), "real"), 45.0)]
    return {
        "versions": {"spu": "0.9.5"},
        "cores": 2,
        "load_before": 0.5,
        "load_after": 1.0,
        "repeats": 1,
        "shapes": [against_spu.shape_of(problem)],
        "runs": [figures(who, problem, [lap(who, took, 0.01, problem)]) for who, took in entrants],
    }


def test_tables_have_the_ratio_and_who_sees_what(record):
    text = render(bench_page("SPU", comparison(record), "taciturn bench --against spu"))
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    (spu,) = (cells for cells in rows if cells[:2] == ["spu, real", "45.00"])
    assert spu[2:] == ["15.0", "–", "9.0", "5.0 MiB", "3.0 MiB", "1.5 + 0.5"]
    assert any(cells[:1] == ["sealed"] and all(cells) for cells in rows)


def test_the_command_takes_its_python_from_the_environment(
    record: Record, monkeypatch, tmp_path, capsys
):
    asked: list[object] = []

    def compared(python: Path | None, **named: object) -> Record:
        asked.extend([python, named["repeats"], named["quick"]])
        return record

    monkeypatch.setattr(against_spu, "run", compared)
    monkeypatch.setenv("TACITURN_SPU_PYTHON", "somewhere/python")
    report = tmp_path / "spu.md"
    assert run(["bench", "--against", "spu", "--json", "--report", str(report)]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == record["runs"]
    assert "| spu, real | 45.00 |" in report.read_text(encoding="utf-8")
    assert asked == [Path("somewhere/python"), 3, False]
