"""A model of counts, amounts or numbers between two parties, from training to exports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from taciturn.families.registry import FAMILIES
from taciturn.model.whole import whole_model
from taciturn.party.config import PartyConfig
from taciturn_risk.onnx import whole_to_onnx
from taciturn_risk.scorecard.build import ReportRequest
from taciturn_risk.scorecard.card import card as model_card
from taciturn_risk.scorecard.party import party_report
from taciturn_risk.sklearn import to_sklearn
from tests.party.sides import run_both
from tests.party.test_families import shares, write


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


def test_exports_give_the_same_means(trained):
    import onnxruntime

    folder, family, new, _ = trained
    whole = whole_model(*shares(folder))
    predictor = whole.scores(new["alice"], new["bob"])
    means = FAMILIES[family].mean(predictor)
    joined = new["alice"].join(new["bob"], on="id")
    pipeline = to_sklearn(*shares(folder))
    np.testing.assert_allclose(pipeline.predict(joined), means, rtol=1e-9)
    session = onnxruntime.InferenceSession(whole_to_onnx(whole), providers=["CPUExecutionProvider"])
    inputs = {one.name: joined[one.name].to_numpy().reshape(-1, 1) for one in session.get_inputs()}
    score, mean = session.run(["score", "mean"], inputs)
    np.testing.assert_allclose(score.ravel(), predictor, rtol=1e-9)
    np.testing.assert_allclose(mean.ravel(), means, rtol=1e-9)


def test_the_report_has_what_belongs_to_the_family(trained):
    folder, family, _, run = trained
    report = party_report(PartyConfig.read(folder / "bob.toml"), ReportRequest())
    assert (report.family, report.judged, report.scale) == (family, (), None)
    held_out = next(rows for rows in report.means if rows.name == "held-out")
    assert held_out.metrics.deviance == pytest.approx(run.metrics.held_out.deviance)
    assert sum(group.count for group in held_out.metrics.calibration) == held_out.metrics.rows
    names = {one.column for one in report.coefficients}
    assert {"b0", "b1", "(intercept)"} == names
    assert report.blocks()
    page: Any = report.page("2026-11-18")
    assert "calibration" in {section.ident for section in page.blocks}
    assert type(report).from_record(report.to_dict()) == report
    assert model_card(shares(folder)[1]).blocks()
