"""The page of a review in a real Chromium: by day, by night, on a telephone and on paper."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from rich.console import Console

from taciturn.jobs.agreement import Review, review_page
from taciturn.jobs.agreement import review_agreement as review
from taciturn.party import AgreementFile
from taciturn.report import (
    WIDTH,
    Section,
    render_html,
    render_terminal,
)
from tests.dashboard.browsers import chromium
from tests.report.test_browser import SIZE, Seen
from tests.tampering import Scene

# A browser takes seconds; what the page says is tried without one, in tests/party.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Review:
    scene = Scene(tmp_path_factory.mktemp("review") / "both")
    # Not Bob's own: his review has the ledger, hers the columns, and hers is the longer.
    (scene.folder / "agreement.toml").write_text(scene.text)
    return review(AgreementFile.parse(scene.text, "agreement.toml"), scene.folder / "alice.toml")


@pytest.fixture(scope="module")
def page(result: Review, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "review.html"
    path.write_text(render_html(review_page(result)), encoding="utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1000])
def test_it_asks_for_nothing_and_nothing_lies_beside_it(browser, page, scheme, width):
    seen = Seen(browser, page, color_scheme=scheme)
    seen.page.set_viewport_size({**SIZE, "width": width})
    assert [url for url in seen.requests if url != "data:,"] == [page.as_uri()]
    assert seen.complaints == []
    assert seen.page.evaluate("document.scripts.length") == 0
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert seen.page.evaluate(wide)


def test_its_headings_are_those_of_the_page_in_order(browser, page, result):
    seen = Seen(browser, page).page
    titles = [block.title for block in review_page(result).blocks if isinstance(block, Section)]
    assert len(titles) >= 10
    assert seen.locator("h2").all_inner_texts() == titles
    levels = seen.eval_on_selector_all("h1, h2, h3", "all => all.map(one => +one.tagName[1])")
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_nothing_is_folded_away_on_paper(browser, page, result):
    seen = Seen(browser, page).page
    seen.emulate_media(media="print")
    for value in (result.agreement.digest, "split-seed"):
        assert seen.get_by_text(value).first.is_visible()
    assert len(seen.pdf()) > 10_000


def test_on_a_terminal_it_is_at_most_100_wide(result):
    screen = Console(width=WIDTH, file=io.StringIO())
    with screen.capture() as said:
        screen.print(render_terminal(result.blocks()))
    assert max(map(len, said.get().splitlines())) <= WIDTH
