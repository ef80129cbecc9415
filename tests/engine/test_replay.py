"""Replay: one party again over a recording, with no peer present."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taciturn.engine.pair import run_pair
from taciturn.engine.transcript import Recorder, Transcript, replay
from taciturn.errors import TranscriptError
from taciturn.protocol.events import Event
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.party.talks import TURNS, alice, bob

COINS = KeyedEntropy.from_seed(9)


def talk() -> tuple[Transcript, float, int]:
    recorder = Recorder()
    total, heard = run_pair(alice(COINS.fork("a")), bob(), tap=recorder)
    return recorder.finish({}), total, heard


def test_each_side_says_and_gives_the_same_again():
    recording, total, heard = talk()
    seen: list[Event] = []
    assert replay(alice(COINS.fork("a")), recording, observe=seen.append) == total
    assert len(seen) == TURNS
    assert replay(bob(), recording, role="bob") == heard


def test_other_coins_are_noticed_at_the_first_frame_that_differs():
    recording, _, _ = talk()
    with refused(TranscriptError):
        replay(alice(COINS.fork("b")), recording)


def test_without_verification_other_coins_give_another_result():
    recording, total, _ = talk()
    assert replay(alice(COINS.fork("b")), recording, verify=False) != total


@pytest.mark.parametrize("turns", [1, TURNS - 1])
def test_a_program_that_finishes_early_is_refused(turns):
    recording, _, _ = talk()
    with refused(TranscriptError):
        replay(alice(COINS.fork("a"), turns=turns), recording)
    # What the peer said and nobody heard is enough.
    with refused(TranscriptError):
        replay(alice(COINS.fork("a"), turns=turns), recording, verify=False)


def test_a_program_that_wants_more_is_refused():
    recording, _, _ = talk()
    with refused(TranscriptError):
        replay(alice(COINS.fork("a"), turns=TURNS + 1), recording)
    with refused(TranscriptError):
        replay(alice(COINS.fork("a"), turns=TURNS + 1), recording, verify=False)


@pytest.mark.parametrize("kept", range(2 * TURNS))
def test_a_recording_cut_anywhere_is_refused(kept):
    recording, _, _ = talk()
    cut = replace(recording, records=recording.records[:kept])
    with refused(TranscriptError):
        replay(alice(COINS.fork("a")), cut)


@pytest.mark.parametrize("dropped", range(0, 2 * TURNS, 2))
def test_a_recording_that_lacks_one_of_her_frames_is_refused(dropped):
    recording, _, _ = talk()
    less = recording.records[:dropped] + recording.records[dropped + 1 :]
    with refused(TranscriptError):
        replay(alice(COINS.fork("a")), replace(recording, records=less))


def test_a_foreign_message_in_the_recording_is_refused():
    recording, _, _ = talk()
    swapped = (recording.records[0], ("bob", recording.records[0][1]))
    with refused(TranscriptError):
        replay(alice(COINS.fork("a")), replace(recording, records=swapped))  # type: ignore[arg-type]
