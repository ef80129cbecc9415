"""Blocks for a pull request."""

from __future__ import annotations

import pytest

from taciturn.report.markdown import escape


def headings(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


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
