"""Every mechanism between parties: the joined table's model, whatever stops, kills or cuts a side.

What the parties have at the end is, number by number, what one process has that is fed their
entropy. A mechanism joins by one line in ``AGREEMENTS``.
"""

from __future__ import annotations

import json

import pytest

from taciturn.numerics.convergence import UNMEASURED
from tests.party.sides import (
    records,
)
from tests.party.test_training import (
    ALWAYS,
    BATCHES,
    CASES,
    PASSES,
    Trained,
    group_shape,
    seldom,
)


@pytest.fixture(scope="module", params=seldom([(case,) for case in CASES], [(c,) for c in ALWAYS]))
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    name, alices = request.param
    star = group_shape(tmp_path_factory.mktemp("trained"), name, alices)
    return Trained(name, star, records(star.run()))


def test_every_pass_is_a_point_of_the_curve_and_a_step_of_the_figures(trained):
    if "mutual" in trained.name:
        # With so few rows nobody is told anything of the training's losses.
        assert "curve" not in trained.bob["metrics"]
        assert "converged" not in trained.bob
        assert trained.bob["converged_reason"] == UNMEASURED
        assert not {"opened_change", "scores_beyond_range", "last_change"} & trained.bob.keys()
        assert not {"converged", "scores_beyond_range"} & trained.ends["alice"].keys()
        return
    points = range(1, PASSES + 1) if trained.newton else (BATCHES, 2 * BATCHES)
    curve = trained.bob["metrics"]["curve"]
    assert [point["iteration"] for point in curve] == [*points]
    for point in curve:
        assert {"train_loss", "held_out_loss", "held_out_auc"} < point.keys()
    if "told" not in trained.name:  # noise is added at the end
        # On the way the rounded table's rows are looked at, and the last search still follows.
        final = trained.bob["metrics"]["held_out"]["loss"]
        assert curve[-1]["held_out_loss"] == pytest.approx(final, abs=0.03)
    for name in trained.star.all:
        figures = json.loads(trained.star.file(name, "metrics.json").read_text())
        assert figures["iterations"] == figures["iterations_total"] == points[-1]
    entries = trained.star.file("bob", "log").read_text().splitlines()
    looks = [entry for entry in map(json.loads, entries) if "held_out_loss" in entry]
    assert len(looks) == len(curve)
    assert "held_out" not in trained.star.file(trained.star.names[0], "log").read_text()
