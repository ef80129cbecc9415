"""A model's report: its figures are scikit-learn's and statsmodels', and each side sees its own."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from taciturn.arrays import ByteLabels, FloatArray
from taciturn.errors import ConfigError, FileError
from taciturn.families.binomial import sigmoid
from taciturn.jobs.study.use import use_model
from taciturn.model.scores_file import StoredScores, scores_path
from taciturn.model.share import ModelShare
from taciturn.party.config import PartyConfig
from taciturn.party.observers import remarks_after
from taciturn.party.tables import load_tables
from taciturn.report.terminal import render
from taciturn.results.folder import from_record
from taciturn_risk.scorecard.build import ReportRequest as Question
from taciturn_risk.scorecard.gains import Costs
from taciturn_risk.scorecard.party import party_report as model_report
from taciturn_risk.scorecard.points import Scale
from taciturn_risk.scorecard.result import CoefficientTest, ModelReport
from tests.expected import refused
from tests.party.sides import MECHANISMS, NEWTON, run_both, write_config
from tests.party.studies import run_study, write_study

HERS, HIS = (1, 4, 9), (0, 8)
JOINED = Question(alice_models=(Path("alice.model.json"),), alice_rows=(Path("alice.csv"),))


def write_rows(folder: Path, rows: int) -> None:
    """Columns of breast-cancer that do not determine each other; his with categories."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    ids = [f"p{number:04d}" for number in range(len(data.target))]
    hers = {names[place]: data.data[:, place] for place in HERS}
    his = {names[place]: data.data[:, place] for place in HIS}
    words = np.array(["low", "middle", "high"])[np.digitize(data.data[:, 2], (75, 105))]
    pl.DataFrame({"id": ids, **hers})[:rows].write_csv(folder / "alice.csv")
    frame = pl.DataFrame({"id": ids, **his, "class": words, "sick": data.target})
    frame[:rows].reverse().write_csv(folder / "bob.csv")


Trained = Callable[..., Path]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Trained:
    """Folders of trainings that have ended, one for each kind."""
    made: dict[str, Path] = {}

    def folder(
        mechanism: str, data: dict[str, Any] | None = None, rows: int = 569, **agreed: Any
    ) -> Path:
        name = json.dumps([mechanism, data, rows, agreed])
        if name not in made:
            place = made[name] = tmp_path_factory.mktemp(mechanism)
            write_rows(place, rows)
            agreement = {**MECHANISMS[mechanism], "held-out": 0.3, **agreed}
            for role in ("alice", "bob"):
                output = {"held-out-scores": "held-out.csv"} if role == "bob" else {}
                write_config(place, role, agreement=agreement, data=data or {}, output=output)
            assert run_both(place).records
        return made[name]

    return folder


def reported(folder: Path, question: Question | None = None, role: str = "bob") -> ModelReport:
    asked = question or Question()
    placed = Question(
        **{
            **{name: getattr(asked, name) for name in Question.__slots__},
            "alice_models": tuple(folder / path for path in asked.alice_models),
            "alice_rows": tuple(folder / path for path in asked.alice_rows),
        }
    )
    return model_report(PartyConfig.read(folder / f"{role}.toml"), placed)


def by_column(report: ModelReport) -> dict[tuple[str, str], CoefficientTest]:
    return {(one.side, one.column): one for one in report.coefficients}


@pytest.fixture(scope="module")
def sm() -> Any:
    return pytest.importorskip("statsmodels.api")


@pytest.fixture(scope="module")
def oracle() -> Any:
    return pytest.importorskip("sklearn.metrics")


@dataclass
class Joined:
    """The training rows of both sides, prepared."""

    names: list[tuple[str, str]]
    design: FloatArray
    labels: ByteLabels

    @classmethod
    def of(cls, folder: Path) -> Joined:
        tables = {
            role: load_tables(PartyConfig.read(folder / f"{role}.toml"))
            for role in ("alice", "bob")
        }
        labels = tables["bob"].labels
        assert labels is not None
        names = [(role, column) for role in tables for column in tables[role].train.columns]
        design = np.concatenate([tables[role].train.values for role in tables], axis=1)
        return cls(names, design, labels.values)

    def column(self, side: str, name: str) -> FloatArray:
        values: FloatArray = self.design[:, self.names.index((side, name))]
        return values


SOLVED = {**NEWTON, "passes": 12, "l2": 1e-9}


