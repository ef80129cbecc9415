"""Each frame once and in order, whatever happens to the wire; and what is refused."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from taciturn.deploy import DRY_RUN, UNKNOWN, Checkpoint, Journal, Link, Meta, Pace, Past, Patience
from taciturn.errors import (
    AgreementError,
    MalformedFrame,
    PeerAbsent,
    PeerSilent,
    PeerStopped,
    RemoteProtocolError,
    StateError,
)
from taciturn.faces import COMMAND_LINE
from tests.deploy.wires import Wire
from tests.modules import module_of
from tests.waiting import HANG

KEY = bytes(32)
PATIENT = Patience(connect=HANG, answer=HANG, opening=HANG)
A, B = b"a" * 16, b"b" * 16


def link(wire: Wire, *, serves: bool, nonce: bytes, past: Past | None = None, **more: Any) -> Link:
    start = past or Past(Meta({}, b"", nonce))
    patience = more.pop("patience", PATIENT)
    return Link(wire.endpoint(serves=serves), None, start, patience=patience, **more)


def both(alice: Callable[[], Any], bob: Callable[[], Any]) -> list[Any]:
    ends: list[Any] = [None, None]

    def run(place: int, act: Callable[[], Any]) -> None:
        try:
            ends[place] = act()
        except BaseException as problem:
            ends[place] = problem

    threads = [threading.Thread(target=run, args=numbered) for numbered in enumerate((alice, bob))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert not any(thread.is_alive() for thread in threads)
    return ends


def talk(link: Link, first: bool, rounds: int) -> list[bytes]:
    """A strict to and fro; returns what was heard."""
    heard = []
    for number in range(rounds):
        if first:
            link.send(b"a%d" % number)
            heard.append(link.receive())
        else:
            heard.append(link.receive())
            link.send(b"b%d" % number)
    link.finish(0.5)  # where the last word itself was cut off, nobody can know that it was heard
    link.close()
    return heard


ROUNDS = 6


@pytest.mark.parametrize("cut", range(1, 2 * ROUNDS + 8))
def test_a_wire_cut_at_any_frame_loses_and_doubles_nothing(cut):
    wire = Wire(lambda number: number == cut)
    alice, bob = link(wire, serves=False, nonce=A), link(wire, serves=True, nonce=B)
    heard = both(lambda: talk(alice, True, ROUNDS), lambda: talk(bob, False, ROUNDS))
    assert heard == [[b"b%d" % n for n in range(ROUNDS)], [b"a%d" % n for n in range(ROUNDS)]]


def test_a_wire_that_is_cut_all_the_time_is_outlasted():
    wire = Wire(lambda number: number % 5 == 0)
    alice, bob = link(wire, serves=False, nonce=A), link(wire, serves=True, nonce=B)
    heard = both(lambda: talk(alice, True, 20), lambda: talk(bob, False, 20))
    assert heard == [[b"b%d" % n for n in range(20)], [b"a%d" % n for n in range(20)]]
    assert wire.links > 5


def test_a_restarted_side_sends_again_what_was_not_confirmed_as_it_was(tmp_path):
    """Alice stops after she noted a frame, before it left; the journal is all she has."""
    journal = Journal(tmp_path / "journal", KEY, sync=False)
    journal.begin(Meta({}, b"", A))
    journal.met(B)
    journal.sent(1, b"the mask was used")
    journal.close()
    again = Journal(tmp_path / "journal", KEY, sync=False)
    past = again.resume()
    assert past is not None
    wire = Wire()
    bob_past = Past(Meta({}, b"", B), peer=A)
    alice = Link(wire.endpoint(serves=False), again, past, patience=PATIENT)
    bob = link(wire, serves=True, nonce=B, past=bob_past)
    assert both(alice.connect, bob.receive)[1] == b"the mask was used"
    assert alice.counts == (1, 0)
    again.close()


def test_a_journal_that_lost_its_last_frame_is_an_old_copy():
    """The peer has frame 1; this side makes it anew before it knows, and it is another one."""
    wire = Wire()
    alice = link(wire, serves=False, nonce=A, past=Past(Meta({}, b"", A), peer=B))
    bob = link(wire, serves=True, nonce=B, past=Past(Meta({}, b"", B), peer=A, received=[b"one"]))
    ends = both(lambda: alice.send(b"one, encrypted anew"), bob.connect)
    assert isinstance(ends[0], StateError)


def test_a_checkpoint_keeps_what_is_not_confirmed(tmp_path):
    journal = Journal(tmp_path / "journal", KEY, sync=False)
    journal.begin(Meta({"role": "alice"}, b"c", A))
    journal.met(B)
    journal.sent(1, b"one")
    journal.received(1, b"uno")
    journal.sent(2, b"two")
    journal.checkpoint(Checkpoint(2, 1, b"state"), {2: b"two"})
    journal.sent(3, b"three")
    journal.close()
    reopened = Journal(tmp_path / "journal", KEY)
    past = reopened.resume()
    reopened.close()
    assert past is not None
    assert (past.checkpoint, past.peer) == (Checkpoint(2, 1, b"state"), B)
    assert (past.pending, past.sent, past.received) == ({2: b"two"}, [b"three"], [])
    assert past.meta == Meta({"role": "alice"}, b"c", A)
    resumed = link(Wire(), serves=True, nonce=A, past=past)
    assert resumed.counts == (3, 1)
    assert resumed.pending == {2: b"two", 3: b"three"}


def test_where_there_is_no_journal_there_is_no_past(tmp_path):
    assert Journal(tmp_path / "journal", KEY).resume() is None


# --- what is refused -----------------------------------------------------------------------------


def refusals(alices: Past, bobs: Past, **more: Any) -> list[Any]:
    wire = Wire()
    alice = link(wire, serves=False, nonce=A, past=alices)
    bob = link(wire, serves=True, nonce=B, past=bobs, **more)
    return both(alice.connect, bob.connect)


def test_an_old_copy_of_the_state_is_refused_on_both_sides():
    """Alice has had three frames of Bob, who only knows of one: he would release again."""
    alices = Past(Meta({}, b"", A), peer=B, checkpoint=Checkpoint(0, 3))
    bobs = Past(Meta({}, b"", B), peer=A, checkpoint=Checkpoint(1, 0))
    _, bob = refusals(alices, bobs)
    assert isinstance(bob, StateError)
    assert "the state is an old copy" in bob.message


def test_a_peer_that_went_back_in_time_is_refused():
    alices = Past(Meta({}, b"", A), peer=B, checkpoint=Checkpoint(0, 1))
    bobs = Past(Meta({}, b"", B), peer=A, checkpoint=Checkpoint(5, 0), pending={5: b"five"})
    _, bob = refusals(alices, bobs)
    assert isinstance(bob, StateError)
    assert "lacks frame 2" in bob.message


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_a_session_that_one_side_does_not_know_is_refused(who):
    known = Past(Meta({}, b"", A if who == "alice" else B), peer=b"x" * 16)
    fresh = Past(Meta({}, b"", B if who == "alice" else A))
    ends = refusals(known, fresh) if who == "alice" else refusals(fresh, known)
    assert all(isinstance(end, StateError) for end in ends)
    assert all("with --fresh," in end.diagnostics(COMMAND_LINE) for end in ends)


def test_a_dry_run_does_not_meet_a_training():
    ends = refusals(Past(Meta({}, b"", A)), Past(Meta({}, b"", B)), purpose=DRY_RUN)
    assert all(isinstance(end, AgreementError) for end in ends)
    assert all("give --dry-run" in end.diagnostics(COMMAND_LINE) for end in ends)


def test_nobody_there_is_said_after_the_time():
    alone = link(Wire(), serves=True, nonce=A, patience=Patience(connect=0.05))
    with pytest.raises(PeerAbsent):
        alone.connect()


def raw(wire: Wire, *frames: bytes) -> Any:
    channel = wire.endpoint(serves=False).connect(5.0)
    for frame in frames:
        channel.send(frame)
    return channel


def opening(version: int = 1, purpose: int = 1, known: bytes = UNKNOWN, received: int = 0) -> bytes:
    return struct.pack("<BBB16s16sQ", 1, version, purpose, A, known, received)


@pytest.mark.parametrize(
    ("frames", "error", "said"),
    [
        ([b""], MalformedFrame, "does not open"),
        ([b"\x01"], MalformedFrame, "does not open"),
        ([b"garbage" * 20], MalformedFrame, "does not open"),
        ([opening(version=2)], AgreementError, "version 2"),
        ([opening(purpose=9)], AgreementError, "something else"),
        ([opening(received=1)], StateError, "old copy"),
        ([opening(), b""], MalformedFrame, "not a session frame"),
        ([opening(), b"\x09" * 30], MalformedFrame, "not a session frame"),
        ([opening(), b"\x02\x01"], MalformedFrame, "not a session frame"),
        ([opening(), struct.pack("<BQQ", 2, 2, 0)], RemoteProtocolError, "frame 2 arrived where 1"),
        ([opening(), struct.pack("<BQQ", 2, 1, 7)], RemoteProtocolError, "confirms frame 7"),
        ([opening(), struct.pack("<BQ", 3, 7)], RemoteProtocolError, "confirms frame 7"),
        ([struct.pack("<BH", 4, 32) + b"other settings"], PeerStopped, "other settings"),
        ([opening(), struct.pack("<BH", 4, 32) + b"bad\x1b[31m"], PeerStopped, r"bad \[31m"),
        ([opening(), b"\x04"], PeerStopped, "aborted"),
    ],
)
def test_a_peer_that_does_not_keep_to_it(frames, error, said):
    wire = Wire()
    raw(wire, *frames)
    bob = link(wire, serves=True, nonce=B)
    with pytest.raises(error, match=said):
        bob.receive()


def test_a_silent_peer_is_named():
    wire = Wire()
    raw(wire, opening())
    bob = link(wire, serves=True, nonce=B, patience=Patience(answer=0.05))
    with pytest.raises(PeerSilent):
        bob.receive()


def test_giving_up_reaches_the_other_side_with_its_reason():
    wire = Wire()
    alice, bob = link(wire, serves=False, nonce=A), link(wire, serves=True, nonce=B)

    def give_up() -> None:
        alice.connect()
        alice.fail(32, "the settings of the two sides differ: epochs")
        alice.close()

    _, end = both(give_up, bob.receive)
    assert isinstance(end, PeerStopped)
    assert end.message == "the peer aborted: the settings of the two sides differ: epochs"


# --- when answers leave --------------------------------------------------------------------------


class Clock:
    """Time that passes only when somebody waits or works."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module_of(Patience), "time", clock)
    return clock


