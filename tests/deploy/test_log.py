"""The figures of a training that runs: what remains is told at the pace since this start."""

from __future__ import annotations

import time

import pytest

from taciturn.deploy.link import Traffic
from taciturn.deploy.log import Figures, Log
from taciturn.engine.callbacks import silent
from taciturn.protocol.events import Progress
from taciturn.results.serialise import record_of


def test_what_remains_is_told_once_there_is_a_pace_and_until_the_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    figures = Figures(None, 1, Log(None, "alice", silent))

    def remaining(done: int, at: float) -> float | None:
        now[0] = at
        figures.observe(Progress(done, 20))
        return record_of(figures.so_far(Traffic())).get("remaining_seconds")

    # A resumed training is not at its beginning: the pace is that of what is done from here on.
    assert remaining(10, 110.0) is None
    assert remaining(12, 114.0) == pytest.approx(16.0)
    assert remaining(15, 120.0) == pytest.approx(10.0)
    assert remaining(20, 130.0) is None