def test_errors_and_tests_are_statsmodels_on_the_joined_table(trained, sm):
    folder = trained("none", **SOLVED)
    report = reported(folder, JOINED)
    assert report.errors == "exact"
    joined = Joined.of(folder)
    logit, known, names = sm.Logit(joined.labels, joined.design), by_column(report), joined.names
    assert {*known} == {*names}
    weights = np.array([known[name].prepared for name in names])
    # At the weights that were trained, to the last digits but a few.
    errors = np.sqrt(np.diag(np.linalg.inv(-logit.hessian(weights))))
    assert [known[name].error for name in names] == pytest.approx(errors.tolist(), rel=2.0**-12)
    # And all of it as statsmodels fits it, but for what fixed point and passes leave.
    fitted = logit.fit(disp=0, tol=1e-13)
    for place, name in enumerate(names):
        one = known[name]
        assert one.prepared == pytest.approx(fitted.params[place], rel=0.01), name
        assert one.error == pytest.approx(fitted.bse[place], rel=0.01), name
        assert one.z == pytest.approx(fitted.tvalues[place], rel=0.02), name
        assert one.p_value == pytest.approx(fitted.pvalues[place], rel=0.1, abs=1e-6), name
        assert (one.low, one.high) == pytest.approx(fitted.conf_int()[place], rel=0.02, abs=1e-3)


def test_what_bob_has_alone_is_a_bound_from_below(trained):
    folder = trained("none", **SOLVED)
    alone, joined = reported(folder), by_column(reported(folder, JOINED))
    assert alone.errors == "at-least"
    assert {one.side for one in alone.coefficients} == {"bob"}
    for one in alone.coefficients:
        exact = joined[one.side, one.column]
        # Bob's own intercept is that at the means of Alice's columns, which are standardised here.
        assert one.prepared == pytest.approx(exact.prepared, rel=1e-9)
        assert 0 < one.error <= exact.error * (1 + 1e-9)
        assert one.p_value <= exact.p_value + 1e-12


def test_figures_are_scikit_learns(trained, sm, oracle):
    folder = trained("none", **SOLVED)
    report = reported(folder, Question(costs=Costs(1.0, 10.0)))
    assert [rows.name for rows in report.judged] == ["training", "held-out"]
    (held_out,) = (rows for rows in report.judged if rows.name == "held-out")
    frame = pl.read_csv(folder / "held-out.csv")
    labels, scores = frame["label"].to_numpy(), frame["score"].to_numpy()
    probabilities = frame["probability"].to_numpy()
    assert held_out.metrics.auc == pytest.approx(oracle.roc_auc_score(labels, scores))
    assert held_out.metrics.brier == pytest.approx(oracle.brier_score_loss(labels, probabilities))
    assert held_out.metrics.loss == pytest.approx(oracle.log_loss(labels, probabilities))
    zeros, ones, _ = oracle.roc_curve(labels, scores)
    assert held_out.ks is not None
    assert held_out.ks.distance == pytest.approx(np.abs(ones - zeros).max())
    line = sm.Logit(labels, sm.add_constant(scores)).fit(disp=0, tol=1e-12)
    assert held_out.line.slope == pytest.approx(line.params[1], rel=1e-5)
    best = held_out.cheapest
    assert best is not None
    table = oracle.confusion_matrix(labels, scores > best.score)
    assert best.cost == pytest.approx((table[0, 1] + 10 * table[1, 0]) / len(labels))
    assert sum(row.rows for row in held_out.bands) == len(labels)


def test_a_report_is_a_result_and_fits_a_terminal(trained):
    report = reported(trained("none", **SOLVED), Question(costs=Costs(1.0, 10.0)))
    assert from_record(json.loads(json.dumps(report.to_dict()))) == report
    screen = Console(width=100, record=True, file=io.StringIO())
    screen.print(render(report.blocks()))
    text = screen.export_text()
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text


def test_shared_weights_leave_bob_the_held_out_rows(trained):
    folder = trained("sealed", **NEWTON)
    alone = reported(folder)
    assert [rows.name for rows in alone.judged] == ["held-out"]
    assert alone.errors == "estimated"
    joined = reported(folder, JOINED)
    # Whoever holds everything has the scores of training rows too.
    assert [rows.name for rows in joined.judged] == ["training", "held-out"]
    assert {one.side for one in joined.coefficients} == {"alice", "bob"}
    exact = by_column(joined)
    for one in alone.coefficients:
        # The same rows would bound it; others of the same kind nearly do.
        assert one.error <= 1.5 * exact["bob", one.column].error
    with refused(ConfigError):
        reported(folder, role="alice")


