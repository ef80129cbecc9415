"""The page as text: one file, nothing outside, everything escaped."""

from __future__ import annotations

import re

from taciturn.report.blocks import Page, Paragraph, coded
from taciturn.report.html import render as render_html

LARGEST = 2 << 20


def test_code_between_backquotes_is_code_and_markup_is_not():
    text = render_html(Page("w", "T", "s", (Paragraph(coded("<b>`<i>`")),)))
    assert "&lt;b&gt;<code>&lt;i&gt;</code>" in text


def colours(page: str) -> list[dict[str, str]]:
    """The light page's colours, and the dark one's."""
    return [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)
    ]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    line = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
