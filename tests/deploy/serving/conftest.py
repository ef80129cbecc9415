"""What all tests of services share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides that wait notice sooner that they are to end."""
    monkeypatch.setattr("taciturn.deploy.serving.desk.BEAT_SECONDS", 0.1)