def test_where_nobody_has_weights_there_are_figures_and_no_coefficients(trained):
    folder = trained("mutual", rows=120)
    alone = reported(folder)
    assert alone.coefficients == () == alone.effects
    assert alone.errors == "none"
    assert [rows.name for rows in alone.judged] == ["held-out"]
    joined = reported(folder, JOINED)
    assert {one.side for one in joined.coefficients} == {"alice", "bob"}
    assert all(math.isfinite(one.error) for one in joined.coefficients)


def test_class_weights_are_corrected_for_and_the_sandwich_is_used(trained):
    folder = trained("none", **SOLVED, **{"class-weight": [0.2, 1.0]})
    report = reported(folder, JOINED)
    assert report.log_odds_shift == pytest.approx(math.log(5))
    (held_out,) = (rows for rows in report.judged if rows.name == "held-out")
    mean = pl.read_csv(folder / "held-out.csv")["probability"].mean()
    predicted = sum(row.rows * row.predicted for row in held_out.bands) / held_out.metrics.rows
    assert predicted == pytest.approx(mean)
    joined, known = Joined.of(folder), by_column(report)
    design, y = joined.design, joined.labels
    counted = np.where(y == 1, 1.0, 0.2)
    p = sigmoid(design @ np.array([known[name].prepared for name in joined.names]))
    bread = np.linalg.inv((design * (counted * p * (1 - p))[:, None]).T @ design)
    meat = (design * np.square(counted * (y - p))[:, None]).T @ design
    errors = np.sqrt(np.diag(bread @ meat @ bread))
    reported_errors = [known[name].error for name in joined.names]
    assert reported_errors == pytest.approx(errors.tolist(), rel=2.0**-12)
    assert reported(folder).errors == "at-least"


def test_flipped_labels_make_errors_larger(trained):
    flipped = reported(trained("label-rr", **NEWTON), JOINED)
    assert flipped.errors == "exact"
    true = by_column(reported(trained("none", **NEWTON), JOINED))
    assert all(one.error > true[one.side, one.column].error for one in flipped.coefficients)


BINNED = {"bins": 4}


def test_bins_and_categories_are_attributes_of_a_scorecard(trained):
    folder = trained("none", data=BINNED, **NEWTON)
    report = reported(folder, Question(scale=Scale(500.0, 20.0, 50.0)))
    share = ModelShare.load(folder / "bob.model.json")
    weights = dict(zip(share.columns, share.weights.tolist(), strict=True))
    both, factor = Joined.of(folder), 50 / math.log(2)
    effects = {effect.column: effect for effect in report.effects}
    assert {*effects} == {"mean_radius", "mean_symmetry", "class"}
    radius = effects["mean_radius"]
    assert radius.levels[0].reference
    assert len(radius.levels) == 4
    assert sum(level.rows or 0 for level in radius.levels) == len(both.labels)
    for level in radius.levels[1:]:
        name = f"mean_radius={level.level}"
        column = both.column("bob", name) > 0
        assert level.rows == column.sum()
        assert level.rate == pytest.approx(both.labels[column].mean())
        assert level.effect == pytest.approx(weights[name])
        assert level.points == pytest.approx(-factor * weights[name])
    words = effects["class"]
    assert sum(level.rows or 0 for level in words.levels) == len(both.labels)
    joined = reported(folder, JOINED)
    assert {effect.side for effect in joined.effects} == {"alice", "bob"}


def test_points_add_up_to_those_of_a_row(trained):
    """Constant and attributes are Bob's part; with Alice's they are the points of the score."""
    folder = trained("none", data=BINNED, **NEWTON)
    report = reported(folder, JOINED)
    kept = StoredScores.load(scores_path(folder / "bob.model.json"))
    assert kept.train is not None
    joined = Joined.of(folder)
    points = np.full(len(kept.train), report.score_scale.constant)
    for effect in report.effects:
        for level in effect.levels:
            if not level.reference:
                column = joined.column(effect.side, f"{effect.column}={level.level}")
                points += np.where(column > 0, level.points, 0.0)
    expected = report.score_scale.offset - report.score_scale.factor * kept.train.scores
    noise = report.score_scale.factor * 2.0**-12
    assert points.tolist() == pytest.approx(expected.tolist(), abs=noise + 1e-3)


