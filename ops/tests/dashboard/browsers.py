"""A page in a real Chromium, and what it did while it was looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.system import browser_path
from tests.waiting import HANG

if TYPE_CHECKING:
    # Loaded by the tests that open a browser alone: it is large.
    from playwright.sync_api import Browser, ViewportSize

DESK: ViewportSize = {"width": 1200, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Chromium, or a skip by name."""
    from playwright.sync_api import expect, sync_playwright

    path = browser_path()
    expect.set_options(timeout=1000 * HANG)
    with sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=path, args=list(ARGUMENTS), timeout=1000 * HANG
        )
        yield running
        running.close()


class Look:
    """A page at an address."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url
        self.page = browser.new_page(**{"viewport": DESK, **options})
        self.page.set_default_timeout(1000 * HANG)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        # A violation of the policy is not always said on the console.
        self.page.add_init_script(
            "window.refused = []; addEventListener('securitypolicyviolation',"
            " event => window.refused.push(event.violatedDirective))"
        )
        self.page.goto(url)

    def says(self, id: str, text: str) -> None:
        """Waits until an element has this text within."""
        from playwright.sync_api import expect

        expect(self.page.locator(f"#{id}")).to_contain_text(text)

    def sticks_out(self) -> int:
        """By how many pixels the page is wider than the window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width

    @property
    def refused(self) -> list[str]:
        names: list[str] = self.page.evaluate("window.refused")
        return names
