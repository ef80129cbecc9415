"""One program, advanced by frames."""

from __future__ import annotations

from typing import Any

import pytest

from taciturn.engine.driver import Driver
from taciturn.errors import LocalProtocolError, MalformedFrame, RemoteProtocolError
from taciturn.protocol.codec import decode, encode
from taciturn.protocol.events import Event, Progress
from taciturn.protocol.messages import Hello, PartialScores
from taciturn.protocol.steps import Program, send
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.party.talks import alice, bob, residues, scores
from tests.protocol.parties import same


def silent(frame: bytes) -> None:
    """An outlet nobody listens at."""


def test_it_runs_to_the_first_wait_and_from_there_to_the_next():
    frames: list[bytes] = []
    events: list[Event] = []
    end = Driver("alice", alice(KeyedEntropy.from_seed(1), turns=2), frames.append, events.append)
    assert (end.started, end.expects) == (False, "")
    end.start()
    end.start()  # does nothing
    assert (end.started, end.finished, end.expects) == (True, False, "EncryptedResidues")
    assert (len(frames), events) == (1, [])
    end.feed(encode(residues(0)))
    assert (len(frames), events) == (2, [Progress(1, 2)])
    end.feed(encode(residues(1)))
    assert end.finished
    assert end.expects == ""
    assert events == [Progress(1, 2), Progress(2, 2)]
    assert end.result == sum(
        float(message.scores[0])
        for message in map(decode, frames)
        if isinstance(message, PartialScores)
    )


@pytest.mark.parametrize("started", [False, True])
def test_there_is_no_result_before_the_end(started):
    end = Driver("bob", bob(), silent)
    if started:
        end.start()
    with refused(LocalProtocolError):
        end.result  # noqa: B018


def test_a_frame_nobody_waits_for_is_a_bug_of_the_runner():
    end = Driver("bob", bob(turns=1), silent)
    frame = encode(scores(0, 1.0))
    with refused(LocalProtocolError):
        end.feed(frame)
    end.start()
    end.feed(frame)
    assert end.finished
    with refused(LocalProtocolError):
        end.feed(frame)


def test_a_wrong_or_malformed_message_is_the_peers_fault():
    for frame, kind in ((encode(residues(0)), RemoteProtocolError), (b"TACT", MalformedFrame)):
        end = Driver("bob", bob(), silent)
        end.start()
        with refused(kind):
            end.feed(frame)


@pytest.mark.parametrize(
    ("role", "message", "allowed"),
    [
        ("alice", scores(0, 1.0), True),
        ("bob", scores(0, 1.0), False),
        ("bob", residues(0), True),
        ("alice", residues(0), False),
        ("alice", Hello(1, "", "", 0, "", 0, 4), True),
        ("bob", Hello(1, "", "", 0, "", 0, 4), True),
    ],
)
def test_each_role_sends_only_its_own_messages(role, message, allowed):
    def speak() -> Program[None]:
        yield from send(message)

    frames: list[bytes] = []
    end = Driver(role, speak(), frames.append)
    if allowed:
        end.start()
        assert same(decode(frames[0]), message)
    else:
        with refused(LocalProtocolError, names=role):
            end.start()
        assert frames == []


@pytest.mark.parametrize("step", ["text", Progress(1, 2), None, send(scores(0, 1.0))])
def test_a_step_of_no_known_kind_is_refused(step):
    """``yield send(...)`` without ``from`` hands the driver a generator: never a step."""

    def odd() -> Any:
        yield step

    with pytest.raises(LocalProtocolError):
        Driver("alice", odd(), silent).start()
