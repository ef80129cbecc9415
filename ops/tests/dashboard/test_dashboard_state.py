"""What a page shows: both sides' content, and on Alice's nothing that depends on a label."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from taciturn.engine.callbacks import Callbacks
from taciturn.errors import ConnectionLost, PrivacyError
from taciturn.numerics.metrics import evaluate
from taciturn.party.telemetry import MetricsPublisher
from taciturn.privacy.events import Statement
from taciturn.protocol.events import Aligning, Event, HeldOutSeen, Progress, SimulatedStep
from taciturn.results.parties import (
    CurvePoint,
    GrowingTable,
    LedgerPlanned,
    LinkChanged,
    News,
    ScoresOpened,
    Setup,
    Stage,
    Stages,
)
from taciturn.rng import KeyedEntropy
from taciturn_ops.dashboard.dashboard_state import MOST_LINES, BobDashboardState, DashboardState
from tests.expected import refused
from tests.modules import module_of
from tests.party.sides import MECHANISMS, run_both, write_config, write_tables
from tests.report import samples
from tests.seldom import seldom

FIGURES = replace(
    samples.FIGURES,
    iterations_total=12,
    loss_recent=None,
    seconds=9.0,
    waiting_seconds=3.0,
    computing_seconds=6.0,
    bytes_sent=1000,
    bytes_received=2000,
)
STATEMENT = Statement(0.5, 0.5, 0.25, 4, 2.0, 1.0, 0.9, 1e-6, "noise")
METRICS = evaluate(np.array([-1.0, 1.0]), np.array([0, 1], dtype=np.int8))
IDENTITY = replace(samples.IDENTITY, role="alice", peer="bob", mechanism="sealed", rows=90)
POINT = CurvePoint(3, 0.5)
BOBS_NEWS: dict[str, News] = {
    "ledger": LedgerPlanned(STATEMENT),
    "table": GrowingTable("models", ("l2", "auc"), ((0.1, 0.9),)),
    "loss": replace(FIGURES, loss_recent=0.5),
    "curve": replace(FIGURES, curve=(POINT,)),
}
BOBS_EVENTS: dict[str, Event] = {
    "held-out figures": HeldOutSeen(3, METRICS),
    "scores": Progress(1, 2, np.arange(2), np.zeros(2)),
    "simulation": SimulatedStep(1, 1, 1, 1, 1),
}


@pytest.mark.parametrize("news", BOBS_NEWS.values(), ids=BOBS_NEWS)
def test_alices_board_refuses_what_depends_on_labels_and_bobs_takes_it(news):
    dashboard, before = DashboardState("party"), DashboardState("party").snapshot()
    with refused(PrivacyError):
        dashboard.publish(news)
    assert timeless(dashboard.snapshot()) == timeless(before)
    his = BobDashboardState("party")
    empty = timeless(his.snapshot())
    his.publish(news)
    changed = timeless(his.snapshot())
    assert changed != empty or news == BOBS_NEWS["loss"]


@pytest.mark.parametrize("event", BOBS_EVENTS.values(), ids=BOBS_EVENTS)
def test_alices_board_refuses_events_of_bobs_program(event):
    with refused(PrivacyError):
        DashboardState("party").observe(event)
    BobDashboardState("party").observe(event)


def test_alices_board_has_no_place_for_what_is_bobs():
    hers, his = (
        DashboardState("party").snapshot().keys(),
        BobDashboardState("party").snapshot().keys(),
    )
    assert his - hers == {"curve", "table"}
    assert hers <= his


def test_what_bob_told_of_the_model_is_not_on_alices_page():
    dashboard = DashboardState("party")
    dashboard.say("quality learnt: rows 40, accuracy 91")
    dashboard.say("connected")
    assert [line["text"] for line in dashboard.snapshot()["lines"]] == ["connected"]


TIMES = {"at", "since", "started", "seconds", "waiting", "computing", "remaining", "rate"}


def timeless(value: Any) -> Any:
    """A snapshot without times, rates and seconds."""
    if isinstance(value, dict):
        return {
            name: timeless(item) for name, item in value.items() if name not in TIMES | {"pace"}
        }
    return [timeless(item) for item in value] if isinstance(value, list) else value


def shuffle_labels(folder: Path) -> None:
    """Other labels for the same rows: about half of them change."""
    table = pl.read_csv(folder / "bob.csv")
    order = np.random.default_rng(5).permutation(table.height)
    table.with_columns(sick=table["sick"].gather(order)).write_csv(folder / "bob.csv")


def watched(folder: Path, agreement: dict[str, Any], *, permute: bool) -> list[Any]:
    """Every snapshot of Alice's board, after each thing that it is told."""
    folder.mkdir()
    write_tables(folder, rows=80)
    if permute:
        shuffle_labels(folder)
    for role in ("alice", "bob"):
        write_config(folder, role, agreement={"epochs": 2, **agreement})
    dashboard, snapshots, bulletins = (
        DashboardState("party", "alice", "bob"),
        list[Any](),
        list[MetricsPublisher](),
    )
    begin = MetricsPublisher.begin

    def note_bulletin(publisher: MetricsPublisher, setup: Setup) -> None:
        if setup.identity.role == "alice":
            bulletins.append(publisher)
        begin(publisher, setup)

    def note() -> None:
        snapshots.append(timeless(dashboard.snapshot()))

    def observe(event: Event) -> None:
        dashboard.observe(event)
        if isinstance(event, Progress):
            # What the party's own thread does each second.
            bulletins[0].announce()
        note()

    def say(text: str) -> None:
        dashboard.say(text)
        note()

    def publish(news: News) -> None:
        dashboard.publish(news)
        note()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetricsPublisher, "begin", note_bulletin)
        ends = run_both(folder, watch={"alice": Callbacks(say, observe, publish=publish)})
    assert ends.records
    return snapshots


