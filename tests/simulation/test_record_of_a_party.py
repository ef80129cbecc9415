"""A party's own recording is not a simulation's, and an audit says how it is audited."""

from __future__ import annotations

import pytest

from taciturn.engine import Transcript
from taciturn.errors import TranscriptError
from taciturn.simulation import RecordedRun


def test_a_partys_recording_is_not_taken_for_a_simulations():
    with pytest.raises(TranscriptError, match="a transcript of one party") as refused:
        RecordedRun.of(Transcript({"kind": "party", "role": "alice"}, ()))
    assert 'party="alice.toml"' in refused.value.hint