def test_new_rows_are_compared_and_judged(trained, tmp_path, oracle):
    folder = trained("none", **SOLVED)
    frame = pl.read_csv(folder / "held-out.csv")
    scores, labels = tmp_path / "scores.csv", tmp_path / "labels.csv"
    risky = frame.filter(pl.col("score") > 0)
    risky.select("id", "score", "probability").write_csv(scores)
    frame.reverse().select("id", pl.col("label").alias("sick")).write_csv(labels)
    unlabelled = reported(folder, Question(scores=scores))
    compared = {one.new: one.stability for one in unlabelled.compared}
    assert {*compared} == {"held-out", "new"}
    assert compared["held-out"].p_value > 0.01
    assert compared["new"].rule == "shifted"
    assert compared["new"].p_value < 1e-6
    assert [rows.name for rows in unlabelled.judged] == ["training", "held-out"]
    judged = reported(folder, Question(scores=scores, labels=labels)).judged[-1]
    assert (judged.name, judged.metrics.rows) == ("new", risky.height)
    area = oracle.roc_auc_score(risky["label"], risky["score"])
    assert judged.metrics.auc == pytest.approx(area)


def test_alice_sees_her_own_columns_and_no_figure(trained):
    report = reported(trained("none", data=BINNED, **NEWTON), role="alice")
    assert report.judged == () == report.compared
    assert {one.side for one in report.coefficients} == {"alice"}
    assert all(math.isnan(one.error) for one in report.coefficients)
    assert report.score_scale.constant is None
    assert report.meaning is None
    assert all(level.rate is None for effect in report.effects for level in effect.levels)
    with refused(ConfigError):
        reported(
            trained("none", data=BINNED, **NEWTON), Question(scores=Path("x.csv")), role="alice"
        )


def test_a_lost_file_of_scores_loses_the_page_alone(trained, tmp_path):
    folder = trained("none", **SOLVED)
    place = scores_path(folder / "bob.model.json")
    content = place.read_bytes()
    assert place.stat().st_mode & 0o077 == 0
    place.unlink()
    try:
        with refused(FileError, names=place):
            reported(folder)
        scores = tmp_path / "scores.csv"
        pl.read_csv(folder / "held-out.csv").write_csv(scores)
        report = reported(folder, Question(scores=scores, labels=None))
        assert report.judged == ()
        assert report.notes
        # With everything at hand nothing is lost.
        assert [rows.name for rows in reported(folder, JOINED).judged] == ["training"]
    finally:
        place.write_bytes(content)


def test_another_table_gives_figures_and_no_errors(trained):
    folder = trained("none", **SOLVED)
    table = folder / "bob.csv"
    content = table.read_text()
    table.write_text(content.replace("p000", "p000x"))
    try:
        report = reported(folder)
        assert report.errors == "none"
        assert report.notes
        assert report.judged
        with refused(FileError):
            reported(folder, JOINED)
    finally:
        table.write_text(content)


def test_rows_that_are_not_those_of_the_training_are_refused(trained, tmp_path):
    folder = trained("none", **SOLVED)
    frame = pl.read_csv(folder / "alice.csv")
    other = tmp_path / "other.csv"
    frame.with_columns(pl.col("mean_texture") + 1).write_csv(other)
    models = (folder / "alice.model.json",)
    with refused(FileError, names=other):
        reported(folder, Question(alice_models=models, alice_rows=(other,)))
    renamed = tmp_path / "renamed.csv"
    frame.rename({"id": "key"}).write_csv(renamed)
    asked = Question(alice_models=models, alice_rows=(renamed,), alice_id="key")
    assert reported(folder, asked).errors == "exact"
    with refused(ConfigError):
        reported(folder, Question(alice_models=models))


def test_the_model_of_a_study_that_is_in_use_has_its_page(tmp_path):
    write_study(tmp_path, agreement={"held-out": 0.3})
    assert run_study(tmp_path).records
    config = PartyConfig.read(tmp_path / "bob.toml")
    with pytest.raises(FileError):
        model_report(config, Question())
    use_model(config, 2, lambda text: None)
    report = model_report(config, Question())
    share = ModelShare.load(tmp_path / "bob.model.json")
    assert (report.session, [rows.name for rows in report.judged]) == (share.session, ["held-out"])
    (held_out,) = report.judged
    assert held_out.metrics.auc == pytest.approx(share.metrics["held_out"]["auc"])
    assert report.errors == "estimated"


def test_what_keeps_the_page_from_being_made_is_a_note(tmp_path, capsys):
    """The training has ended well: nothing that comes after it may look as if it had not."""
    write_rows(tmp_path, 120)
    path = write_config(tmp_path, "bob", output={"report": None})
    config = PartyConfig.read(path)
    first = remarks_after(config, path)
    assert first
    scores_path(tmp_path / "bob.model.json").write_bytes(b"cut")
    assert remarks_after(config, path) not in ([], first)
    assert not (tmp_path / "bob.model.html").exists()
