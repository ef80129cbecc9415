"""Both parties in one thread: in order, and a standstill has a name."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from taciturn.engine.pair import run_pair
from taciturn.errors import Deadlock, RemoteProtocolError
from taciturn.protocol.codec import encode
from taciturn.protocol.events import Event, Progress
from taciturn.protocol.messages import EncryptedResidues, Hello, PartialScores
from taciturn.protocol.steps import Program, emit, receive, send
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.party.talks import TURNS, alice, bob, residues, scores

COINS = KeyedEntropy.from_seed(5)


def test_tap_and_observer_get_everything_in_the_order_of_sending():
    heard: list[tuple[str, bytes]] = []
    seen: list[Event] = []
    run_pair(
        alice(COINS.fork("a")), bob(), tap=lambda *frame: heard.append(frame), observe=seen.append
    )
    draws = COINS.fork("a")
    expected: list[tuple[str, bytes]] = []
    for turn in range(TURNS):
        expected.append(("alice", encode(scores(turn, float(draws.uniform((1,))[0])))))
        expected.append(("bob", encode(residues(turn, b"x" * turn))))
    assert heard == expected
    assert seen == [Progress(turn + 1, TURNS) for turn in range(TURNS)]


def test_several_messages_may_wait_in_line():
    def speak() -> Program[None]:
        for turn in range(4):
            yield from send(scores(turn, 1.0))

    def listen() -> Program[list[int]]:
        turns = []
        for _ in range(4):
            turns.append((yield from receive(PartialScores)).iteration)
        return turns

    assert run_pair(speak(), listen()) == (None, [0, 1, 2, 3])


def test_what_arrives_has_crossed_the_codec():
    """The receiver gets another object: nothing of the sender's memory is shared."""
    sent = scores(0, 1.0, 2.0)

    def speak() -> Program[None]:
        yield from send(sent)

    def listen() -> Program[PartialScores]:
        return (yield from receive(PartialScores))

    _, heard = run_pair(speak(), listen())
    assert heard is not sent
    assert not np.shares_memory(heard.scores, sent.scores)
    assert heard.scores.tolist() == [1.0, 2.0]


def forgetful_alice() -> Program[None]:
    send(scores(0, 1.0))
    yield from receive(EncryptedResidues)


def forgetful_bob() -> Program[None]:
    yield from receive(PartialScores)
    send(residues(0))
    yield from receive(Hello)


@pytest.mark.parametrize(
    ("hers", "his", "named"),
    [
        (forgetful_alice, bob, ("EncryptedResidues", "PartialScores")),
        (partial(alice, COINS), forgetful_bob, ("EncryptedResidues", "Hello")),
        (partial(alice, COINS, turns=2), partial(bob, turns=1), "EncryptedResidues"),
        (partial(alice, COINS, turns=1), partial(bob, turns=2), "PartialScores"),
    ],
    ids=["Alice forgets yield from", "Bob does", "Bob leaves early", "Alice does"],
)
def test_a_standstill_is_a_deadlock_that_names_what_is_waited_for(hers, his, named):
    with refused(Deadlock, names=named):
        run_pair(hers(), his())


def chatty(role: str) -> Program[None]:
    yield from send(Hello(1, role, "", 0, "", 0, 4))


def silent() -> Program[None]:
    return
    yield


def test_a_message_to_someone_who_has_finished_is_refused():
    with refused(RemoteProtocolError):
        run_pair(chatty("alice"), silent())
    with refused(RemoteProtocolError):
        run_pair(silent(), chatty("bob"))
    assert run_pair(silent(), silent()) == (None, None)


class Watched:
    """A program that notes its end. Tests hold on to it, or going out of scope would end it."""

    def __init__(self) -> None:
        self.closed = False

    def run(self) -> Program[None]:
        try:
            yield from receive(Hello)
        finally:
            self.closed = True


def failing(problem: Exception) -> Program[None]:
    yield from emit(Progress(0, 1))
    raise problem


def test_an_error_in_bob_goes_through_and_closes_alice():
    waiting, problem = Watched(), ZeroDivisionError("in bob")
    held = waiting.run()
    with pytest.raises(ZeroDivisionError) as raised:
        run_pair(held, failing(problem))
    assert raised.value is problem
    assert waiting.closed


def test_an_error_in_alice_goes_through_and_closes_bob():
    waiting = Watched()

    def late() -> Program[None]:
        yield from send(scores(0, 1.0))
        yield from receive(EncryptedResidues)
        raise ZeroDivisionError

    def patient() -> Program[None]:
        yield from receive(PartialScores)
        yield from send(residues(0))
        yield from waiting.run()

    held = patient()
    with pytest.raises(ZeroDivisionError):
        run_pair(late(), held)
    assert waiting.closed


@pytest.mark.parametrize("place", ["tap", "observe"])
def test_an_error_in_a_listener_closes_both(place):
    waiting, ended = Watched(), []

    def loud() -> Program[None]:
        try:
            yield from emit(Progress(0, 1))
            yield from send(Hello(1, "", "", 0, "", 0, 4))
        finally:
            ended.append("loud")

    def fail(*_: object) -> None:
        raise KeyError(place)

    listener: dict[str, Any] = {place: fail}
    held = waiting.run(), loud()
    with pytest.raises(KeyError, match=place):
        run_pair(*held, **listener)
    assert waiting.closed
    assert ended == ["loud"]
