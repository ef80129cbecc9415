"""What all tests of services share."""

from __future__ import annotations

import pytest

from taciturn.deploy.serving import Job
from tests.modules import module_of


@pytest.fixture(autouse=True)
def _quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides that wait notice sooner that they are to end."""
    monkeypatch.setattr(module_of(Job), "BEAT_SECONDS", 0.1)
