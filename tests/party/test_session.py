"""Two parties meet: one name, one end, and a reason for whoever is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taciturn.engine.callbacks import Callbacks
from taciturn.errors import AgreementError, OutputError, PeerStopped, StateError
from taciturn.jobs.align.declaration import ALIGNMENT
from taciturn.party.config import PartyConfig
from taciturn.party.journal import Meta, Past
from taciturn.party.resume import RunHooks
from taciturn.party.session import Meeting, PeerSession
from taciturn.protocol.codec import encode
from taciturn.protocol.events import Event, Progress
from taciturn.protocol.messages import BudgetSpent
from taciturn.protocol.steps import Program, receive
from taciturn.rng import KeyedEntropy
from tests.expected import refused
from tests.party.sides import write_config
from tests.party.talks import TURNS, alice, bob, scores
from tests.party.test_link import both
from tests.party.wires import Wire
from tests.waiting import HANG

COINS = KeyedEntropy.from_seed(5)


def session(folder: Path, role: str, wire: Wire, callbacks: Callbacks | None = None) -> PeerSession:
    config = PartyConfig.read(write_config(folder, role))
    return PeerSession(config, wire.endpoint(serves=role == "bob"), callbacks or Callbacks())


def meet(
    folder: Path,
    acts: dict[str, Callable[[Meeting], Any]],
    callbacks: Callbacks | None = None,
) -> list[Any]:
    """Both sides of a folder meet, each in a thread; how they ended."""
    wire = Wire()

    def side(role: str) -> Any:
        with session(folder, role, wire, callbacks).meet(ALIGNMENT) as meeting:
            return acts[role](meeting)

    return both(lambda: side("alice"), lambda: side("bob"))


def finished(program: Program[Any]) -> Callable[[Meeting], Any]:
    def act(meeting: Meeting) -> Any:
        result = meeting.run(program)
        return result, meeting.name, meeting.finish(HANG), meeting.traffic.received

    return act


def test_both_know_the_meeting_by_one_name_and_confirm_its_end(tmp_path):
    seen: list[Event] = []
    hers, his = meet(
        tmp_path,
        {"alice": finished(alice(COINS)), "bob": finished(bob())},
        Callbacks(observe=seen.append),
    )
    assert his == (TURNS, hers[1], True, TURNS)
    assert hers[1:] == (his[1], True, TURNS)
    assert [event for event in seen if isinstance(event, Progress)][-1] == Progress(TURNS, TURNS)


def failing(problem: BaseException) -> Callable[[Meeting], Any]:
    def program() -> Program[None]:
        yield from receive(type(scores(0)))
        raise problem

    return lambda meeting: meeting.run(program())


@pytest.mark.parametrize(
    ("problem", "heard"),
    [
        (AgreementError("rows-differ"), "rows-differ"),
        (OutputError("no room", where="a secret"), "does not begin"),
        (KeyboardInterrupt(), ""),
    ],
)
def test_a_side_that_gives_up_says_so_in_its_log_and_to_its_peer(tmp_path, problem, heard):
    hers, his = meet(tmp_path, {"alice": finished(alice(COINS)), "bob": failing(problem)})
    assert his is problem
    assert isinstance(hers, PeerStopped)
    assert heard in hers.message
    assert "secret" not in hers.message
    for role, reason in (("bob", getattr(problem, "message", "")), ("alice", heard)):
        lines = (tmp_path / f"{role}.log").read_text().splitlines()
        last = json.loads(lines[-1])
        assert last["event"] == "aborting"
        assert reason in last["reason"]


OTHER_KIND = encode(BudgetSpent(0))
OTHER_VERSION = b"TACT\xfe" + encode(scores(0, 0.5))[5:]


@pytest.mark.parametrize(
    "frame", [OTHER_KIND, OTHER_VERSION, b""], ids=["another-kind", "another-version", "nothing"]
)
def test_a_journal_of_another_program_is_refused_before_a_word_is_sent(tmp_path, frame):
    past = Past(Meta({}, b"", b"a" * 16), sent=[frame])
    side = session(tmp_path, "alice", Wire())
    with refused(StateError), side.meet(1, past) as meeting:
        meeting.run(alice(COINS))


def test_what_a_journal_holds_stands_for_what_is_said(tmp_path):
    """The frame that was sent before the stop goes again, not the one that is made anew."""
    before = encode(scores(0, 0.125))
    heard: list[tuple[str, bytes]] = []
    wire, past = Wire(), Past(Meta({}, b"", b"a" * 16), sent=[before])

    def resumed() -> Any:
        with session(tmp_path, "alice", wire).meet(ALIGNMENT, past) as meeting:
            meeting.run(alice(COINS), RunHooks(tap=lambda *frame: heard.append(frame)))
            meeting.finish(HANG)

    def fresh() -> Any:
        with session(tmp_path, "bob", wire).meet(ALIGNMENT) as meeting:
            result = meeting.run(bob())
            meeting.finish(HANG)
            return result

    assert both(resumed, fresh) == [None, TURNS]
    assert heard[0] == ("alice", before)
    assert [sender for sender, _ in heard] == ["alice", "bob"] * TURNS
