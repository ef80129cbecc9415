"""What the packages of an extra are asked of, before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from taciturn.__main__ import dispatch
from taciturn.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]


def test_a_model_report_without_its_packages_is_refused_before_the_training(monkeypatch, tmp_path):
    table, page = str(ROOT / "examples" / "loans.csv"), str(tmp_path / "model.html")
    monkeypatch.setattr("taciturn.extras.is_installed", lambda package: package != "scipy")
    monkeypatch.setattr("taciturn.api.train", lambda **settings: pytest.fail("it trained"))
    with pytest.raises(ConfigError) as raised:
        dispatch(["train", "--data", table, "--model-report", page])
    assert "scipy" in raised.value.message