# Here Bob tells her how good the model is, which her screen repeats and her page does not.
AGREEMENTS = {**MECHANISMS, "none": {"mechanism": "none", "share-metrics": "quality"}}


@pytest.mark.parametrize("mechanism", seldom([*AGREEMENTS], always=["none", "sealed"]))
def test_alices_page_is_the_same_whatever_the_labels_are(tmp_path, monkeypatch, mechanism):
    """The same training with the same coins, of true and of permuted labels."""
    monkeypatch.setattr(KeyedEntropy, "from_system", lambda: KeyedEntropy(bytes(32)))
    # At which moment of a training a second is over is no business of this test.
    monkeypatch.setattr(module_of(MetricsPublisher), "EVERY_SECONDS", 1e6)
    agreement = AGREEMENTS[mechanism]
    true = watched(tmp_path / "true", agreement, permute=False)
    permuted = watched(tmp_path / "permuted", agreement, permute=True)
    assert len(true) > 10
    assert true == permuted
    # They are no empty pages, and the labels did make a difference to Bob.
    assert true[-1]["crossed"]["bytes_received"] > 1000
    assert true[-1]["account"]["entries"]
    assert true[-1]["work"]["bars"]
    losses = [
        json.loads((tmp_path / name / "bob.metrics.json").read_text())["curve"]
        for name in ("true", "permuted")
    ]
    assert losses[0] != losses[1] or mechanism == "mutual"


def test_a_page_shows_what_a_party_publishes():
    now = [1000.0]
    dashboard = DashboardState(
        "party", "alice", "bob", clock=lambda: now[0], wall=lambda: 5.0 + now[0]
    )
    dashboard.publish(Setup(IDENTITY, "newton"))
    dashboard.publish(LinkChanged("bob", "waiting"))
    now[0] += 10
    dashboard.publish(LinkChanged("bob", "connected"))
    dashboard.publish(LinkChanged("bob", "broken"))
    dashboard.publish(LinkChanged("bob", "connected"))
    dashboard.publish(ScoresOpened(12, 1080, 24, None))
    dashboard.observe(Progress(0, 12))
    dashboard.sample()
    now[0] += 4
    dashboard.observe(Progress(2, 12))
    dashboard.publish(FIGURES)
    dashboard.sample()
    shown = dashboard.snapshot()
    assert json.loads(json.dumps(shown)) == json.loads(json.dumps(shown, allow_nan=False))
    assert ["solver", "newton"] in [list(fact) for fact in shown["about"]["facts"]]
    assert shown["links"] == [
        {"peer": "bob", "state": "connected", "since": 1015.0, "connections": 2}
    ]
    assert shown["work"]["bars"] == [{"name": "pass", "done": 2, "total": 12}]
    assert shown["work"]["remaining"] == pytest.approx(20.0)
    assert shown["work"]["rate"] == pytest.approx(0.5)
    assert shown["pace"] == [(250, 500)]
    assert shown["spent"] == {"waiting": 3.0, "computing": 6.0}
    assert [list(entry) for entry in shown["account"]["entries"]][2][1] == "24"


def test_work_of_several_levels_and_a_table_that_grows():
    dashboard = BobDashboardState("study", "both")
    dashboard.publish(Stages((Stage("model", 7, 48),)))
    dashboard.observe(Progress(3, 12))
    table = GrowingTable("models so far", ("l2", "AUC"), ((0.1, 0.91), (0.2, math.nan)))
    dashboard.publish(table)
    shown = dashboard.snapshot()
    assert [(bar["name"], bar["done"], bar["total"]) for bar in shown["work"]["bars"]] == [
        ("model", 7, 48),
        ("pass", 3, 12),
    ]
    assert shown["table"]["columns"] == ["l2", "AUC"]
    assert len(shown["table"]["rows"]) == 2
    # What is waited for takes nothing from how far the work is.
    dashboard.announce("waiting for bob")
    # exact: the test's own value
    assert dashboard.snapshot()["work"]["activity"] == "waiting for bob"
    assert len(dashboard.snapshot()["work"]["bars"]) == 2
    dashboard.progress(2, 5)
    assert dashboard.snapshot()["work"]["bars"][-1] == {"name": "step", "done": 2, "total": 5}
    dashboard.observe(Aligning(5, 10))
    assert dashboard.snapshot()["work"]["bars"][-1]["name"] == "id"


def test_how_it_ended_is_said_by_its_kind_and_never_by_a_traceback():
    dashboard = DashboardState("party")
    dashboard.end(ConnectionLost("a secret place", where="bob.csv"))
    end = dashboard.snapshot()["end"]
    assert (end["state"], end["kind"], end["code"]) == ("failed", "ConnectionLost", 40)
    assert end["words"]
    assert "secret" not in json.dumps(end)
    for problem, state in ((None, "done"), (KeyboardInterrupt(), "interrupted")):
        dashboard.end(problem)
        assert dashboard.snapshot()["end"]["state"] == state
    dashboard.end(ValueError("row p0017"))
    assert "p0017" not in json.dumps(dashboard.snapshot()["end"])


def test_lines_are_few_short_and_printable():
    dashboard = DashboardState("party")
    for number in range(3 * MOST_LINES):
        dashboard.say(f"line {number}")
    dashboard.say("\x1b[31m\n" + "long " * 1000)
    lines = dashboard.snapshot()["lines"]
    assert len(lines) == MOST_LINES
    assert len(lines[-1]["text"]) <= 400
    assert lines[-1]["text"].isprintable()
