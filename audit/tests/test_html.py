"""The page as text: one file, nothing outside, everything escaped."""

from __future__ import annotations

import re

import pytest
from audit.tests.report.samples import AUDITS, hostile, leaking, quiet
from audit.tests.report.samples import page as sample_page

from taciturn.report.html import render as render_html
from taciturn_audit.report.page import audit_page
from taciturn_audit.results.runs import AuditResult
from tests.report.test_html import LARGEST, colours, contrast


def render(audit: AuditResult) -> str:
    return render_html(audit_page(audit))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", AUDITS)
def test_a_page_is_one_small_file_without_script_or_request(name):
    page = render_html(sample_page(name))
    # exact: what browsers read
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert page.endswith("</html>\n")
    assert len(page.encode()) < LARGEST
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#|data:,")', page)
    assert "url(" not in page
    assert "@import" not in page
    # Identifiers are unique, references resolve, every heading cell says what it heads.
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    named = re.findall(r'aria-labelledby="([^"]+)"', page)
    links = re.findall(r'href="#([^"]+)"', page)
    assert {name for group in named for name in group.split()} | set(links) <= set(ids)
    assert not re.findall(r"<th(?! scope=)[ >]", page)
    # No attack that failed is a proof.
    said = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"\bsafe\b|\bsecure\b", said)


def test_names_are_words_and_nothing_else():
    page = render(hostile())
    assert "&lt;script&gt;document.title=" in page
    assert "<img" not in page
    assert "\u202e" not in page


def test_infinity_is_a_word():
    page = render(leaking())
    assert "infinite" in page
    assert ">inf<" not in page


def test_words_stand_out_from_their_ground():
    """WCAG 2.2 AA: 4.5 for text, 3 for what a picture draws."""
    both = colours(render(quiet()))
    assert len(both) == 2
    for palette in both:
        for ground in ("page", "surface"):
            for ink in ("ink", "muted", "link"):
                assert contrast(palette[ink], palette[ground]) >= 4.5
        for ink in ("leak", "amber", "calm"):
            assert contrast(palette[ink], palette["surface"]) >= 4.5
            assert contrast(palette[ink], palette[f"{ink}-soft"]) >= 4.5
        for number in range(1, 7):
            assert contrast(palette[f"s{number}"], palette["surface"]) >= 3
