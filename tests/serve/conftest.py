"""A model to serve, and a service of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.party.serving.conftest import folder, model  # noqa: F401 - fixtures
from tests.serve.services import Running, furnish, started


@pytest.fixture(scope="session")
def service(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:  # noqa: F811
    """Both sides as processes, for tests that leave them as they are."""
    copy = Path(shutil.copytree(model, tmp_path_factory.mktemp("served") / "it"))
    with started(furnish(copy, bob={"request-rows": 100})) as running:
        yield running
