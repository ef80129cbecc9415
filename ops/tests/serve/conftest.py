"""What all tests of services share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ops.tests.serve.services import Running, furnish, started

from taciturn_ops.serve.batcher import ScoreRequest
from tests.jobs.predict.test_sides import trained
from tests.modules import module_of
from tests.party.sides import NEWTON


@pytest.fixture(autouse=True)
def _quick_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides that wait notice sooner that they are to end."""
    monkeypatch.setattr(module_of(ScoreRequest), "BEAT_SECONDS", 0.1)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both shares of a model and new rows; nobody changes it."""
    return trained(tmp_path_factory.mktemp("sealed"), mechanism="sealed", **NEWTON)


@pytest.fixture
def folder(model: Path, tmp_path: Path) -> Path:
    """A copy of one's own."""
    return Path(shutil.copytree(model, tmp_path / "it"))


@pytest.fixture(scope="session")
def service(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Both sides as processes, for tests that leave them as they are."""
    copy = Path(shutil.copytree(model, tmp_path_factory.mktemp("served") / "it"))
    with started(furnish(copy, bob={"max-rows-per-request": 100})) as running:
        yield running
