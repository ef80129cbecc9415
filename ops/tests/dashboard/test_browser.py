"""The page in a real Chromium: it lives, says when it is stale, and carries on after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from ops.tests.dashboard.browsers import PHONE, Look, chromium
from ops.tests.dashboard.clients import served
from ops.tests.dashboard.test_dashboard_state import FIGURES, IDENTITY, STATEMENT

from taciturn.errors import PeerAbsent
from taciturn.protocol.events import Progress
from taciturn.results.parties import (
    CurvePoint,
    GrowingTable,
    LedgerPlanned,
    LinkChanged,
    ScoresOpened,
    Setup,
    Stage,
    Stages,
)
from taciturn_ops.dashboard.dashboard_state import BobDashboardState, DashboardState
from taciturn_ops.dashboard.server import open_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def full_board(*, hers: bool = False) -> DashboardState:
    """A board with something in every section; names are as long and as nasty as they come."""
    peer = MARKUP + "a-very-long-name-" * 6
    dashboard = (
        DashboardState("party", "alice", peer) if hers else BobDashboardState("party", "bob", peer)
    )
    dashboard.publish(
        Setup(replace(IDENTITY, role="alice" if hers else "bob", peer=peer), "newton")
    )
    dashboard.publish(LinkChanged(peer, "connected"))
    dashboard.publish(Stages((Stage("model", 7, 48),)))
    dashboard.observe(Progress(3, 12))
    dashboard.say(MARKUP)
    dashboard.say("a note of one word: " + "x" * 300)
    if hers:
        dashboard.publish(FIGURES)
        dashboard.publish(ScoresOpened(12, 1080, 24, 100))
    else:
        curve = tuple(CurvePoint(n, 1 / n, 1.1 / n, 1 - 0.3 / n) for n in range(1, 30))
        dashboard.publish(replace(FIGURES, curve=curve))
        dashboard.publish(LedgerPlanned(STATEMENT, 4.0))
        rows = tuple((f"l2 = {n}", 0.9, None, MARKUP) for n in range(12))
        dashboard.publish(GrowingTable("Models so far", ("settings", "AUC", "loss", "note"), rows))
    return dashboard


def test_a_page_loads_lives_goes_stale_and_carries_on(browser, tmp_path):
    """One page, from its opening over the loss of its server to another process."""
    file, dashboard = tmp_path / "watch.json", full_board()
    server, _ = open_server(dashboard, None, file)
    with server.serving():
        look = Look(browser, server.address.url)
        look.says("state", "running")
        look.says("percent", "15.1")
        look.says("bars", "pass 3 of 12")
        dashboard.observe(Progress(9, 12))
        look.says("bars", "pass 9 of 12")
        look.says("title", "Bob: taciturn party")
        look.says("loss-legend", "held-out")
        look.says("account", "label epsilon")
        look.says("table-body", "l2 = 11")
        assert look.complaints == []
        assert look.refused == []
        assert set(look.requests) - {"data:,"} == {look.url, f"{look.url}events"}
        # What is shown is text, whatever it says.
        assert look.page.locator("main img, main script, section a").count() == 0
        dashboard.publish(LinkChanged("bob", "broken"))
        look.says("state", "link broken")
    # The server ends without having been told how the work ended: as after a kill.
    look.says("state", "connection lost")
    look.says("banner", "The figures below are old")
    assert "stale" in look.page.evaluate("document.body.className")
    look.says("bars", "pass 9 of 12")
    other = full_board()
    again, _ = open_server(other, None, file)
    assert again.address == server.address
    with again.serving():
        look.says("banner", "Another process took over")
        look.says("bars", "pass 3 of 12")
        assert "stale" not in look.page.evaluate("document.body.className")
        other.end(PeerAbsent("nobody came to bob.secret.example"))
    look.says("state", "failed")
    look.says("banner", "PeerAbsent (exit code 43)")
    assert "bob.secret.example" not in look.page.content()
    look.page.close()


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
@pytest.mark.parametrize("hers", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_nothing_sticks_out_on_a_phone_or_a_desk(browser, hers, scheme):
    """The slow ones are the same with other colours and fewer cards."""
    with served(full_board(hers=hers)) as server:
        look = Look(browser, server.address.url, viewport=PHONE, color_scheme=scheme)
        look.says("bars", "pass 3 of 12")
        assert look.sticks_out() == 0
        for width in (320, 700, 1200):
            look.page.set_viewport_size({"width": width, "height": 900})
            assert look.sticks_out() == 0, width
        ground = look.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(245, 246, 248)", "dark": "rgb(18, 21, 26)"}[scheme]
        assert look.page.locator("#loss-card").is_visible() != hers
        assert look.complaints == []
        look.page.close()
