"""The figures: well-formed, words as words, colours of the page, nothing attack by colour alone."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from taciturn_audit import weigh
from taciturn_audit.attacks import ATTACKS
from taciturn_audit.report import attacks_svg, epochs_svg
from taciturn_audit.results import Accuracy, AfterEpochs, Findings
from tests.report.samples import (
    AUDITS,
    controls,
    findings,
    hybrid_run,
    leaking_run,
    page,
    quiet_run,
    rare_run,
    score,
)

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


def test_the_same_findings_give_the_same_text():
    assert drawn(leaking_run().findings) == drawn(leaking_run().findings)


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


def test_balanced_labels_are_ranked_by_accuracy():
    assert "accuracy" in texts(drawn(leaking_run().findings))


def places(text: str) -> list[float]:
    """Where marks stand, from left to right."""
    return [float(x) for x in re.findall(r'<use [^>]*\bx="([\d.]+)"', text)]


def test_an_interval_that_leaves_the_scale_is_cut_at_its_end():
    """The interval of a mean may reach beyond 100 %; the mark stands where 100 % does."""
    known = controls(0.6, 0.7, 0.7)
    beyond = places(drawn(findings(known, score("few runs", 0.95, 0.82, 1.07))))
    exact = places(drawn(findings(known, score("few runs", 0.95, 0.82, 1.0))))
    assert beyond == exact
    assert max(beyond) > max(places(drawn(findings(known, score("few runs", 0.9, 0.82, 0.95)))))


def test_without_an_attack_the_picture_has_the_controls_and_no_dot():
    text = drawn(findings(controls(0.6, 0.7, 0.7)))
    assert dots(text) == []
    assert "prior" in texts(text)


def test_a_ranking_shows_its_auc():
    """Two thirds of the labels are not alike, and the AUC alone shows the leak."""
    attack = score("norm", 0.9, 0.88, 0.92, auc=0.999, auc_low=0.998, auc_high=1.0)
    words = texts(drawn(findings(quiet_run().findings.controls, attack)))
    assert {"AUC", "99.90\u00a0%"} <= {*words}


def test_what_accuracy_shows_stands_beside_a_ranking():
    attack = score("solve", 0.98, 0.97, 0.99, auc=0.7, auc_low=0.6, auc_high=0.8)
    words = texts(drawn(findings(controls(0.93, 0.94, 0.8), attack)))
    assert {"AUC", "accuracy 98.00\u00a0%"} <= {*words}


def test_one_epoch_can_be_drawn():
    rows = (AfterEpochs(1, (Accuracy("only", 0.5, 0.4, 0.6),)),)
    words = texts(epochs_svg(rows, None, "y"))
    assert "only" in words
    assert "1" in words


def test_a_dollar_is_no_formula():
    rows = (AfterEpochs(1, (Accuracy("$x^2$", 0.5, 0.4, 0.6),)),)
    assert "$x^2$" in texts(epochs_svg(rows, None, "y"))


def test_there_is_a_shape_for_every_attack():
    names = [attack.name for attack in ATTACKS]
    rows = (AfterEpochs(1, tuple(Accuracy(name, 0.8, 0.7, 0.9) for name in names)),)
    shapes = re.findall(r'<path id="y-m[^"]*" d="([^"]*)"', epochs_svg(rows, 0.6, "y"))
    assert len(set(shapes)) >= len(ATTACKS)


def test_curves_differ_in_dash_and_colour():
    rows = leaking_run().over_epochs
    text = epochs_svg(rows, 0.6, "y")
    for number in (1, 2, 3):
        assert f"var(--s{number}, " in text
    dashes = re.findall(r"stroke-dasharray: ([^;\"]+)[^\"]*var\(--s\d", text)
    assert len(set(dashes)) == 2  # the third curve is a solid line


def test_a_run_without_a_prior_has_no_line():
    rows = leaking_run().over_epochs
    assert any(words.startswith("prior") for words in texts(epochs_svg(rows, 0.6, "y")))
    assert not any(words.startswith("prior") for words in texts(epochs_svg(rows, None, "y")))


def test_a_long_name_is_cut():
    attack = replace(score("x", 0.9, 0.8, 0.95), name="a-name-that-nobody-should-give")
    assert "a-name-that-nobody-sh…" in texts(drawn(findings(controls(0.6, 0.7, 0.7), attack)))
