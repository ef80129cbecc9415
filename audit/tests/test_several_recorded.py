"""Several Alices in one process: the centralised model, refusals, recordings and records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taciturn
from taciturn.engine.transcript import Transcript
from taciturn_audit.adversaries import outcome_view


@pytest.mark.parametrize("parties", [2, 12])
def test_a_recording_has_all_links_and_each_alice_can_be_replayed_from_it(parties, tmp_path):
    target = tmp_path / "run.transcript"
    result = taciturn.train(
        dataset="breast-cancer",
        mechanism="none",
        scheme="clear",
        seed=1,
        epochs=1,
        parties=parties,
        record=target,
    )
    loaded, outcome = Transcript.load(target), result.outcomes[0]
    assert loaded.links == parties
    names = [f"alice-{number}" for number in range(1, parties + 1)]
    assert loaded.header["parties"] == names
    assert {*names} < loaded.header["coins"].keys()
    assert "alice" not in loaded.header["coins"]
    assert loaded.footer["record"]["parties"][0]["name"] == "alice-1"
    seen = outcome_view(replace(outcome, transcript=loaded)).observations.weights
    assert np.array_equal(seen, outcome.alice_weights)
