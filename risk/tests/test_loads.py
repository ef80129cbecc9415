"""The page of Bob's model is made by a process of its own, after the training."""

from __future__ import annotations

from tests.party.sides import MECHANISMS
from tests.party.test_loads import furnish, loaded, within


def test_a_training_leaves_the_models_page_and_draws_nothing_itself(tmp_path):
    furnish(tmp_path, {**MECHANISMS["sealed"], "scheme": "bfv"})
    modules = loaded(tmp_path, {"alice": ["--json"], "bob": []})
    page = tmp_path / "bob.model.html"
    assert "<title>KS " in page.read_text()
    assert page.stat().st_mode & 0o077 == 0
    drawing = ("taciturn_risk.scorecard.build", "jinja2", "matplotlib")
    assert [within(ours, *drawing) for ours in modules.values()] == [set(), set()]
