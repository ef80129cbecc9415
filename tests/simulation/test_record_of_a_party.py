"""A party's own recording is not a simulation's, and an audit says how it is audited."""

from __future__ import annotations

from taciturn.engine.transcript import Transcript
from taciturn.errors import TranscriptError
from taciturn.jobs.train.record import RecordedRun
from tests.expected import refused


def test_a_partys_recording_is_not_taken_for_a_simulations():
    with refused(TranscriptError, names='party="alice.toml"'):
        RecordedRun.from_transcript(Transcript({"kind": "party", "role": "alice"}, ()))
