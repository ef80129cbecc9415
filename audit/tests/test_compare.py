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
from taciturn.report.blocks import Facts, Section, Span, Table
from taciturn.report.html import render as render_html
from taciturn.report.markdown import render as render_markdown
from taciturn.results.folder import from_record
from taciturn_audit.report.compare import compare_blocks, compare_page
from taciturn_audit.results.compare import Comparison
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


def test_a_page_has_room_for_the_widest_figures(comparison):
    """Leaks of 100 %, minutes and gigabytes in every row."""
    worst = {"value": 1.0, "leak": True, "known": 0.95, "attack": "exact-solve"}
    cost = replace(comparison.compared[0].estimate, seconds=35_000.0, bytes_to_alice=900 << 20)
    rows = tuple(
        replace(
            row,
            auc=1.0,
            label_epsilon_total=math.inf,
            shuffled=replace(row.shuffled, **worst),
            real=replace(row.real, **worst),
            estimate=cost,
        )
        for row in comparison.compared
    )
    for ranked_by in ("accuracy", "AUC"):
        wide = replace(comparison, compared=rows, ranked_by=ranked_by)
        lines = shown(compare_blocks(wide)).splitlines()
        assert max(map(len, lines)) <= 100
        assert "▲100.0 (95.0)" in "\n".join(lines)


def table_of(kind: int, rows: int = 2000) -> pl.DataFrame:
    """A table whose columns, labels and share of positives depend on ``kind``."""
    draw = np.random.default_rng(kind)
    width = (4, 8, 12, 20, 6, 10)[kind]
    values = draw.normal(size=(rows, width))
    if kind in (1, 4):
        values[:, ::2] = values[:, ::2] > 0.5
    if kind == 2:
        values[:, ::3] = np.exp(values[:, ::3]).round(2)
    if kind == 5:
        values = draw.integers(0, 5, size=(rows, width)).astype(float)
    logits = values @ draw.normal(size=width)
    logits = (logits - logits.mean()) / logits.std() * (1, 2, 0.5, 1.5, 1, 3)[kind]
    labels = draw.random(rows) < 1 / (1 + np.exp((0, 0, 1, 0, 2.5, 0)[kind] - logits))
    columns = {f"c{place}": values[:, place] for place in range(width)}
    return pl.DataFrame({**columns, "label": labels.astype(int)})


def assert_unprotected_is_not_cleared(kind: int, seed: int) -> None:
    names = ("none", "sealed")
    made = taciturn.compare(
        table_of(kind), label="label", mechanisms=names, scheme="clear", seed=seed
    )
    none, sealed = made.compared
    assert math.isinf(none.label_epsilon_total)
    assert (none.cleared, sealed.cleared) == (False, True)
    # Colours are those of an encrypted run: an unencrypted one is amber whatever leaks.
    encrypted = replace(made, scheme="bfv", key_bits=128)
    for rows, calm in ((made.compared, False), ((none,), False), ((sealed,), True)):
        page = compare_page(replace(encrypted, compared=rows))
        verdict = next(block for block in page.blocks if isinstance(block, Section))
        assert verdict.badge is not None
        assert (verdict.badge.word == "not-shown") is calm
        assert ("var(--calm," in page.figures[0].svg) is (sealed in rows)
        facts = next(block for block in verdict.blocks if isinstance(block, Facts))
        cleared = {"sealed"} if sealed in rows else set()
        assert {name for name, words in facts.pairs.items() if _tone(words) == "good"} == cleared


def _tone(words: str | Span | tuple[str | Span, ...]) -> str:
    """The colour of a fact's first words."""
    first = words[0] if isinstance(words, tuple) else words
    return "" if isinstance(first, str) else first.tone


@pytest.mark.parametrize(("kind", "seed"), [(0, 0), (1, 0)])
def test_an_unprotected_mechanism_is_never_cleared(kind, seed):
    assert_unprotected_is_not_cleared(kind, seed)


@pytest.mark.slow  # more of the above
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", range(6))
def test_no_table_and_no_seed_clears_an_unprotected_mechanism(kind, seed):
    assert_unprotected_is_not_cleared(kind, seed)


def test_whether_bob_can_reconstruct_columns_is_said_of_each_mechanism():
    names = ("mutual", "sealed", "none", "label-rr:1")
    made = taciturn.compare(table_of(0, 200), label="label", mechanisms=names, epochs=1)
    said = {row.mechanism: row.bob_reconstructs for row in made.compared}
    assert said == {"mutual": False, "sealed": True, "none": True, "label-rr": True}
    tables = [block for block in compare_blocks(made) if isinstance(block, Table)]
    cells = [row[-3] for row in tables[0].rows]
    assert cells == ["no", *[Span("yes", "bad")] * 3]
