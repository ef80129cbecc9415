"""The page in a real Chromium: it asks for nothing, folds open, shows by day, night, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from audit.tests.report.samples import AUDITS
from ops.tests.dashboard.browsers import chromium
from playwright.sync_api import Browser, ViewportSize

from taciturn.report.html import render as render_html
from taciturn_audit.report.page import audit_page
from taciturn_audit.verdict import conclude
from tests.waiting import HANG

SIZE: ViewportSize = {"width": 1000, "height": 900}
# A browser takes a second for each look; that a page opens without a complaint is tried always.
LOOKED_AT = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, or a skip by name."""
    with chromium() as running:
        yield running


class Seen:
    """A page, and what it did while it was looked at."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.page = browser.new_page(viewport=SIZE, **options)
        self.page.set_default_timeout(1000 * HANG)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(path.as_uri())


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {}
    for name, audit in AUDITS.items():
        paths[name] = folder / f"{name}.html"
        paths[name].write_text(render_html(audit_page(audit())), encoding="utf-8")
    return paths


@pytest.fixture(scope="module")
def look(browser, pages):
    """Call with an audit's name: its page, opened once for each way of looking at it."""
    opened: dict[tuple[object, ...], Seen] = {}

    def page(name: str, **options: Any) -> Seen:
        key = (name, *sorted(options.items()))
        if key not in opened:
            opened[key] = Seen(browser, pages[name], **options)
        opened[key].page.set_viewport_size(SIZE)
        return opened[key]

    yield page
    for seen in opened.values():
        seen.page.close()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", AUDITS)
def test_a_page_asks_for_nothing_and_complains_of_nothing(look, pages, name):
    seen = look(name)
    assert [url for url in seen.requests if url != "data:,"] == [pages[name].as_uri()]
    assert seen.complaints == []
    assert seen.page.evaluate("document.scripts.length") == 0


@LOOKED_AT
def test_names_of_markup_run_nothing(look):
    page = look("hostile").page
    assert page.title().startswith(conclude(AUDITS["hostile"]()).headline)
    assert page.locator("img, script, iframe").count() == 0


@LOOKED_AT
@pytest.mark.parametrize("name", AUDITS)
def test_headings_are_in_order_and_landmarks_are_there(look, name):
    page = look(name).page
    assert page.locator("html").get_attribute("lang") == "en"
    for landmark in ("banner", "main", "contentinfo", "navigation"):
        assert page.get_by_role(landmark).count() == 1
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


@LOOKED_AT
@pytest.mark.parametrize("name", AUDITS)
def test_every_table_has_headers_and_every_figure_a_caption(look, name):
    page = look(name).page
    bare = "all => all.filter(one => !one.querySelector('thead th[scope=col]')).length"
    assert page.locator("table").count() > 2
    assert page.eval_on_selector_all("table", bare) == 0
    missing = "all => all.filter(one => !one.querySelector('figcaption')).length"
    assert page.eval_on_selector_all("figure", missing) == 0


@LOOKED_AT
def test_the_keyboard_reaches_every_fold_and_link(look):
    page = look("leaking").page
    wanted = page.locator("summary, nav a").count()
    reached = set()
    for _ in range(wanted + 20):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.matches('summary, nav a')"
                " ? document.activeElement.textContent : ''"
            )
        )
    assert len(reached - {""}) == wanted


@LOOKED_AT
@pytest.mark.parametrize("name", AUDITS)
def test_nothing_sticks_out_on_a_phone(look, name):
    page = look(name).page
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


_OUTSIDE = """all => all.flatMap(drawing => {
  const frame = drawing.getBoundingClientRect();
  return [...drawing.querySelectorAll("text, use, path")].filter(mark => {
    const box = mark.getBoundingClientRect();
    return box.width + box.height > 0 && (box.left < frame.left - 1 || box.top < frame.top - 1
      || box.right > frame.right + 1 || box.bottom > frame.bottom + 1);
  }).map(mark => mark.textContent || mark.outerHTML);
})"""


@LOOKED_AT
@pytest.mark.parametrize("name", AUDITS)
def test_nothing_is_drawn_outside_of_its_figure(look, name):
    page = look(name).page
    assert page.locator("svg text").count() > 5
    assert page.eval_on_selector_all("svg", _OUTSIDE) == []


@LOOKED_AT
def test_words_of_a_figure_do_not_overlap(look):
    """A name and a figure stand on each line; the browser's own font decides how wide they are."""
    boxes = look("leaking").page.eval_on_selector_all(
        "#attacks svg:first-of-type text",
        """all => all.map(mark => { const b = mark.getBoundingClientRect();
          return [b.left, b.top, b.right, b.bottom, mark.textContent]; })""",
    )
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] + 3
        assert apart or other[3] <= one[1] + 3, (one[4], other[4])


@pytest.mark.slow  # a browser takes eight seconds to print
def test_on_paper_it_is_light_and_everything_is_unfolded(look):
    page = look("leaking", color_scheme="dark").page
    folded = page.locator("details dd").last
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(26, 31, 40)"
    assert all(item.is_visible() for item in page.locator("details dd").all())
    printed = page.pdf(format="A4")
    page.emulate_media(media="screen")
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000