def leaving_times(
    clock: Clock, pace: Pace, peer: float, before: float, after: float
) -> list[float]:
    """When five answers leave, where the peer, and this side before and after, take so long."""
    pace.wait()
    times = [clock.now]
    for _ in range(5):
        left = clock.now
        clock.sleep(after)
        # It may have come while this side was at work.
        clock.now = max(clock.now, left + peer)
        pace.arrived()
        clock.sleep(before)
        pace.wait()
        times.append(clock.now)
    return [time - times[0] for time in times]


@pytest.mark.parametrize("peer", [0.0, 0.004, 0.017, 0.049, 0.051])
def test_when_answers_leave_does_not_depend_on_the_work(clock, peer):
    quick = leaving_times(clock, Pace(50.0), peer, before=0.0, after=0.0)
    slow = leaving_times(clock, Pace(50.0), peer, before=0.049, after=min(0.049, peer + 0.02))
    assert slow == pytest.approx(quick, abs=1e-9)
    assert all(time == pytest.approx(round(time / 0.05) * 0.05, abs=1e-9) for time in quick)
    unpaced = leaving_times(clock, Pace(), peer, before=0.003, after=0.0)
    assert unpaced[-1] == pytest.approx(5 * (peer + 0.003))


def test_an_answer_that_takes_too_long_leaves_at_a_later_step_and_is_said_once(clock):
    said: list[str] = []
    times = leaving_times(clock, Pace(50.0, said.append), 0.01, before=0.12, after=0.0)
    assert times[1] == pytest.approx(0.15)
    assert said == ["an answer took longer than answer-milliseconds: raise it"]


def test_frames_in_a_row_leave_a_step_apart(clock):
    pace, times = Pace(50.0), []
    for work in (0.0, 0.01, 0.03):
        clock.sleep(work)
        pace.wait()
        times.append(clock.now - 100.0)
    assert times == pytest.approx([0.0, 0.05, 0.10])
