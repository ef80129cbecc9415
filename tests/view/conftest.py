"""One small simulated run, made once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from taciturn.data.datasets import load
from taciturn.engine.transcript import Transcript
from taciturn.protocol.events import Event
from taciturn.protocol.observations import GradientSeen
from taciturn.settings.schema import Settings
from taciturn.simulation.outcome import Outcome
from taciturn.simulation.run import simulate
from taciturn.view.alice_view import AliceView


@dataclass(frozen=True)
class Run:
    """A run, what its observer saw while it happened, and Alice's view of it."""

    outcome: Outcome
    live: tuple[GradientSeen, ...]
    transcript: Transcript

    @property
    def view(self) -> AliceView:
        return AliceView.of(self.transcript, self.outcome.data.alice_train)


@pytest.fixture(scope="session")
def run() -> Run:
    settings = Settings.of(
        {
            "dataset": "breast-cancer",
            "mechanism": "none",
            "scheme": "clear",
            "epochs": 2,
            "batch-size": 16,
            "alice-columns": "half",
            "seed": 3,
        }
    ).resolved()
    seen: list[GradientSeen] = []

    def keep(event: Event) -> None:
        if isinstance(event, GradientSeen):
            seen.append(event)

    outcome = simulate(settings, load("breast-cancer"), keep=True, observe=keep)
    assert outcome.transcript is not None
    return Run(outcome, tuple(seen), outcome.transcript)
