"""A party's own recording has no labels beside it, and an audit says so."""

from __future__ import annotations

import pytest

from taciturn.engine.transcript import Transcript
from taciturn.errors import TranscriptError
from taciturn.simulation.record import RecordedRun


def test_a_partys_recording_is_not_taken_for_a_simulations():
    with pytest.raises(TranscriptError, match="a transcript of one party") as refused:
        RecordedRun.of(Transcript({"kind": "party", "role": "alice"}, ()))
    assert "train with record" in refused.value.hint
