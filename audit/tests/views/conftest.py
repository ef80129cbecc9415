"""One small simulated run, made once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from taciturn.data.datasets import load
from taciturn.engine.transcript import Transcript
from taciturn.jobs.train.simulation import Outcome, simulate_training
from taciturn.privacy.solvers import resolved
from taciturn.settings.schema import Settings
from taciturn_audit.adversaries import outcome_view
from taciturn_audit.views.alice_view import AliceView


@dataclass(frozen=True)
class Run:
    """A run, its recording, and Alice's view of it."""

    outcome: Outcome
    transcript: Transcript

    @property
    def view(self) -> AliceView:
        return outcome_view(self.outcome)


@pytest.fixture(scope="session")
def run() -> Run:
    settings = resolved(
        Settings.from_mapping(
            {
                "dataset": "breast-cancer",
                "mechanism": "none",
                "scheme": "clear",
                "epochs": 2,
                "batch-size": 16,
                "alice-columns": "half",
                "seed": 3,
            }
        )
    )
    outcome = simulate_training(settings, load("breast-cancer"), keep=True)
    assert outcome.transcript is not None
    return Run(outcome, outcome.transcript)
