"""The figures: well-formed, words as words, colours of the page, nothing attack by colour alone."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from audit.tests.report.samples import (
    AUDITS,
    controls,
    findings,
    hybrid_run,
    leaking_run,
    page,
    rare_run,
)

from taciturn_audit.report.plots import attacks_svg, epochs_svg
from taciturn_audit.results.audit import Accuracy, AfterEpochs, Findings
from taciturn_audit.verdict import weigh

SVG = "{http://www.w3.org/2000/svg}"


def drawn(shown: Findings, name: str = "x") -> str:
    return attacks_svg(shown, weigh(shown.controls, shown.attacks), name)


def root_of(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - our own


def texts(text: str) -> list[str]:
    return [mark.text or "" for mark in root_of(text).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", AUDITS)
def test_each_is_well_formed_and_described(name):
    figures = page(name).figures
    assert figures
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        assert root_of(figure.svg).get("viewBox")
        assert figure.title
        assert "%" in figure.alt
        # Colours are the page's, and nothing is fetched.
        inside = re.sub(r"var\(--[\w-]+, #[0-9a-f]{6}\)", "", figure.svg)
        assert not re.search(r"(?:fill|stroke): #", inside)
        assert "currentColor" in figure.svg
        assert "url(" not in figure.svg
        assert "<style" not in figure.svg
        assert "<metadata" not in figure.svg


def test_two_figures_on_a_page_share_no_identifier():
    first, second = (drawn(leaking_run().findings, name) for name in ("one", "two"))
    ids = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for text, known in zip((first, second), ids, strict=True):
        assert set(re.findall(r'href="#([^"]+)"', text)) <= known


def test_words_stay_words():
    words = texts(drawn(leaking_run().findings))
    for part in ("exact-solve", "prior", "model-only", "62.42\u00a0%", "100.00\u00a0%"):
        assert part in words


def dots(text: str) -> list[str]:
    """The fills of the dots: of the marks that stand on the accuracies."""
    return re.findall(r'<use [^>]*style="fill: ([^;]+);[^"]*stroke-width: 2', text)


def test_an_attack_above_the_controls_is_filled_and_the_others_are_hollow():
    run = hybrid_run()
    assert run.canary is not None
    assert [fill[:10] for fill in dots(drawn(run.canary))] == ["var(--leak"] * 2
    assert [fill[:13] for fill in dots(drawn(run.findings))] == ["var(--surface"] * 2


def test_a_ranking_that_tells_all_is_filled_and_stands_at_the_end_of_its_axis():
    """Where a label is rare: by accuracy it would be a hollow dot below the prior."""
    run = rare_run()
    text = drawn(run.findings)
    assert [fill[:10] for fill in dots(text)] == ["var(--leak", "var(--surf"]
    assert "AUC" in texts(text)
    assert "accuracy" not in texts(text)
    marks = [float(x) for x in re.findall(r'<use [^>]*\bx="([\d.]+)"[^>]*stroke-width: 2', text)]
    assert marks[0] > marks[1]
    assert run.canary is not None
    by = weigh(run.canary.controls, run.canary.attacks).ranked_by
    words = texts(epochs_svg(run.over_epochs, 0.5, "y", by))
    assert {"AUC", "prior 50.00\u00a0%"} <= {*words}


def test_without_an_attack_the_picture_has_the_controls_and_no_dot():
    text = drawn(findings(controls(0.6, 0.7, 0.7)))
    assert dots(text) == []
    assert "prior" in texts(text)


def test_one_epoch_can_be_drawn():
    rows = (AfterEpochs(1, (Accuracy("only", 0.5, 0.4, 0.6),)),)
    words = texts(epochs_svg(rows, None, "y"))
    assert "only" in words
    assert "1" in words


def test_a_dollar_is_no_formula():
    rows = (AfterEpochs(1, (Accuracy("$x^2$", 0.5, 0.4, 0.6),)),)
    assert "$x^2$" in texts(epochs_svg(rows, None, "y"))
