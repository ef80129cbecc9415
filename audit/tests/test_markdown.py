"""Blocks for a pull request."""

from __future__ import annotations

import re

import pytest
from audit.tests.report.samples import AUDITS, hostile, leaking, page

from taciturn.report.blocks import Figure, Figures, Page, Paragraph, Section, Span, coded, table
from taciturn.report.markdown import escape
from taciturn.report.markdown import render as render_markdown
from taciturn_audit.report.page import audit_page
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.verdict import Status, conclude
from tests.report.test_markdown import headings


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
    text = render(leaking())
    assert "breast-cancer" in text.splitlines()[2]
    assert headings(text)[0] == conclude(leaking()).headline
    assert text.index(f"**{Status.LEAK.sign} ") < text.index("| ")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", AUDITS)
def test_what_the_page_shows_is_there(name):
    drawn = page(name)
    text = render_markdown(drawn)
    titles = [block.title for block in drawn.blocks if isinstance(block, Section)]
    assert headings(text) == [escape(title) for title in titles]
    assert "<svg" not in text


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
