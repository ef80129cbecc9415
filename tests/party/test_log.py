"""The figures of a training that runs: what remains is told at the pace since this start."""

from __future__ import annotations

import time

import pytest

from taciturn.engine.callbacks import noop
from taciturn.party.link import Traffic
from taciturn.party.log import Figures, Log
from taciturn.protocol.events import Progress
from taciturn.results.serialise import record_of


def test_what_remains_is_told_once_there_is_a_pace_and_until_the_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    figures = Figures(None, 1, Log(None, "alice", noop))

    def remaining(done: int, at: float) -> float | None:
        now[0] = at
        figures.observe(Progress(done, 20))
        return record_of(figures.so_far(Traffic())).get("remaining_seconds")

    # A resumed training is not at its beginning: the pace is that of what is done from here on.
    assert remaining(10, 110.0) is None
    assert remaining(12, 114.0) == pytest.approx(16.0)
    assert remaining(15, 120.0) == pytest.approx(10.0)
    assert remaining(20, 130.0) is None


def test_a_wait_counts_while_it_lasts_and_so_does_one_for_a_broken_link(monkeypatch):
    """A counter that Prometheus reads must not fall, and computing is what is not waiting."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    figures = Figures(None, 1, Log(None, "alice", noop))
    link = Traffic(since=100.0)

    def spent(at: float) -> tuple[float, float]:
        now[0] = at
        so_far = figures.so_far(Traffic.sum([link, Traffic()]))
        return so_far.waiting_seconds, so_far.computing_seconds

    assert spent(103.0) == (0.0, 3.0)
    link.waits_since = 103.0
    assert spent(110.0) == (7.0, 3.0)
    link.waiting, link.waits_since = 8.0, None
    assert spent(112.0) == (8.0, 4.0)
    # Before the first connection nothing is counted, however long it is waited for.
    first = Traffic(waits_since=1.0)
    assert first.waited(50.0) == 0.0
    first.since = 40.0
    assert first.waited(50.0) == 10.0
