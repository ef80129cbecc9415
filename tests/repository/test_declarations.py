"""A setting is declared once; whatever is made from the declaration says the same."""

from __future__ import annotations

import re

from tests import settings_page
from tests.settings_page import ALL_SECTIONS


def test_the_page_is_what_the_declarations_say():
    page = settings_page.PAGE.read_text(encoding="utf-8")
    assert page == settings_page.render(page), "remake it: python -m tests.settings_page"
    agreement, *others = ALL_SECTIONS
    headings = re.findall(r"^## \[([a-z]+)\]$", page, re.MULTILINE)
    assert headings == [agreement, "study", *others]
