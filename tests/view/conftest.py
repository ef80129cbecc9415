"""One small simulated run, made once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from taciturn.data import load
from taciturn.engine import Transcript
from taciturn.protocol import Event, GradientSeen
from taciturn.settings import Settings
from taciturn.simulation import Outcome, simulate
from taciturn.view import AliceView


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
