"""The model's page: whole, escaped, and the same in a real Chromium by day, night and by phone."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from taciturn.families.binomial import sigmoid
from taciturn.model.scores_file import ScoredRows
from taciturn.report.blocks import Page
from taciturn.report.html import render
from taciturn_risk.scorecard.bands import Bands
from taciturn_risk.scorecard.build import judged_rows
from taciturn_risk.scorecard.gains import Costs
from taciturn_risk.scorecard.page import model_page
from taciturn_risk.scorecard.result import (
    CoefficientTest,
    ColumnEffect,
    ComparedScores,
    EffectLevel,
    ModelReport,
    ScoreScale,
)
from taciturn_risk.scorecard.stability import stability

MADE = "2026-11-17T12:00:00+00:00"
HOSTILE = "<script>alert('x')</script>"


def rows(count: int, seed: int) -> ScoredRows:
    entropy = np.random.default_rng(seed)
    scores = entropy.normal(-2, 1.2, count)
    return ScoredRows(scores, (entropy.uniform(size=count) < sigmoid(scores)).astype(np.int8))


def coefficient(name: str, weight: float, error: float) -> CoefficientTest:
    z = weight / error
    return CoefficientTest(
        side="bob",
        column=name,
        prepared=weight,
        original=weight / 3,
        clipped=True,
        error=error,
        z=z,
        p_value=math.erfc(abs(z) / math.sqrt(2)),
        low=weight - 2 * error,
        high=weight + 2 * error,
        points=-28.85 * weight / 3,
    )


def level(name: str, points: float, *, reference: bool = False) -> EffectLevel:
    return EffectLevel(
        level=name,
        reference=reference,
        rows=100,
        rate=0.2,
        effect=-points / 28.85,
        error=0.1,
        points=points,
    )


def report() -> ModelReport:
    train, held_out = rows(800, 1), rows(400, 2)
    bands = Bands.from_quantiles(train.scores, 10)
    costs = Costs(1.0, 8.0)
    return ModelReport(
        role="bob",
        model="bob.model.json",
        session="5e" * 16,
        mechanism="none",
        meaning="of a label 1, for rows like the training rows",
        log_odds_shift=0.0,
        rows=800,
        threshold=None,
        judged=(
            judged_rows("training", train, bands, costs=costs),
            judged_rows("held-out", held_out, bands, costs=costs),
        ),
        compared=(
            ComparedScores(
                reference="training",
                new="held-out",
                edges=bands.edges,
                stability=stability(bands.counts(train.scores), bands.counts(held_out.scores)),
            ),
        ),
        scale=ScoreScale(
            base_score=600,
            base_odds=50,
            points_to_double=20,
            factor=28.8539,
            offset=487.1229,
            constant=410.0,
        ),
        errors="at-least",
        errors_reason="At least this.",
        coefficients=(coefficient("debt", -1.2, 0.3), coefficient(HOSTILE, 0.2, 0.4)),
        effects=(
            ColumnEffect(
                side="bob",
                column="age",
                levels=(
                    level("below 30", 0.0, reference=True),
                    level("30 to 45", 12.0),
                    level(HOSTILE, -25.0),
                ),
            ),
        ),
        notes=("A note of the model.",),
        version="0.2.0",
    )


@pytest.fixture(scope="module")
def page() -> Page:
    return model_page(report(), MADE)


@pytest.fixture(scope="module")
def text(page) -> str:
    return render(page)


def test_names_are_words_and_nothing_else(text):
    class Tags(HTMLParser):
        scripts = 0

        def handle_starttag(self, tag, attrs):
            self.scripts += tag == "script"

    reader = Tags()
    reader.feed(text)
    assert reader.scripts == 0
    assert "&lt;script&gt;" in text


def test_alices_page_has_no_figure():
    hers = replace(
        report(),
        role="alice",
        judged=(),
        compared=(),
        meaning=None,
        errors="none",
        errors_reason="Bob alone has them.",
    )
    page = render(model_page(hers, MADE))
    kept = ["short", "coefficients", "effects", "points"]
    assert re.findall(r'<section id="([^"]*)"', page) == kept
    assert "KS" not in page
    assert ">z</th>" not in page


def test_rows_of_one_label_have_a_page():
    lonely = ScoredRows(np.array([0.5, -1.0, 2.0]), np.zeros(3, dtype=np.int8))
    judged = judged_rows("held-out", lonely, Bands(()), costs=Costs(1.0, 2.0))
    assert judged.ks is None
    page = render(model_page(replace(report(), judged=(judged,), compared=()), MADE))
    assert 'id="ranking"' in page
