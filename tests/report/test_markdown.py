"""Blocks for a pull request."""

from __future__ import annotations

import re

import pytest

from taciturn.report import (
    Figure,
    Figures,
    Page,
    Paragraph,
    Span,
    audit_page,
    coded,
    escape,
    render_markdown,
    table,
)
from taciturn.results import AuditResult
from tests.report.samples import AUDITS, bare, hostile, hybrid, leaking, page, quiet, several


def render(audit: AuditResult) -> str:
    return render_markdown(audit_page(audit))


@pytest.mark.parametrize("name", AUDITS)
def test_every_table_is_whole(name):
    cells = re.compile(r"(?<!\\)\|")
    blocks = render_markdown(page(name)).split("\n\n")
    tables = [block.splitlines() for block in blocks if block.startswith("|")]
    assert tables
    for lines in tables:
        assert re.fullmatch(r"\|( (:--|--:) \|)+", lines[1])
        assert len({len(cells.findall(line)) for line in lines}) == 1


def test_the_verdict_comes_first():
    lines = render(leaking()).splitlines()
    assert lines[2].startswith("breast-cancer · mechanism none")
    assert lines[4] == "## Alice can tell every label"
    assert lines[6] == "**▲ Leak shown**"


@pytest.mark.slow  # some seconds
def test_what_the_page_shows_is_there():
    text = render(leaking())
    for part in (
        "## Attacks beside the controls",
        "| **▲** exact-solve | 100.00 % | 99.19 – 100.00 % |",
        "## Leakage over epochs",
        "| stacked | 2 | 71.00 % | 67.00 – 75.00 % |",
        "## The ledger",
        "## Everything Alice received",
        "## How good the model is",
        "| label | infinite | infinite | infinite |",
        "Alice does not have noisy residues",
        "$ taciturn audit --dataset breast-cancer",
        "Taciturn 0.1.0",
    ):
        assert part in text
    assert "<svg" not in text
    assert "## Who is in the batch" in render(hybrid())
    assert "claim against evidence: not violated" in render(quiet()).lower()
    assert "Run by run" in render(several())


def test_what_is_not_there_is_said():
    text = render(bare())
    assert "This result lists no messages." in text
    assert "Not recorded: the audit was called from Python." in text


def test_names_are_no_markup():
    text = render(hostile())
    outside = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside
    assert "<img" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert "http://" not in outside
    assert "\u202e" not in text
    # The command holds three backticks, so its fence has four.
    assert text.count("````") == 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a|b", "a\\|b"),
        ("@someone", "@<!-- -->someone"),
        ("#12", "#<!-- -->12"),
        ("x_y*", "x\\_y\\*"),
        ("a & b", "a &amp; b"),
        ("www.example", "www<!-- -->.example"),
    ],
)
def test_texts_call_nobody_and_link_nowhere(text, written):
    assert escape(text) == written


def test_figures_are_files_beside_the_page_or_what_stands_in_for_them():
    rows = table(("x", "y"), [("a|b", "1")], caption="c")
    figure = Figures((Figure("f", "t", "alt", "<svg/>"),), instead=(rows,))
    page = Page("w", "T", "s", (figure, Paragraph(coded("run `a_b` now")), Paragraph(Span("x|"))))
    without, beside = render_markdown(page), render_markdown(page, "pictures")
    assert "![t](pictures/f.svg)" in beside
    assert "a\\|b" not in beside
    assert "| a\\|b | 1 |" in without
    assert "svg" not in without
    assert "run `a_b` now" in beside
