"""A model of counts, amounts or numbers between two parties, from training to exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.errors import ConfigError
from taciturn.families.registry import FAMILIES
from taciturn.jobs.predict.job import PredictJob
from taciturn.jobs.train.result import PartyRun
from taciturn.model.scores_file import StoredScores, scores_path
from taciturn.model.share import ModelShare
from taciturn.model.whole import whole_model
from taciturn.numerics.regression_metrics import RegressionMetrics
from taciturn.party.config import PartyConfig
from tests.expected import refused
from tests.party.sides import run_both, run_jobs, write_config

ROLES = ("alice", "bob")
ROWS, NEW = 240, 30


def write(folder: Path, family: str, mechanism: str) -> dict[str, pl.DataFrame]:
    """Both tables and files; returns the new rows of each side."""
    rng = np.random.default_rng(3)
    ids = [f"p{number:04d}" for number in range(ROWS + NEW)]
    values, years = rng.normal(size=(len(ids), 5)), rng.uniform(0.2, 2.0, len(ids))
    effect = values @ np.array([0.4, -0.3, 0.2, 0.5, -0.2])
    label = {
        "gaussian": 1e5 + 2e4 * (effect + rng.normal(size=len(ids))),
        "poisson": rng.poisson(years * np.exp(effect - 0.5)),
        "gamma": rng.gamma(2.0, years * np.exp(effect + 6)),
    }[family]
    tables = {
        "alice": pl.DataFrame({"id": ids, **{f"a{j}": values[:, j] for j in range(3)}}),
        "bob": pl.DataFrame(
            {"id": ids, "b0": values[:, 3], "b1": values[:, 4], "y": label, "years": years}
        ),
    }
    if family == "gaussian":
        tables["bob"] = tables["bob"].drop("years")
    for role, table in tables.items():
        table[:ROWS].write_csv(folder / f"{role}.csv")
        table[ROWS:].drop("y", strict=False).write_csv(folder / f"new-{role}.csv")
        data = {} if role == "alice" else {"label": "y"}
        if role == "bob" and family != "gaussian":
            data["exposure"] = "years"
        agreement = {
            "mechanism": mechanism,
            "family": family,
            "passes": 6,
            "epochs": None,
            "batch-size": None,
            "learning-rate": None,
            "held-out": 0.25,
        }
        changes: dict[str, Any] = {"agreement": agreement, "data": data}
        write_config(folder, role, **changes)
    return {role: table[ROWS:] for role, table in tables.items()}


@pytest.fixture(
    scope="module",
    params=[("poisson", "sealed"), ("gamma", "none"), ("gaussian", "sealed")],
    ids=" in ".join,
)
def trained(request, tmp_path_factory):
    family, mechanism = request.param
    folder = tmp_path_factory.mktemp(family)
    new = write(folder, family, mechanism)
    ends = run_both(folder)
    assert ends.records
    return folder, family, new, ends.bob


def shares(folder: Path) -> list[ModelShare]:
    return [ModelShare.load(folder / f"{role}.model.json") for role in ROLES]


def test_bob_has_the_figures_of_the_family(trained):
    _, family, _, run = trained
    assert isinstance(run, PartyRun)
    held_out = run.metrics.held_out
    assert isinstance(held_out, RegressionMetrics)
    assert held_out.family == family
    assert 0 < held_out.deviance_explained < 1
    assert run.metrics.threshold is None
    assert run.convergence.diverged is False
    again = PartyRun.from_record(run.to_dict())
    assert again == run


def test_alices_file_says_nothing_of_the_labels_unit(trained):
    alice, bob = shares(trained[0])
    assert not alice.response
    assert {*bob.response} == {"location", "scale"}
    assert alice.agreement["family"] == trained[1]


def test_a_prediction_has_means_and_linear_predictors(trained):
    folder, family, new, _ = trained
    jobs = {
        role: PredictJob(folder / f"{role}.model.json", folder / f"new-{role}.csv")
        for role in ROLES
    }
    ends = run_jobs(folder, jobs)
    rows: Any = ends.bob.rows()
    alice, bob = shares(folder)
    predictor = whole_model(alice, bob).scores(new["alice"], new["bob"])
    if family != "gaussian":
        predictor = predictor + np.log(new["bob"]["years"].to_numpy())
    slack = 5e-3 * bob.response["scale"]
    np.testing.assert_allclose([row.score for row in rows], predictor, atol=slack)
    means = FAMILIES[family].mean(np.array([row.score for row in rows]))
    np.testing.assert_allclose([row.mean for row in rows], means)
    assert ends.bob.result.threshold is None
    config = PartyConfig.read(folder / "bob.toml")
    with refused(ConfigError):
        PredictJob(folder / "bob.model.json", folder / "new-bob.csv", threshold=0.5).prepare(config)


def test_the_kept_scores_come_back(trained):
    folder, family, _, _ = trained
    kept = StoredScores.load(scores_path(folder / "bob.model.json"))
    assert kept.held_out is not None
    assert kept.held_out.family == family
    assert kept.held_out.beside == ([] if family == "gaussian" else ["exposure"])


def test_both_sides_must_agree_on_the_family(tmp_path):
    write(tmp_path, "poisson", "sealed")
    text = (tmp_path / "alice.toml").read_text()
    (tmp_path / "alice.toml").write_text(text.replace('"poisson"', '"gamma"'))
    ends = run_both(tmp_path)
    assert "family" in str(ends.bob)
    assert "family" in str(ends.alice)
