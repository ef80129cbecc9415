"""Mechanisms side by side: the same figures as of audits, one line for what cannot be had."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import taciturn
from taciturn.report import render_html, render_markdown
from taciturn.results import from_record
from taciturn_audit.report import compare_blocks, compare_page
from taciturn_audit.results import Comparison
from tests.report.test_terminal import shown

OPTIONS: dict[str, Any] = {"dataset": "breast-cancer", "epochs": 2, "scheme": "clear", "seed": 3}
NAMES = ("sealed", "none", "label-rr:2", "add")


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return taciturn.compare(mechanisms=NAMES, epsilon=4.0, **OPTIONS)


@pytest.mark.slow  # an audit of each mechanism
def test_each_line_is_what_an_audit_says(comparison):
    audit = taciturn.audit(mechanism="none", **OPTIONS)
    line = next(one for one in comparison.compared if one.mechanism == "none")
    assert audit.canary is not None
    for best, findings in ((line.shuffled, audit.canary), (line.real, audit.findings)):
        assert best.value == max(score.accuracy for score in findings.attacks)
        assert best.known == max(control.accuracy for control in findings.controls)
    assert line.auc == audit.means.test["auc"]
    assert line.shuffled.leak
    assert math.isinf(line.label_epsilon_total)
    chosen = [("sealed", None), ("none", None), ("label-rr", 2.0), ("add", 4.0)]
    assert [(one.mechanism, one.epsilon) for one in comparison.compared] == chosen
    assert comparison.compared[2].label_epsilon_total == 2.0
    # Where no attack applies nothing is told.
    sealed = comparison.compared[0]
    assert (sealed.shuffled.attack, sealed.shuffled.value) == (None, None)
    assert not sealed.shuffled.leak
    assert sealed.auc == pytest.approx(comparison.centralised_auc, abs=1e-3)


def test_a_rare_label_is_compared_by_auc():
    draw = np.random.default_rng(5)
    columns = {f"c{place}": draw.normal(size=160) for place in range(6)}
    labels = np.arange(160) % 10 == 0
    table = pl.DataFrame({**columns, "label": labels.astype(int)})
    result = taciturn.compare(
        table, label="label", mechanisms=("none",), scheme="clear", epochs=1, batch_size=4
    )
    assert result.ranked_by == "AUC"
    best = result.compared[0].shuffled
    assert best.leak
    assert best.value == 1.0
    assert best.known < 0.8


def test_it_is_read_back_fits_a_terminal_and_has_a_picture(comparison):
    assert from_record(json.loads(json.dumps(comparison.to_dict()))) == comparison
    text = shown(compare_blocks(comparison))
    assert max(map(len, text.splitlines())) <= 100
    assert "label-rr ε 2" in text
    page = compare_page(replace(comparison, scheme="bfv", key_bits=128))
    assert [figure.name for figure in page.figures] == ["compared"]
    assert "var(--" in page.figures[0].svg
    for rendered in (render_html(page), render_markdown(page)):
        assert "2^128" in rendered
        assert "Decision" in rendered
